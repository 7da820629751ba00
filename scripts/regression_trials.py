#!/usr/bin/env python3
"""Regression: MixtureRegressor against linear regression, gradient boosting and gmr, on data sets with fixed test rows.

    python scripts/regression_trials.py FOLDER [--sets airfoil,bike] [--splits 3] [--rows 5000] [--learners mixture,linear]

FOLDER holds NAME.csv.gz, whose last column is the target, and NAME.test_mask.csv.gz with a column of 0 and 1 for each split.
For each set and learner it prints means over the splits: root mean squared error in standard deviations of the target, minus the
mean log-density, the share of test rows within the 90 % interval, and the seconds of fit. Columns that are constant among the learned
rows are left out. gmr divides densities that underflow to 0 for rows far from all components: such rows get the normal distribution of
all targets. Needs the package gmm_bmm, NumPy and scikit-learn, and gmr if it is to be compared.
"""

import argparse
import pathlib
import sys
import time

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from gmm_bmm import MixtureRegressor


def normal_density(y, mean, deviation):
    return -0.5 * (np.log(2 * np.pi * deviation**2) + ((y - mean) / deviation) ** 2)


def point(model, held):
    """A learner of means, with the normal noise of held-out training rows."""

    def run(X, y, T, t):
        own, rest = X[:held(len(X))], X[held(len(X)):]
        fitted = model().fit(rest, y[held(len(X)):])
        deviation = max(np.std(y[:held(len(X))] - fitted.predict(own)), 1e-6)
        mean = model().fit(X, y).predict(T)
        return mean, normal_density(t, mean, deviation), np.abs(t - mean) < 1.645 * deviation

    return run


def mixture():
    def run(X, y, T, t):
        model = MixtureRegressor(random_state=0).fit(X, y)
        low, high = model.predict_quantiles(T, (0.05, 0.95)).T
        run.notes.append(f"{model.n_components_} × {model.variance_factor_:g}")
        return model.predict(T), model.log_density(T, t), (low <= t) & (t <= high)

    run.notes = []
    return run


def gmr():
    def run(X, y, T, t):
        mean, density, inside = conditional(X, y, T, t)
        lost = ~(np.isfinite(mean) & np.isfinite(density))
        run.notes.append(f"{np.mean(lost):.0%} lost")
        deviation = y.std()
        mean[lost], density[lost] = y.mean(), normal_density(t[lost], y.mean(), deviation)
        inside[lost] = np.abs(t[lost] - y.mean()) < 1.645 * deviation
        return mean, density, inside

    run.notes = []
    return run


def conditional(X, y, T, t):
    """Means, log-densities of t, and whether t is in the 90 % interval, by gmr."""
    import gmr as package

    model = package.GMM(n_components=8, random_state=0)
    model.from_samples(np.column_stack([X, y]), init_params="kmeans++")
    inputs = np.arange(X.shape[1])
    mean = model.predict(inputs, T)[:, 0]
    density = np.empty(len(T))
    inside = np.empty(len(T), dtype=bool)
    for i, row in enumerate(T):
        given = model.condition(inputs, row)
        deviations = np.sqrt(given.covariances[:, 0, 0])
        density[i] = np.log(np.sum(given.priors * np.exp(normal_density(t[i], given.means[:, 0], deviations))) + 1e-300)
        spread = np.sqrt(np.sum(given.priors * (deviations**2 + given.means[:, 0] ** 2)) - mean[i] ** 2)
        inside[i] = abs(t[i] - mean[i]) < 1.645 * spread
    return mean, density, inside


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sets")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=None, help="learn and score at most so many rows of each split")
    parser.add_argument("--learners", help="names, with commas (default: all)")
    options = parser.parse_args()
    fifth = lambda rows: rows // 5
    print("| set | rows × columns | learner | RMSE | −log density | 90 % interval | seconds | notes |\n|---|---|---|---|---|---|---|---|")
    names = sorted(path.name.split(".")[0] for path in options.folder.glob("*.test_mask.csv.gz"))
    for name in options.sets.split(",") if options.sets else names:
        table = np.loadtxt(options.folder / f"{name}.csv.gz", delimiter=",")
        masks = np.loadtxt(options.folder / f"{name}.test_mask.csv.gz", delimiter=",", ndmin=2) > 0.5
        learners = {
            "mixture": mixture(),
            "linear": point(LinearRegression, fifth),
            "boosting": point(lambda: HistGradientBoostingRegressor(random_state=0), fifth),
            "gmr": gmr(),
        }
        for learner in options.learners.split(",") if options.learners else learners:
            run = learners[learner]
            figures = []
            for test in masks.T[: options.splits]:
                learned = table[~test]
                learned = learned[np.random.default_rng(0).permutation(len(learned))[: options.rows]]
                centre, scale = learned.mean(axis=0), learned.std(axis=0)
                usable = scale > 1e-9 * np.abs(learned).max(axis=0)
                rows = (table[:, usable] - centre[usable]) / scale[usable]
                train = ((learned - centre)[:, usable]) / scale[usable]
                T, t = rows[test][: options.rows, :-1], rows[test][: options.rows, -1]
                begun = time.process_time()
                try:
                    mean, density, inside = run(train[:, :-1], train[:, -1], T, t)
                except Exception as error:
                    print(f"{name}, {learner}: {error}", file=sys.stderr)
                    continue
                seconds = time.process_time() - begun
                figures.append([np.sqrt(np.mean((mean - t) ** 2)), -np.mean(density), np.mean(inside), seconds])
            if figures:
                error, density, inside, seconds = np.mean(figures, axis=0)
                notes = ", ".join(getattr(run, "notes", []))
                size = f"{table.shape[0]} × {table.shape[1]}"
                print(f"| {name} | {size} | {learner} | {error:.3f} | {density:.3f} | {100 * inside:.1f} % | {seconds:.1f} | {notes} |", flush=True)


if __name__ == "__main__":
    main()
