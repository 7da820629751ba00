#!/bin/sh
# Makes the paper's Table 1 in results/table1: eleven real sets, every learner, K from 2 to 10, 10-fold cross-validation.
# Sets with discrete columns get a second line with noise of one quantum. Judge by that line.
# K=LO..HI and FOLDS=N make a smaller table. An interrupted run resumes when the script is called again.
. "$(dirname "$0")/tables_common.sh"
run_table table1 "abalone banknote airfoil arabic transfusion ccpp compactiv kinematics northridge plastic magic04" \
    --algos all --dequantize both --units paper --k "${K:-2..10}" --folds "${FOLDS:-10}"
