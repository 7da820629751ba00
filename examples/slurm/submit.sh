#!/bin/sh
# Runs oDMM by the file protocol on a Slurm cluster: a job for the prior, an array with one task for each file, and a job
# that merges. Run it on the login node, in a folder that all nodes can access:
#
#   K=5 examples/slurm/submit.sh model.json part-*.csv
#
# K, WARMUP and GMM_BMM are those of examples/shards.sh. SBATCH_FLAGS has further options for sbatch. A task that Slurm
# requeues learns its shard again, and the shard counts once. If tasks fail, the merge names their shards and writes
# nothing. Submit again to learn only those shards.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: K=5 $0 MODEL PART..." >&2
    exit 2
fi
MODEL=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
K=${K:-5} WARMUP=${WARMUP:-5000} GMM_BMM=${GMM_BMM:-gmm-bmm}
SHARDS=${MODEL%.json}.shards COUNT=$# SHARD_SH=$here/../shard.sh
export MODEL K WARMUP GMM_BMM SHARDS COUNT SHARD_SH

mkdir -p "$SHARDS"
"$here/../same_run.sh" "$SHARDS" "K=$K WARMUP=$WARMUP" "$(printf '%s\n' "$@")"
printf '%s\n' "$@" >"$SHARDS/list"

# shellcheck disable=SC2086
submit() { sbatch --parsable --export=ALL --output="$SHARDS/%x-%A_%a.log" ${SBATCH_FLAGS:-} "$@"; }
prior=$(submit --job-name=prior "$here/prior.sbatch")
shards=$(submit --job-name=shard --array="1-$COUNT" --dependency="afterok:$prior" --kill-on-invalid-dep=yes "$here/shard.sbatch")
# The merge runs even if shards fail, so that it can name them.
merge=$(submit --job-name=merge --dependency="afterany:$shards" "$here/merge.sbatch")
echo "prior $prior, $COUNT shards $shards, merge $merge; logs and shards are in $SHARDS"
