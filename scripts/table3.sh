#!/bin/sh
# Makes the paper's Table 3 in results/table3: seconds of learning all rows of the sets of Table 2, with the start and without reading,
# the median of REPEAT=3 fits, one fit at a time on all threads, and again on one thread in results/table3/one-thread. For oDMM there is
# also the time of start, warm-up, slowest shard and merge, which is what machines of their own take. Synthetic rows with the same columns
# (synth --like) replace a missing set, at most STAND_IN_ROWS=515345 of them, and its row says so. STAND_INS is the folder of their
# files (target/stand-ins). Run it on an idle machine. See tables_common.sh for the environment.
. "$(dirname "$0")/tables_common.sh"
STAND_IN_ROWS=${STAND_IN_ROWS:-515345}
STAND_INS=${STAND_INS:-target/stand-ins}
TEST_ROWS=${TEST_ROWS:-1000}
algos=${ALGOS:-oem_blind,oem,obmm_blind,obmm,obmm_revised,odmm,odmm_blind}
shown=''

# compare_times NAME FILE TEST OPTIONS…
compare_times() {
    data=$1 test=$2
    shift 2
    echo "table3: $data ($(($(date +%s) - began)) s so far)"
    for threads in "${THREADS:-}" 1; do
        records=table3
        [ "$threads" != 1 ] || records=table3/one-thread
        THREADS=$threads compare --data "$data" --test "$test" --k "${K:-5}" --algos "$algos" --alpha 0.8 --jobs 1 \
            --repeat "${REPEAT:-3}" --dequantize off --units raw --out "$WORK/$records" "$@"
    done
}

for set in ${SETS:-heterogeneity magic04 yearmsd miniboone watch}; do
    if is_present "$set"; then
        # The last rows are test rows.
        file="$STAND_INS/real/$set.csv" test="$STAND_INS/real/test/$set.csv"
        mkdir -p "$STAND_INS/real/test"
        lines=$(wc -l <"$DATASETS/$set.csv")
        head -n "$((lines - TEST_ROWS))" "$DATASETS/$set.csv" >"$file"
        { head -n 1 "$DATASETS/$set.csv"; tail -n "$TEST_ROWS" "$DATASETS/$set.csv"; } >"$test"
        compare_times "$file" "$test"
        shown="$shown,$set"
    elif [ "$set" != watch ]; then
        rows=$("$GMM_BMM" datasets | awk -v set="$set" -v most="$STAND_IN_ROWS" '$1 == set { print $2 < most ? $2 : most }')
        file="$STAND_INS/$rows/$set.csv" test="$STAND_INS/$rows/test/$set.csv"
        mkdir -p "$STAND_INS/$rows/test"
        [ -f "$file" ] || "$GMM_BMM" synth --like "$set" --n "$rows" --out "$file" --test-rows "$TEST_ROWS" --test-out "$test"
        compare_times "$file" "$test" --stand-in
        shown="$shown,$set-stand-in"
    fi
done
make_table table3 "${shown#,}"
make_table table3/one-thread "${shown#,}"
