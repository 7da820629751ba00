#!/bin/sh
# Runs every command, the tables and the figure on tiny synthetic data, and the README's other commands, in a minute or
# two. Fails if an output is missing. PROFILE=dev PACKAGES=--workspace uses the build of the tests; cargo install would compile
# anew then and is left out, and README's commands run with fewer learners, K, folds and rows.
GMM_BMM_DATASETS=target/smoke/datasets
RESULTS=target/smoke/results
STAND_INS=target/smoke/stand-ins
STAND_IN_ROWS=400
export GMM_BMM_DATASETS
[ "${PROFILE:-}" = dev ] || PACKAGES=
. "$(dirname "$0")/tables_common.sh"
rm -rf target/smoke
mkdir -p "$DATASETS" "$RESULTS"
"$GMM_BMM" synth --like banknote --n 600 --out "$DATASETS/banknote.csv"
"$GMM_BMM" synth --like airfoil --n 600 --out "$DATASETS/airfoil.csv"
"$GMM_BMM" synth --like magic04 --n 1500 --out "$DATASETS/magic04.csv"

SKIP_BUILD=1 STAND_INS=$STAND_INS STAND_IN_ROWS=$STAND_IN_ROWS RESULTS=$RESULTS GMM_BMM=$GMM_BMM
export SKIP_BUILD STAND_INS STAND_IN_ROWS RESULTS GMM_BMM
K=1..2 FOLDS=2 scripts/table1.sh
# Table 1 has every learner.
K=2 FOLDS=2 ALGOS=start,oem_blind,obmm,odmm scripts/table2.sh
K=2 REPEAT=1 TEST_ROWS=200 ALGOS=oem,obmm_blind,odmm scripts/table3.sh
ROWS=3000 TEST_ROWS=500 scripts/figure1.sh

cd target/smoke
case $GMM_BMM in /*) tool=$GMM_BMM ;; *) tool=../../$GMM_BMM ;; esac
"$tool" synth --k 3 --d 4 --n 6000 --out all.csv --test-rows 500 --test-out test.csv --truth truth.json
{ head -n 1 all.csv; tail -n +2001 all.csv | head -n 2000; } >part1.csv
{ head -n 1 all.csv; tail -n +4001 all.csv; } >part2.csv
"$tool" fit --data all.csv --limit 2000 --k 3 --out prior.json
"$tool" fit --data part1.csv --prior prior.json --out p1.json
"$tool" fit --data part2.csv --prior prior.json --out p2.json
"$tool" merge --prior prior.json p1.json p2.json --expect 2 --out merged.json
"$tool" eval --model merged.json --data test.csv
"$tool" eval --model truth.json --data test.csv
"$tool" show merged.json
"$tool" datasets >/dev/null
cd ../..

# Commands of the README that tests/cli/readme.rs does not run.
unset GMM_BMM_DATASETS RESULTS GMM_BMM
export PROFILE
if [ "$PROFILE" = dev ]; then
    algos=start,obmm fit='--k 2 --limit 4000' compare='--k 2 --folds 2 --algos start,obmm'
else
    algos=all fit='--k 2..8' compare='--k 3,6 --folds 3 --algos start,oem,obmm,obmm_revised,em --start both'
    cargo install --quiet --locked --profile "$PROFILE" --path . --root target/smoke/installed
    target/smoke/installed/bin/gmm-bmm --version
fi
K=2 FOLDS=2 ALGOS=$algos RESULTS=target/smoke/results/small scripts/table1.sh
"${MAKE:-make}" demo PROFILE="$PROFILE" PACKAGES="${PACKAGES:-}" DEMO_OUT=target/smoke/demo \
    DEMO_FIT="$fit" DEMO_COMPARE="$compare"
RESULTS=target/smoke/results
for file in table1/summary.md table1/report.html table2/loglik.csv table3/times.csv figure1/plots/figure1.png small/table1/report.html \
    table1/records.jsonl.gz ../demo/compare/report.html; do
    [ -s "$RESULTS/$file" ] || { echo "smoke: $RESULTS/$file is missing" >&2; exit 1; }
done
echo "smoke: all outputs are there"
