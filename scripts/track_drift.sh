#!/bin/sh
# Makes the track 'drift' in results/tracks: streams whose clusters move, with and without a half-life. ROWS= and SEEDS= change the
# number of rows and of streams.
. "$(dirname "$0")/track_common.sh"
run_trial drift --rows "${ROWS:-40000}" --seeds "${SEEDS:-3}"
