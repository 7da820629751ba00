#!/bin/sh
# The paper's Figure 1: learning curves of oBMM on nine synthetic sets, into results/figure1.
. "$(dirname "$0")/tables_common.sh"
mkdir -p "$RESULTS/figure1"
"$GMM_BMM" figure1 --rows "${ROWS:-170000}" --test-rows "${TEST_ROWS:-30000}" --out "$RESULTS/figure1" |
    tee "$RESULTS/figure1/summary.txt.new"
mv "$RESULTS/figure1/summary.txt.new" "$RESULTS/figure1/summary.txt"
