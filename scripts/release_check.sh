#!/usr/bin/env bash
# The dry run of a release: everything that the release workflow does, except publishing. 'make release-check' calls it.
#   - Versions agree in Cargo.toml, CITATION.cff and CHANGELOG.md.
#   - The wheel is built, passes auditwheel, is smaller than 6 MB, and is imported within a second in an empty environment without Rust.
#   - The source distribution builds a wheel. 'cargo package' verifies the crate.
#   - The program is packed with its checksum, and install.sh installs it from a local folder.
# It downloads Python packages unless they are cached. Environment: PYTHON, PROFILE (release).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/debian_common.sh
python=${PYTHON:-python3}
mkdir -p "${CARGO_TARGET_DIR:-target}"
target_dir=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
root=$PWD/target/release-check
venv=$root/tools
dist=$root/dist
step() { printf '\n== %s\n' "$1"; }
fail() {
    echo "release-check: $1" >&2
    exit 1
}
rm -rf "$dist" "$root/empty" "$root/bin"
mkdir -p "$dist"

step "versions"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
grep -qx "version: $version" CITATION.cff || fail "CITATION.cff does not have the version $version"
grep -q "^## \[$version\] - [0-9-]\{10\}$" CHANGELOG.md || fail "CHANGELOG.md has no dated section [$version]"
released=$(sed -n "s/^## \[$version\] - //p" CHANGELOG.md)
grep -qx "date-released: \"$released\"" CITATION.cff || fail "CITATION.cff does not have the date $released"
[ -z "${GITHUB_REF_NAME:-}" ] || [ "${GITHUB_REF_TYPE:-}" != tag ] || [ "$GITHUB_REF_NAME" = "v$version" ] ||
    fail "the tag $GITHUB_REF_NAME is not v$version"
echo "$version, released $released"

step "wheel and source distribution"
"$python" -c 'import ensurepip, venv' 2>/dev/null || install_packages python3-venv
command -v patchelf >/dev/null || install_packages patchelf || true
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip --quiet --disable-pip-version-check install 'maturin>=1.16,<2' auditwheel
(cd python && "$venv/bin/maturin" build --quiet --release --out "$dist" && "$venv/bin/maturin" sdist --out "$dist")
wheel=$(ls "$dist"/*.whl)
size=$(wc -c <"$wheel")
[ "$size" -lt 6000000 ] || fail "the wheel has $size bytes"
if [ "$(uname)" = Linux ]; then
    "$venv/bin/auditwheel" show "$wheel" | tee "$root/auditwheel.txt"
    grep -q 'manylinux_' "$root/auditwheel.txt" || fail "the wheel does not fit any manylinux"
fi
case $(basename "$wheel") in gmm_bmm-$version-*) ;; *) fail "$wheel does not have the version $version" ;; esac
echo "$(basename "$wheel"), $size bytes"

step "an empty environment without Rust"
"$python" -m venv "$root/empty"
clean() { env -i HOME="$root" PATH=/usr/bin:/bin LANG=C.UTF-8 "$@"; }
clean "$root/empty/bin/python" -m pip --quiet --disable-pip-version-check install "$wheel"
cat >"$root/import.py" <<'END'
import sys, time
import sklearn.mixture  # what the package depends on is not its own time
began = time.perf_counter()
import gmm_bmm
seconds = time.perf_counter() - began
import numpy as np
rows = np.random.default_rng(0).normal(size=(2000, 2))
assert gmm_bmm.OnlineGaussianMixture(2, random_state=0).fit(rows).means_.shape == (2, 2)
print(f"gmm_bmm {gmm_bmm.__version__} imported in {seconds:.2f} s")
sys.exit(seconds > 1 or gmm_bmm.__version__ != sys.argv[1])
END
clean "$root/empty/bin/python" "$root/import.py" "$version" || fail "the import takes longer than a second, or the version is wrong"

step "a wheel from the source distribution"
# In a folder of its own: files of an archive are old, so cargo would take what was compiled from the working tree.
env -u CARGO_TARGET_DIR "$venv/bin/python" -m pip --quiet --disable-pip-version-check wheel --no-deps --wheel-dir "$root/from-sdist" "$dist"/*.tar.gz
ls "$root/from-sdist"

step "cargo package"
# Verifying compiles the crate as a user gets it.
rm -rf "$root/package"
CARGO_TARGET_DIR=$root/package cargo package --quiet --package gmm-bmm --allow-dirty
ls -l "$root/package/package/gmm-bmm-$version.crate" | awk '{ print $5 " bytes" }'

step "program and installer"
cargo build --quiet --profile "${PROFILE:-release}" --package gmm-bmm
target=$(uname -m)-$(case $(uname -s) in Linux) echo unknown-linux-musl ;; *) echo apple-darwin ;; esac)
scripts/pack_binary.sh "$target_dir/${PROFILE:-release}/gmm-bmm" "$target" "$dist"
sed -e "s|@VERSION@|$version|g" -e "s|@DOWNLOADS@|file://$dist|g" scripts/install.sh.in >"$dist/install.sh"
GMM_BMM_BIN=$root/bin sh "$dist/install.sh"
"$root/bin/gmm-bmm" synth --k 2 --d 2 --n 500 --out "$root/rows.csv" --quiet
"$root/bin/gmm-bmm" fit --data "$root/rows.csv" --out "$root/model.json" --quiet
# A damaged archive is not installed.
printf x >>"$dist/gmm-bmm-$version-$target.tar.gz"
! GMM_BMM_BIN=$root/bin2 sh "$dist/install.sh" 2>/dev/null || fail "the installer takes a damaged archive"
[ ! -e "$root/bin2" ] || fail "the installer leaves something of a damaged archive"

printf '\nrelease-check: all passed\n'
