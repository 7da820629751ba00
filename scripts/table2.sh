#!/bin/sh
# The paper's Table 2: four larger sets, oEM, oBMM and oDMM over 5 shards, 5-fold cross-validation, one K for all,
# into results/table2. K=, FOLDS= and STAND_IN_ROWS= change that.
STAND_IN_ROWS=${STAND_IN_ROWS:-100000}
. "$(dirname "$0")/tables_common.sh"
run_large_table table2 --k "${K:-5}" --folds "${FOLDS:-5}" --algos start,oem,obmm,odmm --units raw
