#!/bin/sh
# Makes the track 'order' in results/tracks: rows are learned in the order of the file.
. "$(dirname "$0")/track_common.sh"
mkdir -p "$RESULTS/tracks"
run_track order "What does file order cost?" --order file \
    --k "${K:-2..5}" --algos start,oem_blind,oem,oem_revised,obmm_blind,obmm,obmm_revised,em_plain
