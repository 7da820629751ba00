#!/bin/sh
# Makes the paper's Table 3 in results/table3: seconds of learning on the sets of Table 2, with the start and without
# reading, the median of REPEAT=1 fits in each fold, one fit at a time on all threads. Synthetic substitutes have up to
# STAND_IN_ROWS=100000 rows; with fewer rows the start takes most of the time.
STAND_IN_ROWS=${STAND_IN_ROWS:-100000}
EXTRA_SETS='watch'
. "$(dirname "$0")/tables_common.sh"
run_large_table table3 --k "${K:-5}" --folds "${FOLDS:-2}" --units raw --jobs 1 --repeat "${REPEAT:-1}" \
    --algos "${ALGOS:-oem_blind,oem_printed,oem,obmm_blind,obmm,obmm_discounted,obmm_revised,odmm}"
