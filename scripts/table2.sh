#!/bin/sh
# Makes the paper's Table 2 in results/table2: four larger sets, oEM and oBMM (also from a blind start, and with revisions) and oDMM
# with 5 shards, one K, 2-fold cross-validation. K=, FOLDS=, ALGOS= and STAND_IN_ROWS= change these settings. The real sample of
# Year Prediction MSD and the smartwatch set have rows of their own if their files are present; see tables_common.sh.
STAND_IN_ROWS=${STAND_IN_ROWS:-20000}
EXTRA_SETS='yearmsd_sample8162 watch'
. "$(dirname "$0")/tables_common.sh"
run_large_table table2 --k "${K:-5}" --folds "${FOLDS:-2}" --units raw \
    --algos "${ALGOS:-start,oem_blind,oem_printed,oem,oem_revised,obmm_blind,obmm,obmm_discounted,obmm_revised,odmm}"
