# Shared by the scripts of the tracks: a track is a small comparison of one question, with one sentence of conclusion.
. "$(dirname "$0")/tables_common.sh"
SETS=${SETS:-"banknote airfoil abalone"}
mkdir -p "$RESULTS/tracks"

# run_trial NAME OPTIONS…: a track whose data have to be made first, into $RESULTS/tracks/NAME.
run_trial() {
    track=$1
    shift
    GMM_BMM=$GMM_BMM "${PYTHON:-python3}" scripts/track_trials.py "$track" "$RESULTS/tracks/$track" "$@"
}

# run_track NAME QUESTION OPTIONS…: compares on the small bundled sets, into $RESULTS/tracks/NAME.
run_track() {
    track=$1 question=$2
    shift 2
    began=$(date +%s)
    folder="$RESULTS/tracks/$track"
    data=''
    for set in $SETS; do data="$data --data $set"; done
    # shellcheck disable=SC2086
    "$GMM_BMM" compare $data --dequantize --folds "${FOLDS:-3}" --out "$folder" "$@" >"$folder.log"
    "${PYTHON:-python3}" scripts/track_page.py "$folder" "$question" "$(($(date +%s) - began))"
    # The table, its provenance and its figures for programs are kept; the rest can be made again.
    rm -rf "$folder/plots" "$folder/records.jsonl" "$folder/report.html" "$folder/summary.md" \
        "$folder/loglik.csv" "$folder/times.csv" "$folder.log"
}
