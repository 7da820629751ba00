#!/bin/sh
# Known security advisories against the dependencies, where a tool and a copy of the advisory database are at hand.
# Never fetches anything: a check must not depend on a network. To have both: cargo install cargo-deny, then
# cargo deny fetch.
set -eu
cd "$(dirname "$0")/.."
home=${CARGO_HOME:-$HOME/.cargo}
if command -v cargo-deny >/dev/null && [ -d "$home/advisory-dbs" ]; then
    exec cargo deny --offline check --disable-fetch advisories
elif command -v cargo-audit >/dev/null && [ -d "$home/advisory-db" ]; then
    exec cargo audit --no-fetch
fi
echo "skipped: advisories need cargo-deny or cargo-audit and a copy of the advisory database"
