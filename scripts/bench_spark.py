#!/usr/bin/env python3
"""pyspark.ml's GaussianMixture and gmm_bmm.spark side by side: seconds, CPU seconds, held-out log-density, memory of the processes.

    python scripts/bench_spark.py [--master local[2]] [--sets 1000000x10x8,2000000x50x10] [--seeds 3] [--partitions 8,200] [--sorted]
                                  [--out results/spark]

Both learn the same cached data frame of vectors, alternating, at their default settings. Data: K overlapping Gaussians with full
covariances. Needs pyspark and gmm_bmm. Memory is the largest resident set while a fit runs, of the driver's Python, the JVM (which
in local mode is driver and executor) and all Python workers. CPU seconds are those of all these processes; unlike seconds they hardly depend on
what else the machine does. Each fit is a line of fits.csv in the folder of --out, where fits that are
there already are not run again, and README.md there has the table of all of them. `--page` only writes that page.
"""

import argparse
import csv
import datetime
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

HELD_OUT = 20_000
FIELDS = ["rows", "columns", "k", "partitions", "sorted", "seed", "learner", "seconds", "held_out", "iterations", "driver_mb", "jvm_mb",
          "workers_mb", "date", "cpu_seconds", "load"]  # fmt: skip
THEIRS, OURS = "pyspark.ml", "gmm_bmm"


def draw(rows: int, columns: int, k: int, seed: int):
    rng = np.random.default_rng([seed, rows, columns, k])
    # Distances between centres do not grow with the columns, so that components overlap.
    centres = rng.normal(size=(k, columns)) * 4 / np.sqrt(columns)
    shapes = rng.normal(size=(k, columns, columns)) / np.sqrt(columns)
    component = rng.integers(0, k, rows)
    drawn = rng.normal(size=(rows, columns))
    for j in range(k):
        own = component == j
        drawn[own] = centres[j] + drawn[own] @ shapes[j]
    return drawn


def log_density(rows, weights, means, covariances) -> float:
    """The mean log-density, by the same arithmetic for both."""
    parts = []
    for weight, mean, covariance in zip(weights, means, covariances):
        lower = np.linalg.cholesky(covariance)
        scaled = np.linalg.solve(lower, (rows - mean).T)
        log_det = 2 * np.log(np.diag(lower)).sum()
        constant = np.log(max(weight, 1e-300)) - 0.5 * (log_det + rows.shape[1] * np.log(2 * np.pi))
        parts.append(constant - 0.5 * (scaled**2).sum(axis=0))
    return float(np.mean(np.logaddexp.reduce(parts, axis=0)))


class Usage:
    """The largest resident sets during a block: of this process, of the JVM, and of all Python workers together, in MB. And the CPU
    seconds of all of them."""

    def __enter__(self):
        self.largest, self.done = {"driver": 0, "jvm": 0, "workers": 0}, threading.Event()
        self.cpu_seconds, self.load = -self.now()[1], os.getloadavg()[0]
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        self.cpu_seconds += self.now()[1]

    def watch(self):
        while not self.done.wait(0.2):
            for name, size in self.now()[0].items():
                self.largest[name] = max(self.largest[name], size)

    @staticmethod
    def now() -> tuple[dict, float]:
        processes = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, rest = path.read_text().rsplit(")", 1)
                resident = int((path.parent / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
            except (OSError, IndexError):
                continue
            numbers = rest.split()
            # Its own time, and that of its children that have ended.
            ticks = sum(map(int, numbers[11:15]))
            processes[int(path.parent.name)] = (name.split("(", 1)[1], int(numbers[1]), resident, ticks)
        own, found, all_ticks = os.getpid(), {"driver": 0, "jvm": 0, "workers": 0}, 0
        for pid, (name, _, resident, ticks) in processes.items():
            chain = [pid]
            while chain[-1] != own and chain[-1] in processes:
                chain.append(processes[chain[-1]][1])
            if chain[-1] == own:
                found["driver" if pid == own else "jvm" if name == "java" else "workers"] += resident
                all_ticks += ticks
        return found, all_ticks / os.sysconf("SC_CLK_TCK")


def fit_theirs(frame, k: int, seed: int):
    from pyspark.ml.clustering import GaussianMixture

    model = GaussianMixture(k=k, seed=seed).fit(frame)
    means, covariances = zip(*[(one.mean.toArray(), one.cov.toArray()) for one in model.gaussians])
    return (model.weights, means, covariances), model.summary.numIter


def fit_ours(frame, k: int, seed: int):
    from gmm_bmm.spark import OnlineGaussianMixture

    local = OnlineGaussianMixture(n_components=k, seed=seed).fit(frame).estimator
    return (local.weights_, local.means_, local.covariances_), 1


def known_fits(path: Path) -> list[dict]:
    return list(csv.DictReader(path.open(newline=""))) if path.exists() else []


def key(fit: dict) -> tuple:
    return tuple(str(fit[name]) for name in ("rows", "columns", "k", "partitions", "sorted", "seed", "learner"))


def write_page(folder: Path) -> None:
    """README.md with one line for each data set, number of partitions and order, over its seeds."""
    groups = {}
    for fit in known_fits(folder / "fits.csv"):
        groups.setdefault(tuple(fit[name] for name in ("rows", "columns", "k", "partitions", "sorted")), []).append(fit)
    lines = []
    for (rows, columns, k, partitions, is_sorted), fits in groups.items():
        of = {name: {fit["seed"]: fit for fit in fits if fit["learner"] == name} for name in (THEIRS, OURS)}
        seeds = sorted(of[THEIRS].keys() & of[OURS].keys())
        if not seeds:
            continue

        def each(name: str, field: str, digits: int) -> str:
            values = [of[name][seed].get(field) for seed in seeds]
            return ", ".join(f"{float(value):.{digits}f}".replace("-", "−") if value else "–" for value in values)

        def largest(name: str) -> str:
            return " + ".join(str(max(int(of[name][seed][f]) for seed in seeds)) for f in ("driver_mb", "jvm_mb", "workers_mb"))

        ratio = [float(of[THEIRS][seed]["seconds"]) / float(of[OURS][seed]["seconds"]) for seed in seeds]
        lines.append(
            f"| {int(rows):,} × {columns}, K = {k}, {partitions} partitions{', sorted' if is_sorted == 'True' else ''} "
            f"| {each(OURS, 'seconds', 1)} | {each(OURS, 'cpu_seconds', 0)} | {each(OURS, 'held_out', 4)} "
            f"| {each(THEIRS, 'seconds', 1)} | {each(THEIRS, 'cpu_seconds', 0)} | {each(THEIRS, 'held_out', 4)} "
            f"| {', '.join(of[THEIRS][seed]['iterations'] for seed in seeds)} | {statistics.median(ratio):.1f} "
            f"| {largest(OURS)} | {largest(THEIRS)} |"
        )
    dates = sorted({fit["date"] for fit in known_fits(folder / "fits.csv")})
    text = f"""# pyspark.ml side by side

`gmm_bmm.spark.OnlineGaussianMixture` and `pyspark.ml.clustering.GaussianMixture` at their default settings on the same cached data frames of vectors, `local[2]`, on
a machine of two cores ({' and '.join(dates)}). One figure for each seed. Command: `scripts/bench_spark.py --out results/spark`, with `--sorted` for the lines of sorted
rows; [fits.csv](fits.csv) has every fit. Held out: mean log-density of {HELD_OUT:,} further rows. Memory: largest resident sets in MB of the
driver's Python, the JVM, and all Python workers together; the JVM keeps what an earlier fit took. CPU: CPU seconds of all these processes, which other load
changes little; the column `load` of fits.csv has the load of the machine when a fit began, 2 if only Spark ran. The first fit of gmm_bmm starts the Python workers.

| data | gmm_bmm, seconds | CPU | held out | pyspark.ml, seconds | CPU | held out | its iterations | times faster (median) | memory, gmm_bmm | memory, pyspark.ml |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
""" + "\n".join(lines) + "\n"
    (folder / "README.md").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="8g", help="of the JVM")
    parser.add_argument("--sets", default="1000000x10x8,2000000x50x10", help="rows x columns x K")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--partitions", default="8,200")
    parser.add_argument("--sorted", action="store_true", help="sort the rows by the first column")
    parser.add_argument("--out", type=Path, default=Path("results/spark"))
    parser.add_argument("--page", action="store_true", help="only write the page")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.page:
        return write_page(args.out)
    fits = args.out / "fits.csv"
    known = {key(fit) for fit in known_fits(fits)}
    if not known:
        fits.write_text(",".join(FIELDS) + "\n")
    import pyarrow
    import pyarrow.parquet
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import SparkSession

    spark = (SparkSession.builder.master(args.master).config("spark.driver.memory", args.memory)
             .config("spark.ui.enabled", "false").getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    for rows, columns, k in (map(int, one.split("x")) for one in args.sets.split(",")):
        for seed in range(args.seeds):
            wanted = {
                key({"rows": rows, "columns": columns, "k": k, "partitions": partitions, "sorted": args.sorted, "seed": seed, "learner": name})
                for partitions in args.partitions.split(",") for name in (THEIRS, OURS)
            }  # fmt: skip
            if wanted <= known:
                continue
            drawn = draw(rows + HELD_OUT, columns, k, seed)
            drawn, held_out = drawn[:rows], drawn[rows:]
            if args.sorted:
                drawn = drawn[np.argsort(drawn[:, 0])]
            names = [f"x{j}" for j in range(columns)]
            with tempfile.TemporaryDirectory() as folder:
                for i, part in enumerate(np.array_split(drawn, 32)):
                    table = pyarrow.table({name: part[:, j] for j, name in enumerate(names)})
                    pyarrow.parquet.write_table(table, f"{folder}/part-{i:02}.parquet")
                del drawn
                read = VectorAssembler(inputCols=names, outputCol="features").transform(spark.read.parquet(folder))
                for partitions in map(int, args.partitions.split(",")):
                    frame = read.select("features")
                    if args.sorted:
                        frame = frame.coalesce(partitions)
                    else:
                        frame = frame.repartition(partitions)
                    frame = frame.cache()
                    frame.count()
                    for name, fit in [(THEIRS, fit_theirs), (OURS, fit_ours)]:
                        place = {"rows": rows, "columns": columns, "k": k, "partitions": partitions, "sorted": args.sorted, "seed": seed,
                                 "learner": name}  # fmt: skip
                        if key(place) in known:
                            continue
                        with Usage() as usage:
                            start = time.monotonic()
                            mixture, iterations = fit(frame, k, seed)
                            seconds = time.monotonic() - start
                        sizes = {f"{process}_mb": size for process, size in usage.largest.items()}
                        line = {**place, "seconds": f"{seconds:.2f}", "held_out": f"{log_density(held_out, *mixture):.4f}",
                                "iterations": iterations, **sizes, "date": datetime.date.today().isoformat(),
                                "cpu_seconds": f"{usage.cpu_seconds:.1f}", "load": f"{usage.load:.1f}"}  # fmt: skip
                        with fits.open("a", newline="") as file:
                            csv.DictWriter(file, FIELDS, lineterminator="\n").writerow(line)
                        print(*line.values(), sep=",", flush=True)
                    frame.unpersist()
    spark.stop()
    write_page(args.out)


if __name__ == "__main__":
    main()
