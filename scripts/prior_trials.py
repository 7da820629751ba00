#!/usr/bin/env python3
"""Measures the learned prior: held-out mean log-density per row with K learned, against scikit-learn's mixtures.

    scripts/prior_trials.py digits                         handwritten digits of scikit-learn, dequantized
    scripts/prior_trials.py table FILE ...                 CSV or .npz (X) files, columns scaled to standard deviation 1
    scripts/prior_trials.py groups                         60 rows x 200 columns in two groups: which K is found
    scripts/prior_trials.py small DATASET ...              bundled sets, given K and learned K, dequantized
    scripts/prior_trials.py seconds --columns 384 --components 5 --rows 20000   CPU seconds and memory, like embeddings
    scripts/prior_trials.py words FOLDER ...               100 numbers for each of the frequent words of texts in FOLDER
    scripts/prior_trials.py patches FOLDER --components 30 --rows 200000   8 x 8 patches of FOLDER/train and FOLDER/test

--peers also fits scikit-learn's full, tied and diagonal mixtures, for each K of --peer-k; in 'seconds', GaussianMixture
learns and scores the same rows.
The program is target/release/gmm-bmm, or the value of GMM_BMM. One row in five (digits) or ten is held out. All runs use one
thread, and seconds are CPU seconds (user time). Files are written to target/trials. Needs NumPy, and scikit-learn for peers
and digits; patches need Pillow.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import time
import warnings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = os.environ.get("GMM_BMM", str(ROOT / "target/release/gmm-bmm"))
FOLDER = pathlib.Path(os.environ.get("TRIALS", str(ROOT / "target/trials")))


def run(*arguments):
    done = subprocess.run([COMMAND, *map(str, arguments), "--json", "--quiet"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}\n{done.stderr}")
    return json.loads(done.stdout)


def save(name, rows):
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}-{os.getpid()}.npy"
    np.save(path, np.ascontiguousarray(rows, dtype=float))
    return path


def ours(train, test, k, *more):
    """Held-out score, K, the strength of the prior and CPU seconds."""
    train, test, model = save("train", train), save("test", test), FOLDER / f"model-{os.getpid()}.json"
    seconds = timed("fit", "--data", train, "--k", k, "--out", model, *more)[1]
    shown = run("show", model)
    score = run("eval", "--model", model, "--data", test)["mean_log_likelihood"]
    for path in (train, test, model):
        path.unlink()
    return score, shown["k"], shown.get("prior_strength"), seconds


def timed(*arguments):
    """What a command prints, and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    printed = run(*arguments)
    return printed, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def measured(*arguments):
    """CPU seconds and the largest resident set in MB. A small process starts the command: the resident set of a process that starts
    another one counts as that of the other."""
    inner = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
             "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_utime, used.ru_maxrss / 1024)")
    done = subprocess.run([sys.executable, "-c", inner, COMMAND, *map(str, arguments), "--quiet"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}\n{done.stderr}")
    return map(float, done.stdout.split())


def peers(train, test, ks):
    from sklearn.mixture import GaussianMixture

    warnings.simplefilter("ignore")
    for kind in ("full", "tied", "diag"):
        for k in ks:
            if k >= len(train):
                continue
            fit = GaussianMixture(k, covariance_type=kind, random_state=0).fit(train)
            yield kind, k, fit.score(test)


def split(rows, seed, part):
    order = np.random.default_rng(seed).permutation(len(rows))
    held = len(rows) // part
    return rows[order[held:]], rows[order[:held]]


def compare(name, rows, args, part=10):
    for seed in range(args.seeds):
        train, test = split(rows, seed, part)
        mean, deviation = train.mean(0), train.std(0)
        train, test = (train - mean) / deviation, (test - mean) / deviation
        score, k, strength, seconds = ours(train, test, args.k, "--seed", seed + 1, *args.more)
        worth = "-" if strength is None else f"{strength:.3g}"
        print(f"| {name} | {len(train)} x {train.shape[1]} | {seed} | {score:.3f} | {k} | {worth} | {seconds:.1f} |", flush=True)
        if args.peers:
            found = sorted(peers(train, test, args.peer_k), key=lambda peer: -peer[2])
            best = {kind: next(p for p in found if p[0] == kind) for kind in ("full", "tied", "diag")}
            text = ", ".join(f"{kind} {score:.3f} (K = {k})" for kind, k, score in best.values())
            print(f"|   scikit-learn | | {seed} | {text} | | | |", flush=True)


def table_header():
    print("| data | rows x columns | seed | held out | K | prior worth | CPU s |\n|---|---|---|---|---|---|---|")


def digits(args):
    from sklearn.datasets import load_digits

    rows = load_digits().data
    rows = rows + np.random.default_rng(0).random(rows.shape)
    discrete = load_digits().data
    rows = rows[:, (discrete.std(0) > 0) & ((discrete == discrete[0]).mean(0) < 0.99)]
    compare("digits", rows, args, part=5)


def table(args):
    for path in args.files:
        if path.endswith(".npz"):
            rows = np.load(path, allow_pickle=True)["X"].astype(float)
        else:
            rows = np.genfromtxt(path, delimiter=",", skip_header=1)
        # Columns that are mostly one value have no density.
        most = np.array([np.unique(column, return_counts=True)[1].max() for column in rows.T])
        rows = rows[:, most < 0.5 * len(rows)]
        compare(pathlib.Path(path).stem, rows, args)


def groups(args):
    for seed in range(args.seeds):
        random = np.random.default_rng(seed)
        rows = random.normal(size=(60, 200)) + 2.0 * (np.arange(60) % 2)[:, None] * random.normal(size=200)
        test = rows[:6] + 0.0
        _, k, strength, seconds = ours(rows, test, args.k, "--seed", seed + 1, *args.more)
        print(f"seed {seed}: K = {k}, prior worth {strength}, {seconds:.1f} s", flush=True)


def small(args):
    for name in args.files:
        rows = np.genfromtxt(ROOT / "datasets" / f"{name}.csv", delimiter=",", skip_header=1)
        rows = rows[:, ~np.isnan(rows).any(0)]
        noise = np.random.default_rng(0).random(rows.shape)
        for j in range(rows.shape[1]):
            values = np.unique(rows[:, j])
            if len(values) < 0.2 * len(rows):
                rows[:, j] += noise[:, j] * np.diff(values).min()
        compare(name, rows, args)


def seconds(args):
    random = np.random.default_rng(0)
    d, k = args.columns, args.components
    latent = random.normal(size=(args.rows, 30)) @ random.normal(size=(30, d)) / 5
    rows = latent + random.normal(size=(args.rows, d)) + 1.5 * random.normal(size=(k, d))[random.integers(k, size=args.rows)]
    rows = rows.astype(np.float32).astype(float)
    data, model = save("rows", rows), FOLDER / f"model-{os.getpid()}.json"
    own, memory = measured("fit", "--data", data, "--k", k if args.k == "auto" else args.k, "--out", model, *args.more)
    # Reading the model takes as long for two rows.
    score, scoring = timed("eval", "--model", model, "--data", data)
    few = save("few", rows[:2])
    idle = timed("eval", "--model", model, "--data", few)[1]
    print(f"gmm-bmm: fit {own:.1f} s, at most {memory:.0f} MB; score {score['mean_log_likelihood']:.2f}; "
          f"scoring {scoring - idle:.2f} s with reading the rows", flush=True)
    for path in (data, few, model):
        path.unlink()
    if args.peers:
        from sklearn.mixture import GaussianMixture

        before = time.process_time()
        fit = GaussianMixture(k, random_state=0).fit(rows)
        fitted = time.process_time()
        score = fit.score(rows)
        print(f"GaussianMixture: fit {fitted - before:.1f} s, {fit.n_iter_} iterations; score {score:.2f}; "
              f"scoring {time.process_time() - fitted:.2f} s")


def words(args):
    """Vectors of the words of texts: the leading singular vectors of the positive mutual information of neighbours."""
    import re

    from scipy.sparse import coo_matrix
    from scipy.sparse.linalg import svds

    texts = [path for folder in args.files for path in sorted(pathlib.Path(folder).rglob("*")) if path.suffix in (".md", ".py", ".rst", ".txt")]
    found = [re.findall("[a-z]+", path.read_text(errors="ignore").lower()) for path in texts]
    counts = {}
    for text in found:
        for word in text:
            counts[word] = counts.get(word, 0) + 1
    known = {word: i for i, word in enumerate(sorted(counts, key=lambda word: (-counts[word], word))[:args.rows])}
    pairs = np.zeros(0, np.int64)
    for text in found:
        numbers = np.array([known.get(word, -1) for word in text], np.int64)
        for away in range(1, 5):
            one, other = numbers[:-away], numbers[away:]
            both = (one >= 0) & (other >= 0)
            pairs = np.concatenate([pairs, one[both] * len(known) + other[both], other[both] * len(known) + one[both]])
        if len(pairs) > 20_000_000:
            break
    places, times = np.unique(pairs, return_counts=True)
    rows, columns = np.divmod(places, len(known))
    of_word = np.bincount(rows, times, len(known))
    information = np.log(times * times.sum() / (of_word[rows] * of_word[columns]))
    positive = information > 0
    table = coo_matrix((information[positive], (rows[positive], columns[positive])), (len(known), len(known))).tocsr()
    vectors, values, _ = svds(table, k=100, random_state=0)
    compare("words", vectors * np.sqrt(values), args)


def patches(args):
    """8 x 8 patches of grey images plus uniform noise of one grey level, / 256, without their mean and the last pixel."""
    from PIL import Image

    def of_folder(name, count, seed):
        random, parts = np.random.default_rng(seed), []
        paths = sorted(pathlib.Path(args.files[0], name).iterdir())
        each = -(-count // len(paths))
        for path in paths:
            image = np.asarray(Image.open(path).convert("L"), float)
            tops = random.integers(0, image.shape[0] - 7, each)
            lefts = random.integers(0, image.shape[1] - 7, each)
            part = np.stack([image[i:i + 8, j:j + 8].ravel() for i, j in zip(tops, lefts)])
            part = (part + random.random(part.shape)) / 256
            parts.append((part - part.mean(1, keepdims=True))[:, :-1])
        parts = np.concatenate(parts)
        random.shuffle(parts)
        return parts[:count]

    train, test = of_folder("train", args.rows, 1), of_folder("test", 50_000, 2)
    score, k, strength, own = ours(train, test, args.components, *args.more)
    print(f"{args.rows} patches, K = {k}: {score:.3f}, prior worth {strength:.3g}, {own:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    trials = {"digits": digits, "table": table, "groups": groups, "small": small, "seconds": seconds, "words": words,
              "patches": patches}
    parser.add_argument("trial", choices=trials)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--k", default="auto")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--peer-k", type=lambda text: [int(k) for k in text.split(",")], default=[1, 2, 3, 5, 10, 20, 30])
    parser.add_argument("--columns", type=int, default=384)
    parser.add_argument("--components", type=int, default=5)
    parser.add_argument("--rows", type=int, default=20_000)
    args, args.more = parser.parse_known_args()
    if args.trial in ("digits", "table", "small", "words"):
        table_header()
    trials[args.trial](args)


if __name__ == "__main__":
    main()
