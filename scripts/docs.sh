#!/bin/sh
# Builds the documentation site into target/site, with mkdocs-material in a virtual environment under target/. 'make docs' calls it.
# Environment: PYTHON; GMM_BMM, the program whose help becomes the reference; OPTIONAL=1 to succeed with a message where the tools are missing.
set -eu
cd "$(dirname "$0")/.."
. scripts/debian_common.sh
python=${PYTHON:-python3}
venv=target/docs-venv
install_tools() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null || install_packages python3-venv
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    "$venv/bin/python" -m pip --quiet --disable-pip-version-check install 'mkdocs-material>=9.5,<10' 'mkdocstrings[python]>=0.26,<2'
}
if ! install_tools; then
    echo "skipped: mkdocs-material could not be installed"
    [ -n "${OPTIONAL:-}" ]
    exit
fi
# mkdocs-material prints a notice about another program.
NO_MKDOCS_2_WARNING=1 "$venv/bin/python" scripts/make_site.py --command "${GMM_BMM:-target/release/gmm-bmm}" \
    --rustdoc "${CARGO_TARGET_DIR:-target}/doc"
echo "open target/site/index.html (its search needs a server: $python -m http.server --directory target/site)"
