#!/usr/bin/env python3
"""Compare gmm-bmm with scikit-learn, polars, Armadillo and mlpack on the same files, one thread each.

The script installs scikit-learn, polars and mlpack into a virtual environment. mlpack is left out if there is no package for
this Python. Armadillo takes part if its headers and g++ are installed (Debian: libarmadillo-dev). The page lists what is left out.

    bench_peers.py                        all sets, two hours; writes results/peers.md and .json
    bench_peers.py --only gaps Parquet    the sets whose names contain one of these
    bench_peers.py --again                also sets that the .json has; otherwise an interrupted run resumes
    bench_peers.py --quick --out DIR      all sets with few rows, to check that it works
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers_lib import table  # noqa: E402
from peers_lib.children import ChildError, Finished, run  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PEERS = Path(__file__).resolve().parent / "peers_lib"
PACKAGES = ("scikit-learn", "polars")
QUICK_ROWS = 3000


class DataSpec(NamedTuple):
    """A data set: drawn from a mixture, or read from a file of the folder of data sets."""

    columns: int
    k: int
    rows: int = 0
    # In spreads of a cluster; at 2 the clusters overlap a lot.
    separation: float = 4.0
    seed: int = 7
    file: str = ""
    # The fraction of the values that is missing. Only gmm-bmm learns such rows; it also learns the same rows without gaps.
    missing: float = 0.0
    # The rows are in a Parquet file, and MiniBatchKMeans takes part.
    parquet: bool = False

    def name(self) -> str:
        if self.file:
            return f"{self.file}, d = {self.columns}, K = {self.k}"
        overlap = "overlapping, " if self.separation < 3 else ""
        few = f", {self.rows:,} rows" if self.rows <= 20_000 else ""
        gaps = f", {self.missing:.0%} gaps" if self.missing else ""
        parquet = f", {self.rows:,} rows in Parquet" if self.parquet else ""
        return f"{overlap}d = {self.columns}, K = {self.k}, seed {self.seed}{few}{gaps}{parquet}"


SETS = (
    DataSpec(3, 2, 170_000),
    DataSpec(10, 6, 170_000),
    DataSpec(50, 5, 130_064),
    DataSpec(91, 5, 100_000),
    *(DataSpec(columns, 12, 200_000, 2.5, seed) for columns in (3, 10) for seed in (1, 2, 3)),
    DataSpec(10, 8, file="magic04"),
    DataSpec(5, 8, file="ccpp"),
    DataSpec(6, 10, file="watch"),
    *(DataSpec(5, 3, rows) for rows in (1_000, 3_000)),
    *(DataSpec(10, 6, rows) for rows in (1_000, 3_000, 10_000, 20_000)),
    DataSpec(10, 30, 200_000, 3.0),
    DataSpec(384, 5, 20_000),
    DataSpec(16, 6, 100_000, missing=0.1),
    DataSpec(10, 8, 5_000_000, parquet=True),
)


class Peers(NamedTuple):
    """What the other programs are run with; None or False for those that are not there."""

    python: Optional[Path] = None
    armadillo: Optional[Path] = None
    mlpack: bool = False

    def left_out(self) -> List[str]:
        there = {"scikit-learn and polars": self.python, "Armadillo": self.armadillo, "mlpack": self.mlpack}
        return [f"{name} (not installed)" for name, found in there.items() if not found]


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


def has_mlpack(python: Path) -> bool:
    """Whether mlpack is in the virtual environment, where it is installed if possible."""
    def imports() -> bool:
        return subprocess.run([python, "-c", "import mlpack"], capture_output=True).returncode == 0

    if imports():
        return True
    say("installing mlpack")
    # Without a wheel, pip would compile it for an hour.
    command = [python, "-m", "pip", "install", "--quiet", "--only-binary", "mlpack", "mlpack"]
    installed = subprocess.run(command, capture_output=True, text=True)
    if installed.returncode != 0:
        say(installed.stderr.strip())
    return imports()


def armadillo_program(folder: Path) -> Optional[Path]:
    """The compiled program for Armadillo; None if it cannot be compiled."""
    compiler = shutil.which("g++")
    program = folder / "armadillo_peer"
    command = [compiler, "-O3", "-march=native", "-o", program, PEERS / "armadillo_peer.cpp", "-larmadillo"]
    if compiler is None or subprocess.run(command, capture_output=True).returncode != 0:
        return None
    return program


def find_peers(environment: Path, folder: Path) -> Peers:
    """Installs or compiles the other programs where that is possible."""
    python = python_with_packages(environment)
    return Peers(python, armadillo_program(folder), python is not None and has_mlpack(python))


def versions(gmm_bmm: Path, peers: Peers) -> Dict[str, str]:
    found = {"gmm-bmm": run([gmm_bmm, "-V"]).output.split()[-1]}
    if peers.python:
        code = "import sklearn, polars, json; print(json.dumps([sklearn.__version__, polars.__version__]))"
        found.update(zip(PACKAGES, json.loads(run([peers.python, "-c", code]).output)))
    if peers.mlpack:
        found["mlpack"] = run([peers.python, "-c", "import mlpack; print(mlpack.__version__)"]).output.strip()
    if peers.armadillo:
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
    """The runs on one data set of at most `most_rows` rows. A real set is in `file`."""

    def __init__(self, gmm_bmm: Path, library: Path, folder: Path, spec: DataSpec, file: Path, repeats: int,
                 most_rows: int = sys.maxsize) -> None:
        self.gmm_bmm, self.library, self.repeats, self.spec = gmm_bmm, library, repeats, spec
        self.file, self.most_rows = file, most_rows
        self.rows, self.k = min(spec.rows, most_rows), spec.k
        self.train, self.test, self.truth = folder / "train.csv", folder / "test.csv", folder / "truth.json"
        self.model, self.complete = folder / "model.json", folder / "complete.csv"
        self.runs: List[table.Run] = []

    def draw(self, test_rows: int) -> None:
        def to(path: Path, *more: object) -> None:
            run([self.gmm_bmm, "synth", "--quiet", "--n", self.rows, "--d", self.spec.columns, "--k", self.k,
                 "--seed", self.spec.seed, "--separation", self.spec.separation, "--out", path,
                 "--test-rows", test_rows, "--test-out", self.test, "--truth", self.truth, *more])

        if self.spec.missing:
            to(self.train, "--missing", self.spec.missing)
            to(self.complete)
        else:
            to(self.train)

    def split(self) -> None:
        """Copies the numeric columns of the file in random order; every tenth row is a test row."""
        header, *lines = self.file.read_text().splitlines()
        names = header.split(",")
        numeric = [i for i, cell in enumerate(lines[0].split(",")) if is_number(cell)][:self.spec.columns]
        chosen = [",".join(line.split(",")[i] for i in numeric) for line in lines[:self.most_rows]]
        random.Random(self.spec.seed).shuffle(chosen)
        title = ",".join(names[i] for i in numeric)
        parts = {self.test: chosen[::10], self.train: [line for i, line in enumerate(chosen) if i % 10]}
        for path, rows in parts.items():
            path.write_text("\n".join([title, *rows]) + "\n")
        self.rows = len(parts[self.train])

    def score(self, model: Path) -> float:
        scored = run([self.gmm_bmm, "eval", "--quiet", "--json", "--threads", 1, "--model", model, "--data", self.test])
        return scored.json()["mean_log_likelihood"]

    def in_memory(self, who: str, algorithm: str) -> None:
        done = run([self.library, self.train, self.k, algorithm, self.repeats, self.spec.seed])
        self.add(who, **done.json(), passes=1, peak_megabytes=done.peak_megabytes)

    def ours(self, who: str, algorithm: str, data: Optional[Path] = None) -> None:
        gaps = ["--missing", "marginal"] if self.spec.missing and data is None else []
        fits = [run([self.gmm_bmm, "fit", "--quiet", "--json", "--threads", 1, "--algo", algorithm, "--data",
                     data or self.train, *gaps, "--k", self.k, "--seed", self.spec.seed, "--no-rows", "--out", self.model])
                for _ in range(self.repeats)]
        least = {name: min(fit.json()[name] for fit in fits) for name in ("read_seconds", "learn_seconds")}
        self.add(who, **least, wall_seconds=min(fit.seconds for fit in fits), passes=1,
                 peak_megabytes=max(fit.peak_megabytes for fit in fits), log_likelihood=self.score(self.model))

    def of_python(self, python: Path, mlpack: bool) -> None:
        def job(*arguments: object) -> Finished:
            return run([python, PEERS / "python_peer.py", *arguments])

        read = job("read", self.train, self.repeats)
        self.add(table.POLARS, read_seconds=read.json()["read_seconds"], passes=1, peak_megabytes=read.peak_megabytes)
        iteration = job("iteration", self.train, self.k, self.repeats)
        figures = iteration.json()
        self.add(table.ITERATION, learn_seconds=figures["iteration_seconds"], score_seconds=figures["score_seconds"],
                 passes=1, peak_megabytes=iteration.peak_megabytes)
        self.whole_fit(table.SKLEARN, job("fit", self.train, self.test, self.k, self.spec.seed))
        if mlpack:
            iteration = job("mlpack_iteration", self.train, self.k, self.repeats)
            self.add(table.MLPACK_ITERATION, learn_seconds=iteration.json()["iteration_seconds"], passes=1,
                     peak_megabytes=iteration.peak_megabytes)
            self.whole_fit(table.MLPACK, job("mlpack_fit", self.train, self.test, self.k, self.spec.seed))

    def of_parquet(self, python: Path) -> None:
        """oBMM and MiniBatchKMeans on a Parquet file."""
        parquet = self.train.with_suffix(".parquet")
        run([python, PEERS / "python_peer.py", "parquet", self.train, parquet])
        self.train.unlink()
        self.ours(table.OBMM, "obmm", parquet)
        kmeans = run([python, PEERS / "python_peer.py", "minibatch", parquet, self.k, self.spec.seed])
        self.add(table.MINI_BATCH, **kmeans.json(), wall_seconds=kmeans.seconds, passes=1,
                 peak_megabytes=kmeans.peak_megabytes)
        parquet.unlink()

    def whole_fit(self, who: str, done: Finished) -> None:
        figures = done.json()
        self.add(who, wall_seconds=done.seconds, passes=figures["iterations"], peak_megabytes=done.peak_megabytes,
                 **{name: figures[name] for name in ("read_seconds", "learn_seconds", "log_likelihood")})

    def of_armadillo(self, program: Path) -> None:
        self.whole_fit(table.ARMADILLO, run([program, self.train, self.test, self.k]))

    def add(self, who: str, **figures: Any) -> None:
        if self.spec.file:
            # This script holds the file in memory, which counts for its children.
            figures.pop("peak_megabytes", None)
        if figures.get("read_seconds"):
            figures["rows_per_second"] = self.rows / figures["read_seconds"]
        self.runs.append({"who": who, **figures})

    def all(self, peers: Peers) -> table.DataSet:
        if self.spec.file:
            self.split()
        else:
            self.draw(min(self.rows, 30_000))
        data = {"name": self.spec.name(), "rows": self.rows, "columns": self.spec.columns, "k": self.k,
                "runs": self.runs}
        say(table.title(data))
        if self.spec.parquet:
            self.of_parquet(peers.python)
            self.add(table.TRUTH, log_likelihood=self.score(self.truth))
            return data
        self.ours(table.OBMM, "obmm")
        if self.spec.missing:
            self.ours(table.WITHOUT_GAPS, "obmm", self.complete)
            self.add(table.TRUTH, log_likelihood=self.score(self.truth))
            return data
        self.ours(table.OEM, "oem")
        self.in_memory(table.OBMM_IN_MEMORY, "obmm")
        self.in_memory(table.OEM_IN_MEMORY, "oem")
        if peers.python:
            self.of_python(peers.python, peers.mlpack)
        if peers.armadillo:
            self.of_armadillo(peers.armadillo)
        if not self.spec.file:
            self.add(table.TRUTH, log_likelihood=self.score(self.truth))
        return data


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="only the sets whose names contain one of these texts")
    parser.add_argument("--again", action="store_true", help="also run the sets that peers.json has")
    parser.add_argument("--datasets", type=Path, default=ROOT / "datasets", help="folder of the real sets")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS} rows each, one run")
    return parser.parse_args(arguments)


def known_sets(path: Path, results: Dict[str, Any]) -> Dict[str, Any]:
    """The sets of an earlier run on the same machine with the same programs, by name."""
    try:
        known = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    same = all(known.get(name) == results[name] for name in ("machine", "versions", "repeats"))
    return {data["name"]: data for data in known["sets"]} if same else {}


def main(arguments: Optional[Sequence[str]] = None) -> int:
    options = parse_arguments(arguments)
    for program, option in ((options.gmm_bmm, "--gmm-bmm"), (options.library, "--library")):
        if not program.exists():
            say(f"'{program}' does not exist: build it with 'cargo build --release --bins --examples', or give its path with {option}")
            return 1
    options.out.mkdir(parents=True, exist_ok=True)
    repeats = 1 if options.quick else options.repeats
    specs = [spec for spec in SETS if not options.columns or spec.columns in options.columns]
    specs = [spec for spec in specs if not options.only or any(text in spec.name() for text in options.only)]
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        peers = Peers() if options.no_peers else find_peers(options.venv, Path(folder))
        left_out = peers.left_out()
        for name in left_out:
            say(f"left out: {name}")
        results = {"machine": machine(), "versions": versions(options.gmm_bmm, peers), "repeats": repeats,
                   "left_out": left_out, "sets": []}
        files = {spec: options.datasets / f"{spec.file}.csv" for spec in specs}
        missing = [spec for spec in specs if spec.file and not files[spec].exists()]
        left_out += [f"{spec.file} (no file)" for spec in missing]
        missing += [spec for spec in specs if spec.parquet and not peers.python]
        known = {} if options.quick else known_sets(options.out / "peers.json", results)
        places = {spec.name(): place for place, spec in enumerate(SETS)}
        # Those of other sets stay.
        again = {spec.name() for spec in specs if options.again}
        results["sets"] = [data for name, data in known.items() if name not in again]
        kept = {data["name"] for data in results["sets"]}
        for spec in (spec for spec in specs if spec not in missing and spec.name() not in kept):
            bench = Bench(options.gmm_bmm, options.library, Path(folder), spec, files[spec], repeats,
                          QUICK_ROWS if options.quick else sys.maxsize)
            try:
                results["sets"].append(bench.all(peers))
            except ChildError as error:
                say(str(error))
                return 1
            results["sets"].sort(key=lambda data: places.get(data["name"], len(places)))
            # After each set, so that an interrupted run keeps its results.
            (options.out / "peers.json").write_text(json.dumps(results, indent=1) + "\n")
            (options.out / "peers.md").write_text(table.render(results))
    say(f"written to {options.out / 'peers.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
