#!/usr/bin/env python3
"""Anomaly detection: MixtureOutlierDetector against kNN, isolation forest, ECOD, LOF and GaussianMixture.

    python scripts/anomaly_trials.py FOLDER... [--sets shuttle,cover] [--rows 10000] [--protocol novelty|unsupervised|stream|speed]

Each FOLDER holds files NAME.npz with rows X and labels y, where 1 is an anomaly, as those of ADBench. Columns get mean 0 and standard
deviation 1 by the rows that are learned. Protocols:

novelty       Learned: a random half of the normal rows. Scored: all other rows.
unsupervised  Learned and scored: all rows, with their anomalies.
stream        Rows in random order, in batches of 100. Each batch is scored, then learned. The first 1,000 rows are not counted.
speed         Seconds to learn and to score, rows scored per second, and the bytes of the pickled detector.

The table has means over the sets: area under the ROC curve, average precision, seconds of CPU to learn and score. Needs the package
gmm_bmm, NumPy and scikit-learn; river too for the protocol stream.
"""

import argparse
import pathlib
import pickle
import time

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from gmm_bmm import MixtureOutlierDetector

NOVELTY_SHARE = 0.01
"""What `contamination` says of rows that are known to be normal."""


class Neighbours:
    """The distance to the fifth nearest learned row."""

    def fit(self, X):
        self.index, self.learned = NearestNeighbors(n_neighbors=6).fit(X), X
        return self

    def score_samples(self, X):
        distances = self.index.kneighbors(X)[0]
        # A row that was learned is its own neighbour.
        return -distances[:, 5 if X is self.learned else 4]


class Ecod:
    """Tail probabilities of each column by its empirical distribution (Li et al., 2022)."""

    def fit(self, X):
        self.columns = np.sort(X, axis=0)
        centred = X - X.mean(axis=0)
        self.skewness = (centred**3).mean(axis=0)
        return self

    def score_samples(self, X):
        n = len(self.columns)
        left, right, skewed = np.zeros((3, len(X)))
        for column, values, skewness in zip(self.columns.T, X.T, self.skewness):
            below = -np.log(np.maximum(np.searchsorted(column, values, "right"), 1) / n)
            above = -np.log(np.maximum(n - np.searchsorted(column, values, "left"), 1) / n)
            left += below
            right += above
            skewed += below if skewness < 0 else above
        return -np.max([left, right, skewed], axis=0)


class Lof:
    def fit(self, X):
        self.learned = X
        neighbours = min(20, len(X) - 1)
        self.novel = LocalOutlierFactor(neighbours, novelty=True).fit(X)
        return self

    def score_samples(self, X):
        return self.novel.negative_outlier_factor_ if X is self.learned else self.novel.score_samples(X)


class Mixture8:
    def fit(self, X):
        self.mixture = GaussianMixture(min(8, len(X)), reg_covar=1e-3, random_state=0).fit(X)
        return self

    def score_samples(self, X):
        return self.mixture.score_samples(X)


def learners(share):
    return {
        "mixture": lambda: MixtureOutlierDetector(share, random_state=0),
        "kNN (5)": Neighbours,
        "isolation forest": lambda: IsolationForest(random_state=0),
        "ECOD": Ecod,
        "LOF (20)": Lof,
        "GaussianMixture (8)": Mixture8,
    }


def load(path, most, seed):
    """At most so many rows of a set, in random order, with their labels."""
    with np.load(path) as file:
        X, y = file["X"].astype(float), file["y"].ravel().astype(int)
    chosen = np.random.default_rng(seed).permutation(len(X))[:most]
    return X[chosen], y[chosen]


def scaled(learned, *others):
    """Columns with mean 0 and standard deviation 1 by the learned rows. Constant columns are left out."""
    mean, deviation = learned.mean(axis=0), learned.std(axis=0)
    varies = deviation > 1e-12 * np.maximum(1.0, np.abs(mean))
    return [(rows[:, varies] - mean[varies]) / deviation[varies] for rows in (learned, *others)]


def figures(y, scores):
    scores = np.nan_to_num(-scores, posinf=1e300, neginf=-1e300)
    return roc_auc_score(y, scores), average_precision_score(y, scores)


def batch_trial(X, y, protocol, make):
    if protocol == "novelty":
        normal = np.flatnonzero(y == 0)
        learned = np.zeros(len(X), dtype=bool)
        learned[normal[: len(normal) // 2]] = True
        train, test = scaled(X[learned], X[~learned])
        y = y[~learned]
    else:
        (train,) = scaled(X)
        test = train
    begun = time.process_time()
    scores = make().fit(train).score_samples(test)
    return *figures(y, scores), time.process_time() - begun


def stream_trial(X, y, name):
    """Area under the ROC curve and average precision of scores before each batch is learned."""
    from river.anomaly import HalfSpaceTrees

    start, size = 1000, 100
    begun = time.process_time()
    scores = []
    if name == "HalfSpaceTrees":
        low, high = X[:start].min(axis=0), X[:start].max(axis=0)
        unit = np.clip((X - low) / np.where(high > low, high - low, 1.0), 0, 1)
        trees = HalfSpaceTrees(seed=0)
        for i, row in enumerate(unit):
            row = dict(enumerate(row.tolist()))
            if i >= start:
                scores.append(-trees.score_one(row))
            trees.learn_one(row)
    else:
        detector = MixtureOutlierDetector(random_state=0).partial_fit(X[:start])
        for first in range(start, len(X), size):
            batch = X[first : first + size]
            scores.extend(detector.score_samples(batch))
            detector.partial_fit(batch)
    return *figures(y[start:], np.array(scores)), time.process_time() - begun


def speed_trial(X, make):
    (train,) = scaled(X)
    begun = time.process_time()
    detector = make().fit(train)
    learned = time.process_time()
    detector.score_samples(train.copy())
    ended = time.process_time()
    return learned - begun, ended - learned, len(train) / (ended - learned), len(pickle.dumps(detector)) / 2**20


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=pathlib.Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--sets", help="names or parts of names, with commas")
    parser.add_argument("--rows", type=int, default=5000, help="at most so many rows of a set (default: 5000)")
    parser.add_argument("--columns", type=int, default=600, help="only sets with at most so many columns (default: 600)")
    parser.add_argument("--protocol", choices=["novelty", "unsupervised", "stream", "speed"], default="unsupervised")
    parser.add_argument("--learners", help="names, with commas (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice and the order of rows")
    options = parser.parse_args()
    every = learners(NOVELTY_SHARE if options.protocol == "novelty" else "auto")
    if options.protocol == "stream":
        every = {"mixture": None, "HalfSpaceTrees": None}
    names = options.learners.split(",") if options.learners else list(every)
    paths = [path for folder in options.folders for path in sorted(folder.glob("*.npz"))]
    if options.sets:
        paths = [path for path in paths if any(part in path.stem for part in options.sets.split(","))]
    found = {}
    for path in paths:
        X, y = load(path, options.rows, options.seed)
        if X.shape[1] > options.columns or not 0 < y.sum() < len(y):
            continue
        for name in names:
            if options.protocol == "stream":
                figure = stream_trial(X, y, name)
            elif options.protocol == "speed":
                figure = speed_trial(X, every[name])
            else:
                figure = batch_trial(X, y, options.protocol, every[name])
            found.setdefault(f"{path.stem} ({len(X)} × {X.shape[1]}, {100 * y.mean():.1f} %)", {})[name] = figure
    if options.protocol == "speed":
        head = ["set", "learner", "seconds to learn", "seconds to score", "rows scored per second", "MiB"]
        rows = [
            [label, name, f"{f[0]:.2f}", f"{f[1]:.2f}", f"{f[2]:,.0f}", f"{f[3]:.2f}"]
            for label, by in found.items()
            for name, f in by.items()
        ]
        return table(head, rows)
    print(f"{len(found)} sets\n")
    means = [np.mean([by[name] for by in found.values()], axis=0) for name in names]
    head = ["learner", "area under ROC", "average precision", "seconds"]
    table(head, [[name, f"{m[0]:.4f}", f"{m[1]:.4f}", f"{m[2]:.2f}"] for name, m in zip(names, means)])
    print("\nArea under the ROC curve:\n")
    table(
        ["set (rows × columns, anomalies)", *names],
        [[label, *(f"{by[name][0]:.3f}" for name in names)] for label, by in found.items()],
    )


if __name__ == "__main__":
    main()
