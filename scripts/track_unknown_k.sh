#!/bin/sh
# Makes the track 'unknown_k' in results/tracks: learners that learn K, and learners whose K validation rows choose.
. "$(dirname "$0")/track_common.sh"
mkdir -p "$RESULTS/tracks"
run_track unknown_k "Does a learned K reach the K that validation rows choose?" \
    --k "${K:-2..6}" --algos obmm,obmm_revised,obmm_auto,em_auto
