#!/bin/sh
# Makes the paper's Table 1 in results/table1: eleven real sets, the paper's learners (from a blind start, from a fitted start, and with
# revisions), batch EM and the learned K, K from 2 to 10 and 10-fold cross-validation. Sets with discrete columns get a second line with noise of one quantum. Judge
# by that line. It takes hours: MINUTES=60 scripts/table1.sh stops after an hour, and the same command resumes.
# K=3,6,10 FOLDS=3 ALGOS=start,obmm scripts/table1.sh makes a smaller one in target/results. See tables_common.sh for the environment.
. "$(dirname "$0")/tables_common.sh"
learners=start,oem_blind,oem_printed,oem,oem_revised,obmm_blind,obmm_paper,obmm,obmm_revised,obmm_auto,odmm_blind,odmm,em_plain,em
run_table table1 "banknote transfusion plastic airfoil abalone ccpp kinematics arabic compactiv magic04 northridge" \
    --algos "${ALGOS:-$learners}" --dequantize both --units paper --k "${K:-2..10}" --folds "${FOLDS:-10}"
# README's picture shows a few of the learners.
if [ "$RESULTS" = results ] && [ -z "${SETS:-}" ]; then
    picture=target/tables/picture
    "$GMM_BMM" compare --from-records results/table1 --show-sets magic04 --out "$picture" \
        --show-learners oem_blind,oem_printed,oem,obmm_blind,obmm,obmm_revised,em >/dev/null
    cp "$picture/plots/curve-magic04.svg" docs/magic04.svg
fi
