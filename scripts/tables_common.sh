# Shared by table1.sh, table2.sh and table3.sh: which sets are at hand, and how long a table took.
set -eu
cd "$(dirname "$0")/.."
GMM_BMM=${GMM_BMM:-${CARGO_TARGET_DIR:-target}/release/gmm-bmm}
DATASETS=${GMM_BMM_DATASETS:-datasets}
# A smaller table than the paper's does not replace the results that are there.
[ -z "${K:-}${FOLDS:-}" ] || RESULTS=${RESULTS:-target/results}
RESULTS=${RESULTS:-results}
[ -n "${SKIP_BUILD:-}" ] || cargo build --release

is_present() { [ -f "$DATASETS/$1.csv" ]; }

# run_table NAME "SETS" OPTIONS…: compares on the sets that are present, into $RESULTS/NAME. One that is not at hand
# keeps its row, with how to get it.
run_table() {
    table=$1 sets=$2
    shift 2
    began=$(date +%s)
    data=''
    for set in $sets; do data="$data --data $set"; done
    # shellcheck disable=SC2086
    "$GMM_BMM" compare $data --keep-missing --datasets "$DATASETS" --out "$RESULTS/$table" "$@"
    close_table "$table" "$began"
}

# The table says how long it took.
close_table() {
    summary="$RESULTS/$1/summary.md"
    printf '\nMade by `scripts/%s.sh`; the last run took %s s.\n' "$1" "$(($(date +%s) - $2))" >>"$summary"
    echo "$summary"
}

# run_large_table NAME OPTIONS…: the sets of Tables 2 and 3. A set that is not at hand is stood in for by a synthetic
# one with its columns (synth --like), and its row says so. It has the rows of the set, or STAND_IN_ROWS if that is less.
run_large_table() {
    table=$1
    shift
    began=$(date +%s)
    stand_ins=${STAND_INS:-target/stand-ins}
    real='' drawn=''
    for set in heterogeneity magic04 yearmsd miniboone; do
        if is_present "$set"; then
            real="$real --data $set"
        else
            rows=$("$GMM_BMM" datasets | awk -v set="$set" -v most="$STAND_IN_ROWS" \
                '$1 == set { print $2 < most ? $2 : most }')
            file="$stand_ins/$rows/$set.csv"
            mkdir -p "$stand_ins/$rows"
            [ -f "$file" ] || "$GMM_BMM" synth --like "$set" --n "$rows" --out "$file"
            drawn="$drawn --data $file"
        fi
    done
    # shellcheck disable=SC2086
    [ -z "$real" ] || "$GMM_BMM" compare $real --datasets "$DATASETS" --out "$RESULTS/$table" "$@"
    # shellcheck disable=SC2086
    [ -z "$drawn" ] || "$GMM_BMM" compare $drawn --stand-in --out "$RESULTS/$table" "$@"
    close_table "$table" "$began"
}
