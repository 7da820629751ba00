# make demo   build, and run the main job on a bundled data set
# make test   every check: format, lints, all tests, with and without OpenBLAS
# Neither needs more than Rust; parts that need another tool are skipped with a word where it is not there.

CARGO ?= cargo
PYTHON ?= python3
GMM_BMM = target/release/gmm-bmm

.PHONY: all demo test lint test-plain test-openblas test-python doc bench clean datasets

all: $(GMM_BMM)

$(GMM_BMM): FORCE
	$(CARGO) build --release

FORCE:

demo: $(GMM_BMM)
	@mkdir -p target/demo
	$(GMM_BMM) fit --data magic04 --shuffle-buffer 20000 --k 2..8 --out target/demo/magic04.json
	$(GMM_BMM) eval --model target/demo/magic04.json --data magic04
	$(GMM_BMM) fit --data magic04 --shuffle-buffer 20000 --k 8 --algo oem --out target/demo/magic04-oem.json
	$(GMM_BMM) eval --model target/demo/magic04-oem.json --data magic04
	$(GMM_BMM) show target/demo/magic04.json

test: lint test-plain test-openblas test-python

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings

test-plain:
	$(CARGO) test
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --lib

test-openblas:
	scripts/with_openblas.sh $(CARGO) test --features openblas --lib --test reference_values --test levels

test-python:
	@if command -v $(PYTHON) >/dev/null; then $(PYTHON) -m unittest discover -s tests/python; \
	else echo "skipped: the tests of scripts/ need Python 3"; fi

datasets:
	$(PYTHON) scripts/fetch_datasets.py --all

clean:
	$(CARGO) clean
