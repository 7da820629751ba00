#!/usr/bin/env python3
"""Rows of whole weights against repeated rows: the difference of the mean log-density per row, in nats.

    python scripts/weight_trials.py FILE.csv... [--k 4] [--rows 4000]

Each row gets a weight of 0 to 3. One mixture learns the rows with their weights, another one each row as often as its weight says, in
random order. Both score other rows, which have no weight. Values that are no numbers are columns to leave out; columns are scaled to
standard deviation 1. Needs the package gmm_bmm, NumPy and pandas.
"""

import argparse

import numpy as np
import pandas

from gmm_bmm import OnlineGaussianMixture


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--rows", type=int, default=4000, help="at most so many rows of a set (default: 4000)")
    options = parser.parse_args()
    print("| set | rows × columns | weighted | repeated | difference | without weights |\n|---|---|---|---|---|---|")
    for file in options.files:
        table = pandas.read_csv(file).select_dtypes("number").dropna().to_numpy(dtype=float)
        rng = np.random.default_rng(0)
        rows = table[rng.permutation(len(table))[: options.rows]]
        rows = rows[:, rows.std(axis=0) > 0]
        # Discrete columns have no density: the noise of one per cent of a standard deviation gives them one.
        rows = rows / rows.std(axis=0)
        rows = rows + 0.01 * rng.standard_normal(rows.shape)
        rows, others = rows[: len(rows) * 3 // 4], rows[len(rows) * 3 // 4 :]
        weights = rng.integers(4, size=len(rows))
        repeated = rng.permutation(np.repeat(rows, weights, axis=0))

        def level(learned, sample_weight=None):
            mixture = OnlineGaussianMixture(options.k, random_state=0).fit(learned, sample_weight=sample_weight)
            return mixture.score(others)

        weighted, whole, without = level(rows, weights), level(repeated), level(rows)
        name = file.rsplit("/", 1)[-1].removesuffix(".csv")
        size = f"{rows.shape[0]} × {rows.shape[1]}"
        print(f"| {name} | {size} | {weighted:.4f} | {whole:.4f} | {weighted - whole:+.4f} | {without:.4f} |", flush=True)


if __name__ == "__main__":
    main()
