#!/bin/sh
# Makes the paper's Table 2 in results/table2: the large sets that are present, oEM, oBMM and oDMM with 5 shards (each from a blind start,
# from a fitted start, and with revisions), K = 2, 5 and 10, 5-fold cross-validation. A missing set keeps a row that says how to get
# it. The real samples of Year Prediction MSD and Heterogeneity and the smartwatch set have rows of their own if their files are present.
# See tables_common.sh for the environment.
. "$(dirname "$0")/tables_common.sh"
sets='magic04 heterogeneity yearmsd miniboone'
for extra in yearmsd_sample8162 watch; do
    ! is_present "$extra" || sets="$sets $extra"
done
# The sample of Heterogeneity has the columns that were recorded, and not the paper's 16: only the readings x, y and z are measurements.
if is_present heterogeneity_sample40000; then
    readings=target/tables/heterogeneity_readings.csv
    mkdir -p target/tables
    cut -d , -f 5-7 "$DATASETS/heterogeneity_sample40000.csv" >"$readings"
    sets="$sets $readings"
fi
run_table table2 "$sets" --k "${K:-2,5,10}" --folds "${FOLDS:-5}" --units raw --dequantize off \
    --algos "${ALGOS:-start,oem_blind,oem_printed,oem,oem_revised,obmm_blind,obmm,obmm_revised,odmm,odmm_blind,em}"
