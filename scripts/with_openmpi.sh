#!/bin/sh
# Runs a command that builds the feature mpi and starts mpirun. If Open MPI is missing, first installs Debian's packages,
# if the user is root. Without Open MPI it prints a message and succeeds.
set -eu

packages="libopenmpi-dev openmpi-bin libclang-dev clang"

# The build needs the headers, and libclang for the bindings. The tests need mpirun.
have_openmpi() {
    command -v mpicc >/dev/null && command -v mpirun >/dev/null && command -v clang >/dev/null &&
        printf '#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }' |
        mpicc -x c - -o /dev/null 2>/dev/null
}

if ! have_openmpi && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing $packages"
    # shellcheck disable=SC2086
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages; } >/dev/null 2>&1 || true
fi
if ! have_openmpi; then
    echo "skipped: Open MPI is not installed (Debian: apt-get install $packages)"
    exit 0
fi
exec "$@"
