#!/bin/sh
# The paper's Table 3: seconds of learning on the sets of Table 2 (fit only, reading apart, the start included), the
# median of REPEAT=3 fits, one fit at a time on all threads, into results/table3.
. "$(dirname "$0")/tables_common.sh"
run_large_table table3 --k "${K:-5}" --folds "${FOLDS:-2}" --algos oem,obmm,odmm --units raw --jobs 1 \
    --repeat "${REPEAT:-3}"
