# Shared by the scripts of the tracks: a track is a small comparison of one question, with one sentence of conclusion.
. "$(dirname "$0")/tables_common.sh"
SETS=${SETS:-"banknote airfoil abalone"}

# run_track NAME QUESTION OPTIONS…: compares on the small bundled sets, into $RESULTS/tracks/NAME.
run_track() {
    track=$1 question=$2
    shift 2
    began=$(date +%s)
    folder="$RESULTS/tracks/$track"
    data=''
    for set in $SETS; do data="$data --data $set"; done
    # shellcheck disable=SC2086
    "$GMM_BMM" compare $data --dequantize --datasets "$DATASETS" --folds "${FOLDS:-3}" --out "$folder" "$@" >"$folder.log"
    {
        printf '# Track: %s\n\n%s\n\n' "$track" "$(conclusion "$folder/table.csv")"
        sed -e 1,2d "$folder/summary.md" | sed -e '/^## Pictures/,/^## Provenance/{/^## Provenance/!d;}'
        printf '\nMade by `scripts/track_%s.sh`, which asks: %s It took %s s.\n' \
            "${track%%-*}" "$question" "$(($(date +%s) - began))"
    } >"$folder/README.md"
    # The table, its provenance and its figures for programs are kept; pictures and records can be made again.
    rm -rf "$folder/plots" "$folder/records.jsonl" "$folder/report.html" "$folder/summary.md" "$folder.log"
    echo "$folder/README.md"
}

# How often each learner has the best mean, from the lines of the chosen K.
conclusion() {
    awk -F, '
        NR > 1 && $4 == "true" {
            if (!($1 in best) || $8 > best[$1]) { best[$1] = $8; who[$1] = $2 }
        }
        END {
            for (set in who) { sets++; wins[who[set]]++ }
            for (learner in wins) list[++n] = sprintf("%s on %d", learner, wins[learner])
            for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (list[j] < list[i]) { t = list[i]; list[i] = list[j]; list[j] = t }
            text = ""
            for (i = 1; i <= n; i++) text = text (i > 1 ? ", " : "") list[i]
            printf "The best mean test score on %d sets: %s.", sets, text
        }' "$1"
}
