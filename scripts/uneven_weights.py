#!/usr/bin/env python3
"""Rows with uneven and with equal weights against rows without weights, on four clear Gaussians.

    python scripts/uneven_weights.py [--rows 2000] [--seeds 10] [--columns 2,5,10] [--sigma 2]

For each number of columns, rows are drawn from four Gaussians that hardly overlap. Scores are mean log-densities of 5,000 other rows, less those under the
true mixture.

uneven    Weights are lognormal with this sigma and a mean of 1, and say nothing about the place of a row. `EM` begins from the true mixture and uses the
          weights, so its loss is that of the weights alone.
equal     All rows have the same weight: 2, 5, 100 and 1,000.

Needs the package gmm_bmm and NumPy.
"""

import argparse

import numpy as np

from gmm_bmm import OnlineGaussianMixture

K = 4


def log_density(X, mixture):
    terms = []
    for weight, mean, covariance in zip(*mixture):
        lower = np.linalg.cholesky(covariance)
        white = np.linalg.solve(lower, (X - mean).T)
        terms.append(np.log(weight) - np.log(np.diag(lower)).sum() - 0.5 * (white**2).sum(0) - 0.5 * X.shape[1] * np.log(2 * np.pi))
    return np.logaddexp.reduce(terms), np.array(terms)


def draw(d, rows, seed):
    """Rows, other rows, and the true mixture."""
    rng = np.random.default_rng(1000 * d + seed)
    while True:
        means = rng.normal(size=(K, d)) * 6 / np.sqrt(2 * min(d, 4))
        apart = np.linalg.norm(means[:, None] - means[None], axis=2) + 1e9 * np.eye(K)
        if apart.min() > 4.8:
            break
    shapes = [np.linalg.qr(rng.normal(size=(d, d)))[0] * np.sqrt(rng.uniform(0.3, 1.5, size=d)) for _ in range(K)]
    weights = rng.dirichlet(np.full(K, 8.0))

    def some(count):
        which = rng.choice(K, size=count, p=weights)
        return np.array([means[j] + shapes[j] @ z for j, z in zip(which, rng.normal(size=(count, d)))])

    return some(rows), some(5000), (weights, means, np.array([shape @ shape.T for shape in shapes]))


def em(X, w, mixture, iterations=30):
    for _ in range(iterations):
        total, terms = log_density(X, mixture)
        shares = np.exp(terms - total) * w
        counts = shares.sum(1)
        means = (shares @ X) / counts[:, None]
        away = X[None] - means[:, None]
        covariances = np.einsum("ji,jik,jil->jkl", shares, away, away) / counts[:, None, None] + 1e-4 * np.eye(X.shape[1])
        mixture = (counts / counts.sum(), means, covariances)
    return mixture


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--columns", default="2,5,10")
    parser.add_argument("--sigma", type=float, default=2.0)
    options = parser.parse_args()
    print("| weights | columns | no weights | K = 4 | learned K | the learned K | EM |\n|---|---|---|---|---|---|---|")
    for d in map(int, options.columns.split(",")):
        found = {}
        for seed in range(options.seeds):
            X, others, truth = draw(d, options.rows, seed)
            best = log_density(others, truth)[0].mean()
            uneven = np.random.default_rng(7 + seed).lognormal(0, options.sigma, size=options.rows)
            weights = {f"lognormal, σ = {options.sigma:g}": uneven / uneven.mean()}
            weights |= {f"all {weight}": np.full(options.rows, float(weight)) for weight in (2, 5, 100, 1000)}
            plain = OnlineGaussianMixture(K, random_state=0).fit(X).score(others) - best
            for name, w in weights.items():
                given, learned = (OnlineGaussianMixture(k, random_state=0).fit(X, sample_weight=w) for k in (K, "auto"))
                bound = log_density(others, em(X, w, truth))[0].mean() - best
                levels = (plain, given.score(others) - best, learned.score(others) - best, bound)
                found.setdefault(name, []).append((*levels, learned.n_components_))
        for name, rows in found.items():
            plain, given, learned, bound, _ = np.mean(rows, axis=0)
            ks = " ".join(str(row[-1]) for row in rows)
            print(f"| {name} | {d} | {plain:+.3f} | {given:+.3f} | {learned:+.3f} | {ks} | {bound:+.3f} |", flush=True)


if __name__ == "__main__":
    main()
