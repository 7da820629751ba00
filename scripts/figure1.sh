#!/bin/sh
# Makes the paper's Figure 1, learning curves on nine synthetic sets, in results/figure1. ROWS=170000 and TEST_ROWS=30000 are its training
# and test rows. See tables_common.sh for the other environment.
. "$(dirname "$0")/tables_common.sh"
mkdir -p "$RESULTS/figure1"
summary="$RESULTS/figure1/summary.txt"
"$GMM_BMM" figure1 --rows "${ROWS:-170000}" --test-rows "${TEST_ROWS:-30000}" --out "$RESULTS/figure1" >"$summary.new"
{
    echo "made by scripts/figure1.sh with $("$GMM_BMM" -V) in $(($(date +%s) - began)) s, $(date -u +%Y-%m-%d)"
    sed -n 's/^model name[^:]*: */on /p' /proc/cpuinfo 2>/dev/null | head -n 1
} >>"$summary.new"
mv "$summary.new" "$summary"
cat "$summary"
