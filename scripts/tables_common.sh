# Shared by the scripts of the tables and of Figure 1: settings, the build, and running a comparison.
set -eu
cd "$(dirname "$0")/.."
# PROFILE=dev PACKAGES=--workspace uses the build of the tests.
PROFILE=${PROFILE:-release}
case $PROFILE in dev) folder=debug ;; *) folder=$PROFILE ;; esac
GMM_BMM=${GMM_BMM:-${CARGO_TARGET_DIR:-target}/$folder/gmm-bmm}
DATASETS=${GMM_BMM_DATASETS:-datasets}
# Files of another folder can join those of the first one. The commands that tables show name no folder.
if [ -n "${GMM_BMM_MORE_DATASETS:-}" ]; then
    rm -rf target/datasets
    mkdir -p target/datasets
    for file in "$DATASETS"/*.csv "$GMM_BMM_MORE_DATASETS"/*.csv; do
        [ ! -f "$file" ] || ln -sf "$(cd "$(dirname "$file")" && pwd)/$(basename "$file")" target/datasets/
    done
    DATASETS=target/datasets
fi
export GMM_BMM_DATASETS="$DATASETS"
# A table with other settings does not replace the results in the repository.
[ -z "${K:-}${FOLDS:-}${ALGOS:-}" ] || RESULTS=${RESULTS:-target/results}
RESULTS=${RESULTS:-results}
[ -n "${SKIP_BUILD:-}" ] || cargo build ${PACKAGES:-} --profile "$PROFILE"

is_present() { [ -f "$DATASETS/$1.csv" ]; }

# run_table NAME "SETS" OPTIONS…: compares on the sets, into $RESULTS/NAME. A set that is missing keeps its row, which
# says how to get it.
run_table() {
    table=$1 sets=$2
    shift 2
    began=$(date +%s)
    data=''
    for set in $sets; do data="$data --data $set"; done
    # shellcheck disable=SC2086
    "$GMM_BMM" compare $data --keep-missing --out "$RESULTS/$table" "$@"
    close_table "$table" "$began"
}

# Appends to the table how long it took.
close_table() {
    summary="$RESULTS/$1/summary.md"
    printf '\nMade by `scripts/%s.sh`; the last run took %s s.\n' "$1" "$(($(date +%s) - $2))" >>"$summary"
    echo "$summary"
}

# run_large_table NAME OPTIONS…: compares on the sets of Tables 2 and 3. Synthetic rows with the same columns (synth
# --like) replace a missing set, and its row says so. They are as many as the set has, but at most STAND_IN_ROWS. The sets of
# EXTRA_SETS are added if their files are there.
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
    [ -z "$real" ] || "$GMM_BMM" compare $real --out "$RESULTS/$table" "$@"
    # shellcheck disable=SC2086
    [ -z "$drawn" ] || "$GMM_BMM" compare $drawn --stand-in --out "$RESULTS/$table" "$@"
    for set in ${EXTRA_SETS:-}; do
        ! is_present "$set" || "$GMM_BMM" compare --data "$set" --out "$RESULTS/$table" "$@"
    done
    close_table "$table" "$began"
}
