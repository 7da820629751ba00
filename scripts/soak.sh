#!/bin/sh
# Soak test: fit learns from an endless stream for some minutes, while the script records its memory and speed.
#     scripts/soak.sh [MINUTES] [OUT.csv]        (default: 10 minutes, target/soak.csv)
# OUT.csv has a line every few seconds: seconds, rows learned, rows/s since the previous line, resident memory in KiB.
# The test fails if memory grows by more than 5 % after the first fifth of the time, or if the second half runs at less
# than half the speed of the first. Needs Linux (/proc).
set -eu
cd "$(dirname "$0")/.."
minutes=${1:-10}
out=${2:-target/soak.csv}
gmm_bmm=${GMM_BMM:-target/release/gmm-bmm}
[ -x "$gmm_bmm" ] || ${CARGO:-cargo} build --release
[ -r /proc/self/status ] || { echo "skipped: the soak test needs /proc"; exit 0; }

folder=$(mktemp -d)
feeder= ; learner=
tidy_up() {
    for process in $feeder $learner; do kill "$process" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap tidy_up EXIT
trap "exit 130" INT TERM

# The same rows are repeated. Drawing new ones would measure the drawing.
"$gmm_bmm" synth --k 4 --d 6 --n 20000 --seed 1 --out "$folder/rows.csv" --quiet >/dev/null
tail -n +2 "$folder/rows.csv" >"$folder/body.csv"
mkfifo "$folder/stream"
(head -n 1 "$folder/rows.csv"; while :; do cat "$folder/body.csv"; done) >"$folder/stream" 2>/dev/null &
feeder=$!
"$gmm_bmm" fit --data - --k 2..4 --threads 1 --out "$folder/model.json" --quiet --checkpoint "$folder/run.checkpoint" \
    --checkpoint-every 50000 --trace "$folder/curve.csv" --trace-every 1000000 <"$folder/stream" >/dev/null 2>"$folder/said" &
learner=$!

# The newest checkpoint contains the number of rows learned.
rows_learned() { sed -n 's/^ "rows": \([0-9]*\),$/\1/p' "$folder/run.checkpoint" 2>/dev/null | head -n 1; }
echo "seconds,rows,rows_per_second,resident_kib" >"$out"
begun=$(date +%s) ; end=$((begun + minutes * 60)) ; before=$begun ; rows_before=0
pause=$((minutes * 60 / 60)) ; [ "$pause" -ge 2 ] || pause=2
while [ "$(date +%s)" -lt "$end" ]; do
    sleep "$pause"
    kill -0 "$learner" || { echo "fit ended before it was interrupted" >&2; exit 1; }
    now=$(date +%s) ; rows=$(rows_learned) ; rows=${rows:-0}
    memory=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$learner/status")
    echo "$((now - begun)),$rows,$(((rows - rows_before) / (now - before))),$memory" >>"$out"
    before=$now ; rows_before=$rows
done

# Ctrl-C ends the run and keeps the rows learned so far.
kill -INT "$learner"
wait "$learner" && code=0 || code=$?
learner=
[ "$code" -eq 130 ] || { echo "fit ended with code $code instead of 130" >&2; exit 1; }
"$gmm_bmm" show "$folder/run.checkpoint" >/dev/null

awk -F, -v total="$((minutes * 60))" '
    NR == 1 { next }
    $1 >= 0.2 * total && !t2 { t2 = $1; r2 = $2; first = $4 }
    t2 && $4 > most { most = $4 }
    $1 <= 0.5 * total { t5 = $1; r5 = $2 }
    { seconds = $1; rows = $2; last = $4 }
    END {
        if (!t2 || t5 <= t2 || seconds <= t5) { print "too short to judge"; exit 1 }
        early = (r5 - r2) / (t5 - t2); late = (rows - r5) / (seconds - t5)
        printf "%d rows in %d seconds; %d rows/s in the first half, %d in the second; %d KiB early, %d at most, %d at the end\n", \
            rows, seconds, early, late, first, most, last
        if (most > 1.05 * first + 1024) { print "memory grew"; exit 1 }
        if (late < 0.5 * early) { print "the speed dropped"; exit 1 }
    }' "$out"
