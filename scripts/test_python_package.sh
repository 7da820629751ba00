#!/bin/sh
# Builds the Python package, installs it into a virtual environment under target/, and runs its tests.
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
# The profile of the other tests, so that most dependencies are compiled already. 'make wheel' makes a release build.
MATURIN_PEP517_ARGS=${MATURIN_PEP517_ARGS:---profile dev}
export MATURIN_PEP517_ARGS
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'maturin>=1.16,<2' './python[test]'
# It asks for a package that was withdrawn, so it is installed without its dependencies. Its adapter's test is skipped without it.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps gmm-mml ||
    echo "gmm-mml could not be installed: its adapter is not tested"
GMM_BMM=${GMM_BMM:-$(ls -t target/*/gmm-bmm 2>/dev/null | head -n 1)}
[ -z "$GMM_BMM" ] || GMM_BMM=$(cd "$(dirname "$GMM_BMM")" && pwd)/gmm-bmm
export GMM_BMM
exec "$venv/bin/python" -m pytest -q python/tests "$@"
