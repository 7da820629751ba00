#!/bin/sh
# Makes the track 'gaps' in results/tracks: 10, 30 and 50 % of the training values removed at random. ROWS= changes the number of
# training rows, K= that of components.
. "$(dirname "$0")/track_common.sh"
run_trial gaps --rows "${ROWS:-2000}" --k "${K:-4}"
