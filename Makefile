# make demo    build, then learn and compare mixtures of bundled data sets
# make test    every check: format, lints, all tests, with and without OpenBLAS and MPI, and every command on small data
# make test-long  the slowest tests at full size, and every command as a release build (half an hour)
# make wheel   the Python package as a wheel, into target/wheels
# make docs    the documentation site, into target/site
# make release-check  the dry run of a release: wheel, source distribution, crate, program and installer (ten minutes)
# make tables  the paper's Tables 1 to 3, into results/ (hours; MINUTES=60 make tables stops after an hour, and resumes)
# make figure1 the paper's Figure 1, into results/ (minutes)
# make tracks  small tables of one question each, into results/tracks (a quarter of an hour)
# make soak    an endless stream for ten minutes
# make crash   240 kills
# make fuzz    five minutes of each fuzz target
# demo and test need only Rust. Parts that need another tool are skipped with a message if it is missing.

CARGO ?= cargo
PYTHON ?= python3
TARGET = $(or $(CARGO_TARGET_DIR),target)
# 'make demo PROFILE=dev PACKAGES=--workspace' uses the build of the tests.
PROFILE = release
PACKAGES =
GMM_BMM = $(TARGET)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))/gmm-bmm

# Incremental compilation divides a crate into many small units, which takes longer when everything is compiled once.
export CARGO_INCREMENTAL ?= 0

.PHONY: all demo test test-long lint test-plain test-portable test-units test-python test-python-package test-engines test-site wheel docs release-check advisories smoke tables figure1 tracks datasets soak crash fuzz clean

all: $(GMM_BMM)

$(GMM_BMM): FORCE
	$(CARGO) build $(PACKAGES) --profile $(PROFILE)

FORCE:

# scripts/smoke.sh runs it with fewer K, rows and folds, into a folder of its own.
DEMO_OUT = target/demo
DEMO_FIT = --k 2..8
DEMO_COMPARE = --k 3,6 --folds 3 --algos start,oem,obmm,obmm_revised,em --start both
demo: $(GMM_BMM)
	@mkdir -p $(DEMO_OUT)
	$(GMM_BMM) fit --data magic04 --shuffle-buffer 20000 $(DEMO_FIT) --out $(DEMO_OUT)/magic04.json
	$(GMM_BMM) show $(DEMO_OUT)/magic04.json
	$(GMM_BMM) compare --data ccpp $(DEMO_COMPARE) --out $(DEMO_OUT)/compare
	@echo "open $(DEMO_OUT)/compare/report.html"

# Compiling takes most of the time, once for each set of features and each level of optimisation. So all steps name the same
# packages, which gives dependencies the same features, the command and the Python package share one optimised library, and
# what computes little is not optimised. CONTRIBUTING.md has the times.
test: lint test-plain test-portable test-units advisories smoke test-python test-python-package test-engines test-site

# Elsewhere than on Linux only maturin links the Python package.
ALL = $(if $(filter Linux,$(shell uname)),--workspace)
NOT_OPTIMISED = CARGO_PROFILE_TEST_OPT_LEVEL=0 CARGO_PROFILE_DEV_OPT_LEVEL=0

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy $(ALL) --all-targets -- -D warnings

test-plain:
	$(CARGO) build $(ALL)
	scripts/with_chromium.sh $(CARGO) test $(ALL) --test cli --test library --test fuzz
	$(CARGO) test $(ALL) --doc
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(ALL) --no-deps --lib

# Checks that everything compiles without AVX2. 'rustup target add aarch64-unknown-linux-gnu' installs the target.
OTHER_TARGET = aarch64-unknown-linux-gnu
test-portable:
	@if [ -d "$$(rustc --print sysroot)/lib/rustlib/$(OTHER_TARGET)" ]; then \
		$(CARGO) check --all-targets --target $(OTHER_TARGET); \
	else echo "skipped: the target $(OTHER_TARGET) is not installed"; fi

# One build that is not optimised, with MPI and OpenBLAS where they are installed.
test-units:
	$(NOT_OPTIMISED) scripts/test_units.sh $(ALL)

test-python:
	@if command -v $(PYTHON) >/dev/null; then $(PYTHON) -m unittest discover -s tests/python; \
	else echo "skipped: the tests of scripts/ need Python 3"; fi

# After smoke, which builds the command that the package's tests exchange model files with.
test-python-package:
	PYTHON=$(PYTHON) scripts/test_python_package.sh

# After test-python-package, whose package it uses.
test-engines:
	PYTHON=$(PYTHON) scripts/test_engines.sh

test-long:
	$(CARGO) clippy --no-default-features --lib -- -D warnings
	$(CARGO) clippy --no-default-features --features csv --lib -- -D warnings
	scripts/with_openmpi.sh $(CARGO) clippy --features mpi --lib --bins --test mpi -- -D warnings
	GMM_BMM_LONG_TESTS=1 REPORT_OUT=target/report $(CARGO) test --release --lib --test library --test fuzz --test cli -- \
		--include-ignored
	GMM_BMM_LONG_TESTS=1 scripts/with_openblas.sh scripts/select_tests.sh $(CARGO) test --release --no-default-features --features openblas,csv \
		--lib --test library -- linalg:: dist:: learn:: reference_values:: levels::
	PROFILE=release $(MAKE) smoke
	$(MAKE) wheel

wheel:
	$(PYTHON) -m venv target/wheel-venv
	target/wheel-venv/bin/pip install --quiet 'maturin>=1.16,<2'
	cd python && ../target/wheel-venv/bin/maturin build --release

docs: $(GMM_BMM)
	$(CARGO) doc $(ALL) --no-deps --lib
	GMM_BMM=$(GMM_BMM) PYTHON=$(PYTHON) scripts/docs.sh

# The site is built without warnings, with the command and the Rust reference of test-plain.
test-site:
	GMM_BMM=$(TARGET)/debug/gmm-bmm PYTHON=$(PYTHON) OPTIONAL=1 scripts/docs.sh

release-check:
	PYTHON=$(PYTHON) scripts/release_check.sh

advisories:
	@scripts/advisories.sh

smoke:
	@mkdir -p target
	PROFILE=$${PROFILE:-dev} PACKAGES=$(ALL) scripts/smoke.sh >target/smoke.log 2>&1 || { cat target/smoke.log; exit 1; }
	@tail -n 1 target/smoke.log

tables:
	@echo "Tables 1 to 3 take hours. Finished parts are kept, and 'MINUTES=60 make tables' stops each table after an hour."
	scripts/table1.sh
	scripts/table2.sh
	scripts/table3.sh
	GMM_BMM=$(GMM_BMM) $(PYTHON) scripts/make_reproduction.py
	$(PYTHON) scripts/make_index.py

figure1:
	scripts/figure1.sh

tracks:
	scripts/track_shuffled.sh
	scripts/track_order.sh
	PYTHON=$(PYTHON) scripts/track_drift.sh
	PYTHON=$(PYTHON) scripts/track_gaps.sh
	scripts/track_unknown_k.sh
	scripts/track_shards.sh
	$(PYTHON) scripts/make_index.py

soak: $(GMM_BMM)
	GMM_BMM=$(GMM_BMM) scripts/soak.sh

crash:
	scripts/crash.sh

fuzz:
	scripts/fuzz.sh

datasets:
	$(PYTHON) scripts/fetch_datasets.py --all

clean:
	$(CARGO) clean
