#!/bin/sh
# The long run of the crash tests: kills each of fit, compare, synth and merge N times (60 unless told, so 240 in all)
# at random moments, and checks every time that nothing is half-written and that going on gives the same bytes. At least a
# tenth of the kills of fit are inside the start or a revision; the output says how many.
#     scripts/crash.sh [N]
set -eu
cd "$(dirname "$0")/.."
GMM_BMM_KILLS=${1:-60} exec "${CARGO:-cargo}" test --test cli -- crash:: --nocapture
