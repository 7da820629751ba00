#!/bin/sh
# same_run.sh FOLDER SETTINGS FILES: fails if the folder contains shards of a run with other settings or files.
set -eu

this=$(printf '%s\n%s' "$2" "$3")
if [ -s "$1/run" ] && [ "$(cat "$1/run")" != "$this" ]; then
    echo "$1 contains shards of a run with other settings or files: delete it, or choose another name for the model" >&2
    exit 2
fi
printf '%s\n' "$this" >"$1/run"
