#!/bin/sh
# Runs a command that links the system's OpenBLAS. If OpenBLAS is missing, first installs Debian's package, if the user
# is root. Without OpenBLAS it prints a message and succeeds.
set -eu
. "$(dirname "$0")/debian_common.sh"

have_openblas() {
    printf 'int openblas_get_num_threads(void); int main(void) { return openblas_get_num_threads() < 1; }' |
        cc -x c - -lopenblas -o /dev/null 2>/dev/null
}

have_openblas || install_packages libopenblas-dev
if ! have_openblas; then
    echo "skipped: OpenBLAS is not installed (Debian: apt-get install libopenblas-dev)"
    exit 0
fi
exec "$@"
