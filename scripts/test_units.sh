#!/bin/sh
# The unit tests in one build, which has the features mpi and openblas where Open MPI and OpenBLAS are installed. Then tests/mpi.rs runs
# too, and the modules that call OpenBLAS, and those that build on them, run once without it and once with it.
#     scripts/test_units.sh [--workspace]
# Three tests of thousands of rows are left out: 'make test-long' runs them, tests/cli compares the same learners, and tests/library has
# rows in single precision too.
set -eu
cd "$(dirname "$0")/.."
slow='--skip revising::tests::a_pass_is_what --skip revising::tests::the_course_of --skip rows_in_single_precision_do_not'
has() {
    said=$("scripts/with_$1.sh" echo there | tail -n 1)
    [ "$said" = there ] || { echo "$said"; return 1; }
}
features= targets=--lib
if has openmpi; then
    features=gmm-bmm/mpi targets='--lib --test mpi'
fi
if has openblas; then
    features=${features:+$features,}gmm-bmm/openblas
fi
# shellcheck disable=SC2086
scripts/select_tests.sh cargo test "$@" ${features:+--features $features} $targets -- $slow
case $features in
    *openblas)
        GMM_BMM_TEST_OPENBLAS=1 scripts/select_tests.sh cargo test "$@" --features "$features" --lib -- \
            linalg::batch:: linalg::blocks:: linalg::row_blocks:: dist:: learn::batch_em:: learn::structure::kmeans:: ;;
esac
