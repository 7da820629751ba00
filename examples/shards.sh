#!/bin/sh
# Runs oDMM by the file protocol on one machine, with GNU parallel or, if that is missing, xargs.
#
#   K=5 examples/shards.sh model.json part-*.csv
#
# Each file is a shard. The script learns the prior from the first rows of the first file, every shard from the prior, and
# merges the shards. When it is called again after a failure, it learns only the missing shards.
#
#   K        components (5)
#   WARMUP   number of rows of the first file for the prior (5000); the first shard learns the others
#   JOBS     shards that run in parallel (the number of cores)
#   GMM_BMM  the program (gmm-bmm)
set -eu

if [ $# -lt 2 ]; then
    echo "usage: K=5 $0 MODEL PART..." >&2
    exit 2
fi
model=$1
shift
GMM_BMM=${GMM_BMM:-gmm-bmm} K=${K:-5} WARMUP=${WARMUP:-5000} JOBS=${JOBS:-$(nproc)}
SHARDS=${model%.json}.shards COUNT=$# SHARD_SH=$(dirname "$0")/shard.sh
export GMM_BMM WARMUP SHARDS COUNT

# Two lines for each shard: its number and its file.
number=0
list=$(for part in "$@"; do
    number=$((number + 1))
    printf '%s\n%s\n' "$number" "$part"
done)
mkdir -p "$SHARDS"
"$(dirname "$0")/same_run.sh" "$SHARDS" "K=$K WARMUP=$WARMUP" "$list"

if [ ! -s "$SHARDS/prior.json" ]; then
    "$GMM_BMM" fit --data "$1" --limit "$WARMUP" --k "$K" --out "$SHARDS/prior.json"
fi
if parallel --version 2>/dev/null | grep -q '^GNU parallel'; then
    printf '%s\n' "$list" | parallel --jobs "$JOBS" --max-args 2 "$SHARD_SH" '{1}' '{2}' || true
else
    printf '%s\n' "$list" | tr '\n' '\0' | xargs -0 -P "$JOBS" -n 2 "$SHARD_SH" || true
fi

# If shards are missing, merge fails and names them.
"$GMM_BMM" merge --prior "$SHARDS/prior.json" --out "$model" "$SHARDS"/shard-*.json
rm -r "$SHARDS"
