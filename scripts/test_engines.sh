#!/bin/sh
# Runs the tests of gmm_bmm.spark, .dask and .ray on local clusters, in a virtual environment under target/ that holds the engines.
# Without Python 3.11, the network or, for Spark, Java 17 it prints a message and succeeds.
#     scripts/test_engines.sh [PYTEST OPTIONS]
# It uses the package that scripts/test_python_package.sh has put together, and elsewhere than on Linux does nothing.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
venv=$PWD/target/engines-venv
package=$PWD/target/python-package
skip() {
    echo "skipped: $1"
    exit 0
}
"$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    skip "the engines need Python 3.11 or later with venv (Debian: python3-venv)"
[ -e "$package/gmm_bmm/_core.abi3.so" ] ||
    skip "the engines are tested with the package of scripts/test_python_package.sh, on Linux"
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
# PySpark does not support pandas 3 yet.
"$venv/bin/python" -m pip --quiet --disable-pip-version-check install --no-compile 'pyspark[connect]>=4,<5' 'dask[dataframe,distributed]' \
    'ray[data]' 'pandas<3' duckdb polars pyarrow scikit-learn zstandard pytest || skip "the engines could not be installed"
unset PYTHONDONTWRITEBYTECODE
# Workers import what the tests define.
PYTHONPATH=$package:$PWD/python/tests_engines
PYTHONPYCACHEPREFIX=$PWD/target/engines-cache
# The workers of a cluster share the cores.
OMP_NUM_THREADS=1
export PYTHONPATH PYTHONPYCACHEPREFIX OMP_NUM_THREADS
tests() {
    "$venv/bin/python" -W ignore -m pytest -q -p no:cacheprovider --show-capture=no "$@"
}
tests python/tests_engines --ignore python/tests_engines/test_spark.py "$@"
if command -v java >/dev/null; then
    # One process has one kind of session.
    tests python/tests_engines/test_spark.py "$@" 2>target/spark.log || { tail -n 40 target/spark.log; exit 1; }
    # Workers that are processes of their own.
    status=0
    SPARK_MODE=cluster timeout 300 "$venv/bin/python" -W ignore -m pytest -q -p no:cacheprovider --show-capture=no \
        python/tests_engines/test_spark.py -k "killed or weights" "$@" 2>target/spark-cluster.log || status=$?
    case $status in
        0) ;;
        124) echo "skipped: Spark's local cluster does not start within five minutes" ;;
        *) tail -n 40 target/spark-cluster.log; exit 1 ;;
    esac
    # What a client of a server does in another way: its plans, its models and its pipelines.
    SPARK_MODE=connect tests python/tests_engines/test_spark.py -k "save or weights or pipeline" "$@" 2>target/spark-connect.log ||
        { tail -n 40 target/spark-connect.log; exit 1; }
else
    echo "skipped: Spark needs Java 17 (Debian: openjdk-17-jre-headless)"
fi
