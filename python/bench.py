#!/usr/bin/env python3
"""Seconds, memory and held-out log-density against scikit-learn's GaussianMixture, one thread each.

    python bench.py [--repeat 3] [--watch FILE]

Means over several seeds. Each fit runs in a process of its own, so that its memory can be told. Prints the table of README.md.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import json  # noqa: E402
import resource  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402


def drawn(rows: int, dim: int, k: int, spread: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of a mixture whose means are drawn with this standard deviation."""
    rng = np.random.default_rng(seed)
    means = rng.normal(0, spread, (k, dim))
    factors = np.linalg.cholesky([np.cov(rng.standard_normal((dim, 3 * dim))) for _ in range(k)]).reshape(k, dim, dim)
    labels = rng.choice(k, p=rng.dirichlet(np.full(k, 5.0)), size=rows + 20_000)
    values = rng.standard_normal((rows + 20_000, dim))
    for j in range(k):
        values[labels == j] = values[labels == j] @ factors[j].T + means[j]
    return values[:rows], values[rows:]


def held_out(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of a CSV file, in random order."""
    values = np.loadtxt(path, delimiter=",", skiprows=1)
    np.random.default_rng(0).shuffle(values)
    return values[values.shape[0] // 10:], values[: values.shape[0] // 10]


def one(kind: str, folder: Path, k: int, seed: int) -> dict:
    from sklearn.mixture import GaussianMixture

    from gmm_bmm import OnlineGaussianMixture

    train, test = np.load(folder / "train.npy"), np.load(folder / "test.npy")
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
    parser.add_argument("--one", nargs=4, metavar=("KIND", "FOLDER", "K", "SEED"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        kind, folder, k, seed = args.one
        print(json.dumps(one(kind, Path(folder), int(k), int(seed))))
        return
    sets = [
        ("200,000 × 3, K = 12, overlapping", 12, lambda: drawn(200_000, 3, 12, 2.0)),
        ("200,000 × 10, K = 12, overlapping", 12, lambda: drawn(200_000, 10, 12, 1.0)),
        ("200,000 × 10, K = 12, separated", 12, lambda: drawn(200_000, 10, 12, 3.0)),
        ("100,000 × 50, K = 8, overlapping", 8, lambda: drawn(100_000, 50, 8, 0.7)),
    ]
    if args.watch:
        sets.append((f"{Path(args.watch).name}, K = 10", 10, lambda: held_out(args.watch)))
    print("| rows × columns | fit, seconds, ours / theirs | faster | memory of fit, MB | held out, ours / theirs | `score_samples` | `predict_proba` |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for title, k, make in sets:
        with tempfile.TemporaryDirectory() as folder:
            for name, rows in zip(("train", "test"), make()):
                np.save(Path(folder) / f"{name}.npy", rows)
            found = {}
            for kind in ("ours", "theirs"):
                words = [sys.executable, __file__, "--one", kind, folder, str(k)]
                runs = [subprocess.run([*words, str(seed)], check=True, capture_output=True, text=True)
                        for seed in range(args.repeat)]
                runs = [json.loads(run.stdout) for run in runs]
                found[kind] = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
        ours, theirs = found["ours"], found["theirs"]
        ratio = {key: theirs[key] / ours[key] for key in ("seconds", "score_samples", "predict_proba")}
        print(
            f"| {title} | {ours['seconds']:.2f} / {theirs['seconds']:.2f} | {ratio['seconds']:.1f} × "
            f"| {ours['memory']:.0f} / {theirs['memory']:.0f} | {ours['held_out']:.4f} / {theirs['held_out']:.4f} "
            f"| {ratio['score_samples']:.1f} × | {ratio['predict_proba']:.1f} × |",
            flush=True,
        )


if __name__ == "__main__":
    main()
