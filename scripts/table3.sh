#!/bin/sh
# The paper's Table 3: seconds of learning on the sets of Table 2 (fit only, reading apart, the start included), the
# median of REPEAT=3 fits, one fit at a time on all threads, into results/table3. Stand-ins have up to STAND_IN_ROWS=600000
# rows here, for with few the start is most of the time.
STAND_IN_ROWS=${STAND_IN_ROWS:-600000}
. "$(dirname "$0")/tables_common.sh"
run_large_table table3 --k "${K:-5}" --folds "${FOLDS:-2}" --algos oem,obmm,odmm --units raw --jobs 1 \
    --repeat "${REPEAT:-3}"
