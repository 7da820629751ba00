#!/bin/sh
# Runs a command that links the system's OpenBLAS. If OpenBLAS is missing, first installs Debian's package, if the user
# is root. Without OpenBLAS it prints a message and succeeds.
set -eu

have_openblas() {
    printf 'int openblas_get_num_threads(void); int main(void) { return openblas_get_num_threads() < 1; }' |
        cc -x c - -lopenblas -o /dev/null 2>/dev/null
}

if ! have_openblas && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing libopenblas-dev"
    { apt-get update -qq && apt-get install -y -qq libopenblas-dev; } >/dev/null 2>&1 || true
fi
if ! have_openblas; then
    echo "skipped: OpenBLAS is not installed (Debian: apt-get install libopenblas-dev)"
    exit 0
fi
exec "$@"
