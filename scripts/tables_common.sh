# Shared by the scripts of the tables and of Figure 1: settings, the build, and running a comparison.
#
# Environment of all of these scripts:
#   K, FOLDS, ALGOS        numbers of components, folds, learners; a table of another size goes to target/results
#   SETS                   run only these sets now, and make no table: spreads a table over sessions
#   MINUTES                stop after this time; the same command resumes
#   RESULTS                folder of the tables (results)
#   WORK                   folder of the full records (target/tables/NAME-VERSION, with the version of src)
#   GMM_BMM_DATASETS       folder of the data sets (datasets)
#   GMM_BMM_MORE_DATASETS  a second folder of data sets, whose files join the first one's
#   THREADS                threads (all)
#   GMM_BMM, SKIP_BUILD    the program, and whether it is there already
#   PROFILE, PACKAGES      of the build (release); PROFILE=dev PACKAGES=--workspace uses the build of the tests
set -eu
cd "$(dirname "$0")/.."
PROFILE=${PROFILE:-release}
case $PROFILE in dev) folder=debug ;; *) folder=$PROFILE ;; esac
GMM_BMM=${GMM_BMM:-${CARGO_TARGET_DIR:-target}/$folder/gmm-bmm}
DATASETS=${GMM_BMM_DATASETS:-datasets}
# The commands that tables show name no folder.
if [ -n "${GMM_BMM_MORE_DATASETS:-}" ]; then
    rm -rf target/datasets
    mkdir -p target/datasets
    for file in "$DATASETS"/*.csv "$GMM_BMM_MORE_DATASETS"/*.csv; do
        [ ! -f "$file" ] || ln -sf "$(cd "$(dirname "$file")" && pwd)/$(basename "$file")" target/datasets/
    done
    DATASETS=target/datasets
fi
export GMM_BMM_DATASETS="$DATASETS"
# A table of another size does not replace the results in the repository.
if [ -n "${K:-}${FOLDS:-}${ALGOS:-}" ]; then
    RESULTS=${RESULTS:-target/results}
    WORK=${WORK:-$RESULTS/records}
fi
RESULTS=${RESULTS:-results}
# Records of another version of the program are not mixed with those of this one.
WORK=${WORK:-target/tables/$(git rev-parse --short HEAD:src 2>/dev/null || echo unversioned)}
[ -n "${SKIP_BUILD:-}" ] || cargo build ${PACKAGES:-} --profile "$PROFILE"
began=$(date +%s)

# A set of the catalogue, or a file.
is_present() { [ -f "$DATASETS/$1.csv" ] || [ -f "$1" ]; }

# Runs a comparison, which MINUTES ends.
compare() {
    limit=''
    if [ -n "${MINUTES:-}" ]; then
        left=$((MINUTES * 60 - $(date +%s) + began))
        [ "$left" -gt 0 ] || stopped
        limit="timeout --signal=INT $left"
    fi
    # shellcheck disable=SC2086
    $limit "$GMM_BMM" ${THREADS:+--threads "$THREADS"} compare "$@" >/dev/null || {
        status=$?
        case $status in 124 | 130) stopped ;; *) exit "$status" ;; esac
    }
}

stopped() {
    echo "stopped after ${MINUTES:-some} minutes; the same command resumes with the records in $WORK"
    exit 0
}

# run_table NAME "SETS" OPTIONS…: compares on the sets one after the other, and makes the table in $RESULTS/NAME from the
# records. A set that is missing keeps its row, which says how to get it.
run_table() {
    table=$1 sets=$2
    shift 2
    present='' missing=''
    for set in $sets; do
        if is_present "$set"; then present="$present $set"; else missing="$missing --data $set"; fi
    done
    for set in ${SETS:-$present}; do
        echo "$table: $set ($(($(date +%s) - began)) s so far)"
        # shellcheck disable=SC2086
        compare --data "$set" $missing --keep-missing --out "$WORK/$table" "$@"
    done
    names=''
    for set in $sets; do names="$names,$(basename "$set" .csv)"; done
    make_table "$table" "${names#,}"
}

# make_table NAME SETS [FOLDER]: packs the records of $WORK/NAME into $RESULTS/NAME, or FOLDER of it, and makes the table of them.
make_table() {
    if [ -n "${SETS:-}" ]; then
        echo "$1: the records of these sets are in $WORK/$1; without SETS= the script makes the table"
        return
    fi
    out="$RESULTS/$1"
    "$GMM_BMM" compare --from-records "$WORK/$1" --pack --show-sets "$2" --out "$out" >/dev/null
    printf '\nMade by `scripts/%s.sh`.\n' "$(basename "$0" .sh)" >>"$out/summary.md"
    echo "$out/summary.md"
}
