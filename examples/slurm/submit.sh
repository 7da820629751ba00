#!/bin/sh
# oDMM by the file protocol on a Slurm cluster: a job for the prior, an array with one task for each file, and a job that
# merges. Run it on the login node, in a folder that all nodes see:
#
#   K=5 examples/slurm/submit.sh model.json part-*.csv
#
# Settings as in examples/shards.sh: K, WARMUP, GMM_BMM; more for sbatch in SBATCH_FLAGS. A task that Slurm requeues
# learns its shard anew and counts once. If tasks fail, the merge names their shards and writes nothing; submit again, and
# only those are learned.
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
# After any end of the shards, so that the merge can name those that failed.
merge=$(submit --job-name=merge --dependency="afterany:$shards" "$here/merge.sbatch")
echo "prior $prior, $COUNT shards $shards, merge $merge; logs and shards are in $SHARDS"
