#!/bin/sh
# oDMM by the file protocol on one machine, with GNU parallel or, where that is missing, xargs.
#
#   K=5 examples/shards.sh model.json part-*.csv
#
# Each file is a shard. The prior is learned from the first rows of the first file, and every shard from it; then they
# are merged. Called again after a failure, it learns only the shards that are missing.
#
#   K        components (5)
#   WARMUP   rows of the first file that the prior is learned from (5000); the first shard learns the rest of it
#   JOBS     shards at a time (the number of cores)
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

# A number and a file for each shard, on a line each.
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

# Fails, and names them, if shards are missing.
"$GMM_BMM" merge --prior "$SHARDS/prior.json" --out "$model" "$SHARDS"/shard-*.json
rm -r "$SHARDS"
