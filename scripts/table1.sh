#!/bin/sh
# Makes the paper's Table 1 in results/table1: eleven real sets, every learner (also from a blind start, and with revisions), three
# K and 3-fold cross-validation, in about 25 minutes on two threads. K=2..10 FOLDS=10 has the size of the paper and takes hours.
# Sets with discrete columns get a second line with noise of one quantum. Judge by that line. ALGOS= chooses learners.
# A table of another size is written to target/results unless RESULTS= names a folder. An interrupted run resumes when the script
# is called again.
. "$(dirname "$0")/tables_common.sh"
run_table table1 "abalone banknote airfoil arabic transfusion ccpp compactiv kinematics northridge plastic magic04" \
    --algos "${ALGOS:-all}" --dequantize both --units paper --k "${K:-3,6,10}" --folds "${FOLDS:-3}"
