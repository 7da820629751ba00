#!/bin/sh
# Runs every fuzz target for some minutes (default 5), starting from the saved corpus.
#     scripts/fuzz.sh [MINUTES] [TARGET…]
# Needs cargo-fuzz (cargo install cargo-fuzz), a nightly compiler and a C++ compiler. New inputs go to
# fuzz/target/corpus, so that the saved corpus stays small. Inputs that break a property go to fuzz/artifacts.
set -eu
cd "$(dirname "$0")/../fuzz"
minutes=${1:-5}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- csv tables model records catalogue options
for target in "$@"; do
    mkdir -p "target/corpus/$target"
    cargo +nightly fuzz run "$target" "target/corpus/$target" "corpus/$target" -- \
        -max_total_time=$((minutes * 60)) -timeout=10 -rss_limit_mb=2048 -max_len=16384 -print_final_stats=1
done
