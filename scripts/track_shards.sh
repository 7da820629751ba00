#!/bin/sh
# Makes the tracks 'shards-5' and 'shards-50' in results/tracks: oDMM over shards, after a warm-up of 500 rows, on the bundled sets
# with the most rows.
SETS=${SETS:-"abalone ccpp magic04"}
. "$(dirname "$0")/track_common.sh"
for shards in 5 50; do
    run_track "shards-$shards" "What do $shards shards cost?" --shards "$shards" --warmup 500 \
        --k "${K:-4}" --algos start,obmm,odmm
done
