#!/bin/sh
# The paper's Table 1: ten real sets, every learner, K from 2 to 10, 10-fold cross-validation, into results/table1.
# Sets with discrete columns get a second line with noise of one quantum, which is the one to judge by.
# K=LO..HI and FOLDS=N make it smaller. Interrupted, it goes on where it stopped.
. "$(dirname "$0")/tables_common.sh"
run_table table1 "abalone banknote airfoil arabic transfusion ccpp compactiv kinematics northridge plastic magic04" \
    --algos all --dequantize both --units paper --k "${K:-2..10}" --folds "${FOLDS:-10}"
