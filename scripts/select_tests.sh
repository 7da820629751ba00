#!/bin/sh
# Runs the tests that filters select, and fails if a filter selects none, as after a rename:
#   scripts/select_tests.sh cargo test --lib -- linalg:: --skip slow::
set -eu
command= filters=
for word in "$@"; do
    case $filters$word in
        --) filters=' ' ;;
        ' '*) [ "$word" = --skip ] || filters="$filters $word" ;;
        *) command="$command $word" ;;
    esac
done
tests=$($command -- --list)
for filter in $filters; do
    case $tests in
        *"$filter"*) ;;
        *) echo "select_tests.sh: no test has '$filter' in its name" >&2; exit 1 ;;
    esac
done
exec "$@"
