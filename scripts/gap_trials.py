#!/usr/bin/env python3
"""Measures learning from rows with missing values. Prints Markdown tables; results/gaps/README.md shows them.

    scripts/gap_trials.py magic04             Magic04 with 10, 30 and 50 % of its values removed at random
    scripts/gap_trials.py file FILE [COLUMN…] a file with gaps of its own; COLUMN… are left out
    scripts/gap_trials.py bias                covariances learned in one pass, against the truth

Held out are a fifth of the rows. `skip` learns from the rows without gaps, `mean` from rows whose gaps are filled by the mean of
the column. The scores are of test rows as they are, by their observed values. RMSE is of further values of test rows, a tenth of
those that are there, in units of the column's standard deviation. The program is target/release/gmm-bmm, or the value of
GMM_BMM. Needs numpy; scikit-learn's IterativeImputer is compared if it is installed.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import numpy

try:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer
except ImportError:
    IterativeImputer = None

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = os.environ.get("GMM_BMM", str(ROOT / "target/release/gmm-bmm"))
FOLDER = ROOT / "target/trials"


def run(*arguments, expect=True):
    done = subprocess.run([COMMAND, *map(str, arguments), "--json", "--quiet"], capture_output=True, text=True)
    if done.returncode:
        if expect:
            sys.exit(f"{' '.join(map(str, arguments))}\n{done.stderr}")
        return None
    return json.loads(done.stdout)


def write(name, rows):
    path = FOLDER / name
    text = "\n".join(",".join("" if numpy.isnan(v) else repr(float(v)) for v in row) for row in rows)
    header = ",".join(f"x{j}" for j in range(rows.shape[1]))
    path.write_text(f"{header}\n{text}\n")
    return path


def read(path):
    return numpy.genfromtxt(path, delimiter=",", skip_header=1)


def without(rows, share, random):
    """The rows, with a share of their values removed at random. Each row keeps a value."""
    gone = (random.random(rows.shape) < share) & ~numpy.isnan(rows)
    full = (gone | numpy.isnan(rows)).all(axis=1)
    gone[full] = False
    return numpy.where(gone, numpy.nan, rows)


def compare(train, test, k, seed, random):
    """One line of a table: held-out scores of three ways to learn, and errors of three ways to fill gaps."""
    mean = numpy.nanmean(train, axis=0)
    files = {"marginal": write("train.csv", train), "mean": write("mean.csv", numpy.where(numpy.isnan(train), mean, train))}
    files["skip"] = files["marginal"]
    tested = write("test.csv", test)
    scores, models = {}, {}
    for way, data in files.items():
        models[way] = FOLDER / f"{way}.json"
        missing = "skip" if way == "skip" else "marginal"
        done = run("fit", "--data", data, "--missing", missing, "--k", k, "--seed", seed, "--out", models[way], expect=way != "skip")
        if done:
            scores[way] = run("eval", "--model", models[way], "--data", tested, "--missing", "marginal")["mean_log_likelihood"]
    hidden = without(test, 0.1, random)
    asked = numpy.isnan(hidden) & ~numpy.isnan(test)
    spread = numpy.nanstd(train, axis=0)

    def error(filled):
        return float(numpy.sqrt(numpy.mean((((filled - test) / spread)[asked]) ** 2)))

    out = FOLDER / "imputed.csv"
    run("impute", "--model", models["marginal"], "--data", write("hidden.csv", hidden), "--out", out)
    errors = {"ours": error(read(out)), "mean": error(numpy.where(numpy.isnan(hidden), mean, hidden))}
    if IterativeImputer:
        errors["iterative"] = error(IterativeImputer(random_state=seed).fit(train).transform(hidden))
    show = lambda values, ways: [f"{values[way]:.3f}" if way in values else "none" for way in ways]  # noqa: E731
    return show(scores, ("marginal", "skip", "mean")) + show(errors, ("ours", "mean", "iterative"))


HEADER = ["held out, marginal", "skip", "mean", "RMSE of impute", "mean", "IterativeImputer"]


def table(header, rows):
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


def magic04(args):
    data = ROOT / "datasets/magic04.csv"
    rows = numpy.genfromtxt(data, delimiter=",", skip_header=1, usecols=range(10))
    lines = []
    for share in args.shares:
        for seed in range(1, args.seeds + 1):
            random = numpy.random.default_rng(seed)
            shuffled = random.permutation(rows)
            cut = len(rows) // 5
            lines.append([f"{share:.0%}", seed, *compare(without(shuffled[cut:], share, random), without(shuffled[:cut], share, random), args.k, seed, random)])
    table(["missing", "seed", *HEADER], lines)


def file(args):
    header = open(args.file).readline().strip().split(",")
    columns = [j for j, name in enumerate(header) if name not in args.columns]
    rows = numpy.genfromtxt(args.file, delimiter=",", skip_header=1, usecols=columns)
    # Values on a grid have no bounded density: noise of one step makes scores comparable.
    random = numpy.random.default_rng(0)
    for column in rows.T:
        steps = numpy.diff(numpy.unique(column[~numpy.isnan(column)]))
        column += random.random(len(column)) * numpy.median(steps)
    lines = []
    for seed in range(1, args.seeds + 1):
        random = numpy.random.default_rng(seed)
        shuffled = random.permutation(rows)
        cut = len(rows) // 5
        lines.append([seed, *compare(shuffled[cut:], shuffled[:cut], args.k, seed, random)])
    table(["seed", *HEADER], lines)


def bias(_args):
    """Mean over ten seeds of the ratio of learned and true traces, for one Gaussian and for two components."""
    lines = []
    for share in (0.1, 0.3, 0.5):
        for k in (1, 2):
            ratios = []
            for seed in range(10):
                random = numpy.random.default_rng(seed)
                factors = [numpy.tril(random.normal(size=(4, 4))) + 2 * numpy.eye(4) for _ in range(k)]
                labels = random.integers(k, size=12_000)
                rows = random.normal(size=(12_000, 4))
                for j, factor in enumerate(factors):
                    rows[labels == j] = rows[labels == j] @ factor.T + 15.0 * j
                model = FOLDER / "bias.json"
                run("fit", "--data", write("bias.csv", without(rows, share, random)), "--missing", "marginal", "--k", k, "--effort", "fast", "--out", model)
                shown = run("show", model)["components"]
                for component in shown:
                    j = round(numpy.mean(component["mean"]) / 15.0)
                    ratios.append(numpy.trace(numpy.array(component["covariance"])) / numpy.trace(factors[j] @ factors[j].T))
            error = numpy.std(ratios, ddof=1) / numpy.sqrt(len(ratios))
            lines.append([f"{share:.0%}", k, f"{numpy.mean(ratios):.4f} ± {error:.4f}"])
    table(["missing", "K", "learned trace / true trace"], lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", choices=["magic04", "file", "bias"])
    parser.add_argument("file", nargs="?")
    parser.add_argument("columns", nargs="*")
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.1, 0.3, 0.5], help="shares of values that magic04 removes")
    args = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    {"magic04": magic04, "file": file, "bias": bias}[args.trial](args)


if __name__ == "__main__":
    main()
