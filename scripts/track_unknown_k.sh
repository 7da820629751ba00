#!/bin/sh
# Makes the track 'unknown_k' in results/tracks: learners that learn K, and learners whose K validation rows choose.
. "$(dirname "$0")/track_common.sh"
run_track unknown_k "Does a learned K reach the K that validation rows choose?" \
    --k 4,8,16,32 --algos obmm,obmm_revised,obmm_auto,em_auto
