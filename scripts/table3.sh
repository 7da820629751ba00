#!/bin/sh
# Makes the paper's Table 3 in results/table3: seconds of learning on the sets of Table 2, with the start and without
# reading, the median of REPEAT=3 fits, one fit at a time on all threads. Synthetic substitutes have up to
# STAND_IN_ROWS=600000 rows, because with few rows the start takes most of the time.
STAND_IN_ROWS=${STAND_IN_ROWS:-600000}
. "$(dirname "$0")/tables_common.sh"
run_large_table table3 --k "${K:-5}" --folds "${FOLDS:-2}" --algos oem_all,obmm_all,odmm --units raw --jobs 1 \
    --repeat "${REPEAT:-3}"
