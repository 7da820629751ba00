# Shared by table1.sh, table2.sh and table3.sh: which sets are at hand, and what to say of those that are not.
set -eu
cd "$(dirname "$0")/.."
GMM_BMM=${GMM_BMM:-${CARGO_TARGET_DIR:-target}/release/gmm-bmm}
DATASETS=${GMM_BMM_DATASETS:-datasets}
RESULTS=${RESULTS:-results}
[ -n "${SKIP_BUILD:-}" ] || cargo build --release

is_present() { [ -f "$DATASETS/$1.csv" ]; }

# run_table NAME "SETS" OPTIONS…: compares on the sets that are present, into $RESULTS/NAME.
run_table() {
    table=$1 sets=$2
    shift 2
    began=$(date +%s)
    data='' missing=''
    for set in $sets; do
        if is_present "$set"; then data="$data --data $set"; else missing="$missing $set"; fi
    done
    # shellcheck disable=SC2086
    "$GMM_BMM" compare $data --out "$RESULTS/$table" "$@"
    close_table "$table" "$missing" "$began"
}

# A set that was not at hand keeps its row, with how to get it; and the table says how long it took.
close_table() {
    summary="$RESULTS/$1/summary.md"
    if [ -n "$2" ]; then
        printf '\n## Not at hand\n\n| data set | how to get it |\n|---|---|\n' >>"$summary"
        for set in $2; do
            how=$("$GMM_BMM" datasets --datasets "$DATASETS" | awk -v set="$set" '$1 == set' | sed 's/.*  //')
            printf '| %s | %s |\n' "$set" "$how" >>"$summary"
        done
    fi
    printf '\nMade by `scripts/%s.sh`; the last run took %s s.\n' "$1" "$(($(date +%s) - $3))" >>"$summary"
    echo "$summary"
}

# run_large_table NAME OPTIONS…: the sets of Tables 2 and 3. A set that is not at hand is stood in for by a synthetic
# one with its columns (synth --like), and its row says so; STAND_IN_ROWS bounds its rows.
run_large_table() {
    table=$1
    shift
    began=$(date +%s)
    stand_ins=${STAND_INS:-target/stand-ins}
    mkdir -p "$stand_ins"
    real='' drawn=''
    for set in heterogeneity magic04 yearmsd miniboone; do
        if is_present "$set"; then
            real="$real --data $set"
        else
            file="$stand_ins/$set.csv"
            [ -f "$file" ] || "$GMM_BMM" synth --like "$set" --n "${STAND_IN_ROWS:-100000}" --out "$file"
            drawn="$drawn --data $file"
        fi
    done
    # shellcheck disable=SC2086
    [ -z "$real" ] || "$GMM_BMM" compare $real --out "$RESULTS/$table" "$@"
    # shellcheck disable=SC2086
    [ -z "$drawn" ] || "$GMM_BMM" compare $drawn --stand-in --out "$RESULTS/$table" "$@"
    close_table "$table" "" "$began"
}
