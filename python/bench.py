#!/usr/bin/env python3
"""Seconds, memory and held-out log-density against scikit-learn's GaussianMixture, one thread each.

    python bench.py [--repeat 3] [--watch FILE]

Each fit runs in a process of its own, so that the largest resident set is that of one fit. Prints the table of README.md.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import json  # noqa: E402
import resource  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402


def drawn(rows: int, dim: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of a mixture whose clusters overlap."""
    rng = np.random.default_rng(seed)
    means = rng.normal(0, 3.0 if dim > 5 else 4.0, (k, dim))
    factors = np.linalg.cholesky([np.cov(rng.standard_normal((dim, 3 * dim))) for _ in range(k)]).reshape(k, dim, dim)
    labels = rng.choice(k, p=rng.dirichlet(np.full(k, 5.0)), size=rows + 20_000)
    values = means[labels] + np.einsum("nij,nj->ni", factors[labels], rng.standard_normal((rows + 20_000, dim)))
    return values[:rows], values[rows:]


def data(name: str, watch: str | None):
    if name == "watch":
        values = np.loadtxt(watch, delimiter=",", skiprows=1)
        np.random.default_rng(0).shuffle(values)
        return values[values.shape[0] // 10:], values[: values.shape[0] // 10], 10
    rows, dim, k = map(int, name.split("x"))
    return *drawn(rows, dim, k, 1), k


def one(kind: str, name: str, seed: int, watch: str | None) -> dict:
    from sklearn.mixture import GaussianMixture

    from gmm_bmm import OnlineGaussianMixture

    train, test, k = data(name, watch)
    estimator = {
        "ours": lambda: OnlineGaussianMixture(k, random_state=seed),
        "theirs": lambda: GaussianMixture(k, random_state=seed),
    }[kind]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    estimator.fit(train)
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    timed = {}
    for method in ("score_samples", "predict_proba"):
        begun = time.perf_counter()
        getattr(estimator, method)(train)
        timed[method] = time.perf_counter() - begun
    return {"seconds": seconds, "memory": (after - before) / 1024, "held_out": estimator.score(test), **timed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--watch", help="a CSV file to add as a third, real set")
    parser.add_argument("--one", nargs=3, metavar=("KIND", "NAME", "SEED"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        kind, name, seed = args.one
        print(json.dumps(one(kind, name, int(seed), args.watch)))
        return
    names = ["200000x3x12", "200000x10x12", "100000x50x8"] + (["watch"] if args.watch else [])
    print("| rows × columns, K | seconds, ours / theirs | faster | memory, MB | held out, ours / theirs | score_samples | predict_proba |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        found = {}
        for kind in ("ours", "theirs"):
            runs = []
            for seed in range(args.repeat):
                words = [sys.executable, __file__, "--one", kind, name, str(seed)]
                words += ["--watch", args.watch] if args.watch else []
                runs.append(json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout))
            found[kind] = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
        ours, theirs = found["ours"], found["theirs"]
        ratio = {key: theirs[key] / ours[key] for key in ("seconds", "score_samples", "predict_proba")}
        title = name if name == "watch" else "{} × {}, {}".format(*name.split("x"))
        print(
            f"| {title} | {ours['seconds']:.2f} / {theirs['seconds']:.2f} | {ratio['seconds']:.1f} × "
            f"| {ours['memory']:.0f} / {theirs['memory']:.0f} | {ours['held_out']:.4f} / {theirs['held_out']:.4f} "
            f"| {ratio['score_samples']:.1f} × | {ratio['predict_proba']:.1f} × |",
            flush=True,
        )


if __name__ == "__main__":
    main()
