#!/bin/sh
# Compares on the sets of the density-estimation literature that are present, into results/density: the publication's split
# (the last rows are test rows), its figures in the notes. K=, ROWS= (training rows at most) change the settings.
. "$(dirname "$0")/tables_common.sh"
work=target/density
mkdir -p "$work"
while read -r set test_rows; do
    is_present "$set" || { echo "$set is missing: python3 scripts/fetch_datasets.py $set"; continue; }
    all=$(($(wc -l <"$DATASETS/$set.csv") - 1))
    # The folder gives the files the names of the sets.
    mkdir -p "$work/test"
    head -n "$((all - test_rows + 1))" "$DATASETS/$set.csv" >"$work/$set.csv"
    { head -n 1 "$DATASETS/$set.csv"; tail -n "$test_rows" "$DATASETS/$set.csv"; } >"$work/test/$set.csv"
    "$GMM_BMM" compare --data "$work/$set.csv" --test "$work/test/$set.csv" --dequantize off --limit "${ROWS:-2000000}" --k "${K:-20}" \
        --algos start,oem_revised,obmm,obmm_revised --out "$RESULTS/density/$set"
done <<SETS
power 204928
gas 105206
hepmass 174987
miniboone43 3648
bsds300 250000
SETS
