#!/bin/sh
# Runs the tests of the Python package in a virtual environment under target/. On Linux the package is the folder
# python/python/gmm_bmm with the shared library of the build of the tests; elsewhere pip builds and installs it.
# If venv is missing, first installs Debian's package, if the user is root. Without Python 3.11 and venv it prints a message
# and succeeds.
#     scripts/test_python_package.sh [PYTEST OPTIONS]
set -eu
cd "$(dirname "$0")/.."
. scripts/debian_common.sh
python=${PYTHON:-python3}
venv=target/python-venv
have_venv() {
    "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}
have_venv || install_packages python3-venv
if ! have_venv; then
    echo "skipped: the Python package needs Python 3.11 or later with venv (Debian: python3-venv)"
    exit 0
fi
pip() {
    "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"
}
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
if [ "$(uname)" = Linux ]; then
    cargo build --workspace
    package=$PWD/target/python-package
    rm -rf "$package"
    mkdir -p "$package"
    cp -r python/python/gmm_bmm "$package/"
    cp "${CARGO_TARGET_DIR:-target}/debug/lib_core.so" "$package/gmm_bmm/_core.abi3.so"
    PYTHONPATH=$package
    export PYTHONPATH
    "$venv/bin/python" - >target/python-requirements.txt <<'END'
import tomllib
project = tomllib.load(open("python/pyproject.toml", "rb"))["project"]
print(*project["dependencies"], *project["optional-dependencies"]["test"], sep="\n")
END
    # Most of the modules are never imported, so they are compiled as needed, and kept even where the user wants no compiled files.
    unset PYTHONDONTWRITEBYTECODE
    PYTHONPYCACHEPREFIX=$PWD/target/python-cache
    export PYTHONPYCACHEPREFIX
    pip install --no-compile -r target/python-requirements.txt
else
    MATURIN_PEP517_ARGS=${MATURIN_PEP517_ARGS:---profile dev}
    export MATURIN_PEP517_ARGS
    pip install 'maturin>=1.16,<2' './python[test]'
fi
# It asks for a package that was withdrawn, so it is installed without its dependencies. Its adapter's test is skipped without it.
pip install --no-compile --no-deps gmm-mml ||
    echo "gmm-mml could not be installed: its adapter is not tested"
GMM_BMM=${GMM_BMM:-$(ls -t target/*/gmm-bmm 2>/dev/null | head -n 1)}
[ -z "$GMM_BMM" ] || GMM_BMM=$(cd "$(dirname "$GMM_BMM")" && pwd)/gmm-bmm
export GMM_BMM
# The types that the package declares for its library are those that the library has.
MYPY_CACHE_DIR=target/mypy-cache "$venv/bin/python" -m mypy.stubtest gmm_bmm._core
exec "$venv/bin/python" -m pytest -q python/tests "$@"
