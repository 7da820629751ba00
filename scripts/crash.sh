#!/bin/sh
# The long run of the crash tests: kills each of fit, compare, synth and merge N times (default 60, so 240 in all) at
# random moments, and checks every time that no file is half-written and that resuming gives the same bytes. At least a
# tenth of the kills of fit happen during the start or a revision; the output says how many.
#     scripts/crash.sh [N]
set -eu
cd "$(dirname "$0")/.."
GMM_BMM_KILLS=${1:-60} exec "${CARGO:-cargo}" test --test cli -- crash:: --nocapture
