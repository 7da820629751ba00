#!/bin/sh
# Makes the track 'shuffled' in results/tracks: rows in random order, K chosen on validation rows.
. "$(dirname "$0")/track_common.sh"
run_track shuffled "How do the learners compare on shuffled rows?" \
    --k "${K:-2..5}" --algos start,oem_blind,oem,oem_revised,obmm_blind,obmm,obmm_revised,em_plain
