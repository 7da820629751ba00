#!/bin/sh
# Runs a command that builds the feature mpi and starts mpirun, installing Debian's packages first where they are
# missing and may be installed; where they cannot be had, says so and succeeds.
set -eu

packages="libopenmpi-dev openmpi-bin libclang-dev clang"

# The headers for the linker, mpirun for the tests, and libclang, which makes the bindings.
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
    echo "skipped: no Open MPI here (Debian: apt-get install $packages)"
    exit 0
fi
exec "$@"
