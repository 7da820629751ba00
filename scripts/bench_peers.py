#!/usr/bin/env python3
"""Compare gmm-bmm with scikit-learn, polars and Armadillo on the same files, one thread each.

The script installs scikit-learn and polars into a virtual environment. Armadillo takes part if its headers and g++ are
installed (Debian: libarmadillo-dev). The page lists what is left out.

    bench_peers.py                        all four sets, half an hour; writes results/peers.md and .json
    bench_peers.py --quick --out DIR      the same with few rows, to check that it works
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers_lib import table  # noqa: E402
from peers_lib.children import ChildError, Finished, run  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PEERS = Path(__file__).resolve().parent / "peers_lib"
PACKAGES = ("scikit-learn", "polars")
# (rows, columns, components)
SETS = ((170_000, 3, 2), (170_000, 10, 6), (130_064, 50, 5), (515_345, 91, 5))
QUICK_ROWS = 3000


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def python_with_packages(folder: Path) -> Optional[Path]:
    """The Python of a virtual environment with the packages, created if necessary; None if that fails."""
    python = folder / "bin" / "python"
    if not python.exists():
        say(f"creating the virtual environment {folder}")
        venv.create(folder, with_pip=True)
    if subprocess.run([python, "-c", "import sklearn, polars"], capture_output=True).returncode == 0:
        return python
    say(f"installing {' and '.join(PACKAGES)}")
    installed = subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], stdout=sys.stderr)
    return python if installed.returncode == 0 else None


def armadillo_program(folder: Path) -> Optional[Path]:
    """The compiled program for Armadillo; None if it cannot be compiled."""
    compiler = shutil.which("g++")
    program = folder / "armadillo_peer"
    command = [compiler, "-O3", "-march=native", "-o", program, PEERS / "armadillo_peer.cpp", "-larmadillo"]
    if compiler is None or subprocess.run(command, capture_output=True).returncode != 0:
        return None
    return program


def versions(gmm_bmm: Path, python: Optional[Path], armadillo: Optional[Path]) -> Dict[str, str]:
    found = {"gmm-bmm": run([gmm_bmm, "-V"]).output.split()[-1]}
    if python:
        code = "import sklearn, polars, json; print(json.dumps([sklearn.__version__, polars.__version__]))"
        found.update(zip(PACKAGES, json.loads(run([python, "-c", code]).output)))
    if armadillo:
        macros = subprocess.run(["g++", "-x", "c++", "-E", "-dM", "-include", "armadillo", os.devnull],
                                capture_output=True, text=True).stdout.split("\n")
        parts = [line.split()[-1] for part in ("MAJOR", "MINOR", "PATCH") for line in macros
                 if line.startswith(f"#define ARMA_VERSION_{part} ")]
        found["Armadillo"] = ".".join(parts)
    return found


def machine() -> Dict[str, Any]:
    processor = platform.processor() or platform.machine()
    try:
        names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        processor = names[0].split(":", 1)[1].strip() if names else processor
    except OSError:
        pass
    return {"processor": processor, "cores": os.cpu_count()}


class Bench:
    """The runs on one data set."""

    def __init__(self, gmm_bmm: Path, library: Path, folder: Path, size: Sequence[int], repeats: int) -> None:
        self.gmm_bmm, self.library, self.repeats = gmm_bmm, library, repeats
        self.rows, self.columns, self.k = size
        self.train, self.test, self.truth = folder / "train.csv", folder / "test.csv", folder / "truth.json"
        self.model = folder / "model.json"
        self.runs: List[table.Run] = []

    def draw(self, test_rows: int) -> None:
        run([self.gmm_bmm, "synth", "--quiet", "--n", self.rows, "--d", self.columns, "--k", self.k, "--seed", 7,
             "--out", self.train, "--test-rows", test_rows, "--test-out", self.test, "--truth", self.truth])

    def score(self, model: Path) -> float:
        scored = run([self.gmm_bmm, "eval", "--quiet", "--json", "--threads", 1, "--model", model, "--data", self.test])
        return scored.json()["mean_log_likelihood"]

    def in_memory(self, who: str, algorithm: str) -> None:
        done = run([self.library, self.train, self.k, algorithm, self.repeats])
        self.add(who, **done.json(), passes=1, peak_megabytes=done.peak_megabytes)

    def ours(self, who: str, algorithm: str) -> None:
        fits = [run([self.gmm_bmm, "fit", "--quiet", "--json", "--threads", 1, "--algo", algorithm, "--data",
                     self.train, "--k", self.k, "--out", self.model]) for _ in range(self.repeats)]
        least = {name: min(fit.json()[name] for fit in fits) for name in ("read_seconds", "learn_seconds")}
        self.add(who, **least, wall_seconds=min(fit.seconds for fit in fits), passes=1,
                 peak_megabytes=max(fit.peak_megabytes for fit in fits), log_likelihood=self.score(self.model))

    def of_python(self, python: Path) -> None:
        def job(*arguments: object) -> Finished:
            return run([python, PEERS / "python_peer.py", *arguments])

        read = job("read", self.train, self.repeats)
        self.add(table.POLARS, read_seconds=read.json()["read_seconds"], passes=1, peak_megabytes=read.peak_megabytes)
        iteration = job("iteration", self.train, self.k, self.repeats)
        self.add(table.ITERATION, learn_seconds=iteration.json()["iteration_seconds"], passes=1,
                 peak_megabytes=iteration.peak_megabytes)
        self.whole_fit(table.SKLEARN, job("fit", self.train, self.test, self.k))

    def whole_fit(self, who: str, done: Finished) -> None:
        figures = done.json()
        self.add(who, wall_seconds=done.seconds, passes=figures["iterations"], peak_megabytes=done.peak_megabytes,
                 **{name: figures[name] for name in ("read_seconds", "learn_seconds", "log_likelihood")})

    def of_armadillo(self, program: Path) -> None:
        self.whole_fit(table.ARMADILLO, run([program, self.train, self.test, self.k]))

    def add(self, who: str, **figures: Any) -> None:
        if figures.get("read_seconds"):
            figures["rows_per_second"] = self.rows / figures["read_seconds"]
        self.runs.append({"who": who, **figures})

    def all(self, python: Optional[Path], armadillo: Optional[Path]) -> table.DataSet:
        data = {"rows": self.rows, "columns": self.columns, "k": self.k, "runs": self.runs}
        say(table.title(data))
        self.draw(min(self.rows, 30_000))
        self.ours(table.OBMM, "obmm")
        self.ours(table.OEM, "oem")
        self.in_memory(table.OBMM_IN_MEMORY, "obmm")
        self.in_memory(table.OEM_IN_MEMORY, "oem")
        if python:
            self.of_python(python)
        if armadillo:
            self.of_armadillo(armadillo)
        self.add(table.TRUTH, log_likelihood=self.score(self.truth))
        return data


def parse_arguments(arguments: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--gmm-bmm", type=Path, default=target / "release" / "gmm-bmm", help="the binary to run")
    parser.add_argument("--library", type=Path, default=target / "release" / "examples" / "in_memory",
                        help="the example in_memory, which runs the library on rows in memory")
    parser.add_argument("--venv", type=Path, default=target / "peers-venv", help="virtual environment, created if necessary")
    parser.add_argument("--no-peers", action="store_true", help="run gmm-bmm alone")
    parser.add_argument("--out", type=Path, default=ROOT / "results", help="folder for peers.md and peers.json")
    parser.add_argument("--repeats", type=int, default=3, help="number of runs; the minimum time counts")
    parser.add_argument("--columns", type=int, nargs="+", metavar="D", help="only the sets with these numbers of columns")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS} rows each, one run")
    return parser.parse_args(arguments)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    options = parse_arguments(arguments)
    for program, option in ((options.gmm_bmm, "--gmm-bmm"), (options.library, "--library")):
        if not program.exists():
            say(f"'{program}' does not exist: build it with 'cargo build --release --bins --examples', or give its path with {option}")
            return 1
    options.out.mkdir(parents=True, exist_ok=True)
    repeats = 1 if options.quick else options.repeats
    sizes = [size for size in SETS if not options.columns or size[1] in options.columns]
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        python = None if options.no_peers else python_with_packages(options.venv)
        armadillo = None if options.no_peers else armadillo_program(Path(folder))
        left_out = [name for name, there in (("scikit-learn and polars (not installed)", python),
                                             ("Armadillo (not installed)", armadillo)) if not there]
        results = {"machine": machine(), "versions": versions(options.gmm_bmm, python, armadillo),
                   "repeats": repeats, "left_out": left_out, "sets": []}
        for rows, columns, k in sizes:
            size = (min(rows, QUICK_ROWS) if options.quick else rows, columns, k)
            bench = Bench(options.gmm_bmm, options.library, Path(folder), size, repeats)
            try:
                results["sets"].append(bench.all(python, armadillo))
            except ChildError as error:
                say(str(error))
                return 1
            # After each set, so that an interrupted run keeps its results.
            (options.out / "peers.json").write_text(json.dumps(results, indent=1) + "\n")
            (options.out / "peers.md").write_text(table.render(results))
    say(f"written to {options.out / 'peers.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
