#!/bin/sh
# Makes the track 'order' in results/tracks: rows are learned in the order of the file. K is given, because in this order the
# validation rows, by which K is chosen, are the last ones of the file. Needs the track 'shuffled'.
. "$(dirname "$0")/track_common.sh"
run_track order "What does file order cost?" --order file \
    --k 5 --algos start,oem_blind,oem,oem_revised,obmm_blind,obmm,obmm_revised,em_plain
