#!/bin/sh
# Runs a command that builds the feature mpi and starts mpirun. If Open MPI is missing, first installs Debian's packages,
# if the user is root. Without Open MPI it prints a message and succeeds.
set -eu
. "$(dirname "$0")/debian_common.sh"

packages="libopenmpi-dev openmpi-bin libclang-dev clang"

# The build needs the headers, and libclang for the bindings. The tests need mpirun.
have_openmpi() {
    command -v mpicc >/dev/null && command -v mpirun >/dev/null && command -v clang >/dev/null &&
        printf '#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }' |
        mpicc -x c - -o /dev/null 2>/dev/null
}

# shellcheck disable=SC2086
have_openmpi || install_packages $packages
if ! have_openmpi; then
    echo "skipped: Open MPI is not installed (Debian: apt-get install $packages)"
    exit 0
fi
exec "$@"
