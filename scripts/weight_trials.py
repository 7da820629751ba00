#!/usr/bin/env python3
"""Rows with weights against absent and repeated rows, in every way of learning.

    python scripts/weight_trials.py FILE.csv... [--rows 4000] [--k 4] [--seeds 5]

For each set and way of learning:

absent    Rows of weight 0 and 1 are learned, and the rows of weight 1 alone. Both have to score other rows alike, to the last bit.
repeated  Rows of weight 0 to 3 are learned, and each row as often as its weight says, in random order. The table has the difference of
          the mean log-density of other rows, weighted − repeated, in nats per row.
noise     The same difference between two random orders of the repeated rows, which has nothing to do with weights.
ranks     The largest difference of the ranks of other rows, weighted − repeated.

With --seeds, several seeds of the learner in one way, fit: the table has the mean log-density of other rows, weighted and repeated (in two orders), for each
seed. So a difference that is chance of the search shows.

The ways: `fit`; `batches` of 100 rows with a start of 500; `half-life` of 1,000 rows in batches, where repeated rows follow each other (for
the noise: in random order within 200 rows); `gaps` in a tenth of the values; `shards`, three of them after 40 % of the rows; `resume`, saved and loaded in the middle; `learned K`.

Columns that are no numbers are left out; the others are scaled to standard deviation 1. Needs the package gmm_bmm, NumPy and pandas.
"""

import argparse
import pickle

import numpy as np
import pandas

from gmm_bmm import OnlineGaussianMixture, merge

WAYS = ["fit", "batches", "half-life", "gaps", "shards", "resume", "learned K"]


def learned(way, rows, weights, k, seed=0):
    """A mixture of the rows. Without weights, each row counts once."""
    weights = np.ones(len(rows)) if weights is None else weights.astype(float)

    def mixture(k=k, **options):
        return OnlineGaussianMixture(k, random_state=seed, **options)

    def batches(mixture, first, last, size=100):
        for i in range(first, last, size):
            part = slice(i, min(i + size, last))
            mixture.partial_fit(rows[part], sample_weight=weights[part])
        return mixture

    n = len(rows)
    if way in ("fit", "gaps", "learned K"):
        options = {"missing": "marginal"} if way == "gaps" else {}
        return mixture("auto" if way == "learned K" else k, **options).fit(rows, sample_weight=weights)
    if way == "half-life":
        return batches(mixture(start_rows=500, half_life=1000), 0, n).finish()
    if way == "resume":
        half = batches(mixture(start_rows=500), 0, n // 2)
        return batches(pickle.loads(pickle.dumps(half)), n // 2, n).finish()
    if way == "shards":
        # Parts with as many rows that count, however many rows of weight 0 are between them.
        bounds = np.quantile(np.flatnonzero(weights > 0), [0.4, 0.6, 0.8], method="lower").astype(int)
        first, *parts = np.split(np.arange(n), bounds)
        prior = mixture().fit(rows[first], sample_weight=weights[first])
        shards = [prior.shard().partial_fit(rows[part], sample_weight=weights[part]) for part in parts]
        return merge(shards, prior=prior)
    return batches(mixture(start_rows=500), 0, n).finish()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--rows", type=int, default=4000, help="at most so many rows of a set (default: 4000)")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seeds", type=int)
    options = parser.parse_args()
    if options.seeds:
        print("| set | seed | weighted | repeated | repeated in another order |\n|---|---|---|---|---|")
    else:
        print("| set | rows × columns | way | absent | repeated | noise | ranks |\n|---|---|---|---|---|---|---|")
    for file in options.files:
        table = pandas.read_csv(file).select_dtypes("number").dropna().to_numpy(dtype=float)
        rng = np.random.default_rng(0)
        rows = table[rng.permutation(len(table))[: options.rows]]
        rows = rows[:, rows.std(axis=0) > 0]
        # Discrete columns have no density: the noise of one per cent of a standard deviation gives them one.
        rows = rows / rows.std(axis=0)
        rows = rows + 0.01 * rng.standard_normal(rows.shape)
        rows, others = rows[: len(rows) * 3 // 4], rows[len(rows) * 3 // 4 :]
        with_gaps = np.where(rng.random(rows.shape) < 0.1, np.nan, rows)
        with_gaps[:, 0] = rows[:, 0]
        weights = rng.integers(4, size=len(rows))
        name = file.rsplit("/", 1)[-1].removesuffix(".csv")
        for seed in range(options.seeds or 0):
            order = np.repeat(np.arange(len(rows)), weights)
            weighted = learned("fit", rows, weights, options.k, seed)
            repeated = [learned("fit", rows[rng.permutation(order)], None, options.k, seed) for _ in range(2)]
            levels = " | ".join(f"{mixture.score(others):.4f}" for mixture in (weighted, *repeated))
            print(f"| {name} | {seed} | {levels} |", flush=True)
        if options.seeds:
            continue
        for way in options.ways.split(","):
            own = with_gaps if way == "gaps" else rows
            zeros, ones = learned(way, own, (weights > 0) * 1, options.k), learned(way, own[weights > 0], None, options.k)
            same = np.array_equal(zeros.score_samples(others), ones.score_samples(others))
            order = np.repeat(np.arange(len(own)), weights)
            if way == "half-life":
                windows = [rng.permutation(part) for part in np.array_split(order, max(1, len(order) // 200))]
                shuffled = [order, np.concatenate(windows)]
            else:
                shuffled = [rng.permutation(order), rng.permutation(order)]
            weighted = learned(way, own, weights, options.k)
            repeated, again = (learned(way, own[order], None, options.k) for order in shuffled)
            levels = [mixture.score(others) for mixture in (weighted, repeated, again)]
            ranks = np.abs(weighted.rank_samples(others) - repeated.rank_samples(others)).max()
            print(
                f"| {name} | {rows.shape[0]} × {rows.shape[1]} | {way} | {'equal' if same else 'DIFFERENT'} | "
                f"{levels[0] - levels[1]:+.4f} | {levels[1] - levels[2]:+.4f} | {ranks:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
