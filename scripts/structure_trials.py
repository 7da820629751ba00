#!/usr/bin/env python3
"""Measures what revisions of the structure achieve. Each trial prints a Markdown table; results/structure/README.md shows them.

    scripts/structure_trials.py mixtures          K = 12 in 3 to 91 dimensions, ten seeds each, 60,000 rows
    scripts/structure_trials.py many              K = 30 in 3 and 10 dimensions, 200,000 rows
    scripts/structure_trials.py sensors           a stream in time order, with modes that appear late
    scripts/structure_trials.py hard              heavy tails, and clusters whose scales span three decades
    scripts/structure_trials.py order             bundled data sets in file order and shuffled
    scripts/structure_trials.py watch FILE        a real stream in file order and shuffled, every tenth row held out
    scripts/structure_trials.py clusters          components united into clusters: skewed data, and a stream with spikes
    scripts/structure_trials.py parts             Magic04 sorted by class, learned as 2, 4 and 10 shards and merged
    scripts/structure_trials.py memory            the largest resident set of fit in 10 to 100 dimensions

The program is target/release/gmm-bmm, or the value of GMM_BMM. `sensors`, `hard` and `watch` compare with scikit-learn if
it is installed. Files are written to target/trials.
"""

import argparse
import collections
import csv
import json
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = os.environ.get("GMM_BMM", str(ROOT / "target/release/gmm-bmm"))
FOLDER = ROOT / "target/trials"

try:
    import numpy
    from sklearn.mixture import GaussianMixture
except ImportError:
    numpy = None


def run(*arguments):
    done = subprocess.run([COMMAND, *map(str, arguments), "--json", "--quiet"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}\n{done.stderr}")
    return json.loads(done.stdout)


def held_out(model, data, *more):
    return run("eval", "--model", model, "--data", data, *more)["mean_log_likelihood"]


def fit(data, k, *more):
    model = FOLDER / "model.json"
    return model, run("fit", "--data", data, "--k", k, "--out", model, *more)


def draw(name, *options):
    """Draws training rows and test rows. Returns their files and that of the true model."""
    train, test, truth = (FOLDER / f"{name}.{end}" for end in ("csv", "test.csv", "truth.json"))
    run("synth", *options, "--out", train, "--test-out", test, "--truth", truth)
    return train, test, truth


def table(header, rows):
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |", flush=True)


def free_numbers(k, dim):
    return k - 1 + k * (dim + dim * (dim + 1) // 2)


def mixtures(args):
    rows = []
    for dim in args.dims or [3, 10, 20, 50, 91]:
        gaps, limit = [], 1.25 * free_numbers(12, dim) / (2 * 60_000) + 0.01
        seconds = 0.0
        for seed in range(1, args.seeds + 1):
            train, test, truth = draw("mixture", "--k", 12, "--d", dim, "--n", 60_000, "--seed", seed, "--test-rows", 20_000)
            model, result = fit(train, 12, *args.more)
            gaps.append(held_out(truth, test) - held_out(model, test))
            seconds += result["learn_seconds"]
            train.unlink()
        within = sum(gap <= limit for gap in gaps)
        shown = " ".join(f"{gap:.4f}" + ("" if gap <= limit else "!") for gap in gaps)
        rows.append([dim, f"{limit:.4f}", f"{within} of {len(gaps)}", shown, f"{seconds / len(gaps):.1f}"])
    table(["columns", "limit", "within", "gap to the true model, one figure per seed", "mean seconds"], rows)


def many(args):
    rows = []
    for dim in (3, 10):
        gaps = []
        for seed in range(1, args.seeds + 1):
            train, test, truth = draw("many", "--k", 30, "--d", dim, "--n", 200_000, "--seed", seed, "--test-rows", 20_000)
            model, _ = fit(train, 30, *args.more)
            gaps.append(held_out(truth, test) - held_out(model, test))
        rows.append([dim, " ".join(f"{gap:.4f}" for gap in gaps)])
    table(["columns", "gap to the true model, one figure per seed (limit 0.01)"], rows)


def numbers(path):
    return numpy.loadtxt(path, delimiter=",", skiprows=1)


def from_labels(rows, labels, count):
    """Runs EM from the true clusters."""
    means = numpy.array([rows[labels == j].mean(0) for j in range(count)])
    precisions = numpy.array([numpy.linalg.inv(numpy.cov(rows[labels == j].T)) for j in range(count)])
    weights = numpy.array([(labels == j).mean() for j in range(count)])
    weights /= weights.sum()
    return GaussianMixture(count, weights_init=weights, means_init=means, precisions_init=precisions, max_iter=50,
                           reg_covar=1e-10).fit(rows)


def adjusted_rand_index(one, other):
    def pairs(labels):
        return sum(count * (count - 1) / 2 for count in collections.Counter(labels).values())

    both, alone = pairs(zip(one, other)), (pairs(one), pairs(other))
    expected = alone[0] * alone[1] / pairs([0] * len(one))
    return (both - expected) / ((alone[0] + alone[1]) / 2 - expected)


def predicted(model, data, column):
    scores = FOLDER / "scores.csv"
    run("eval", "--model", model, "--data", data, "--scores", scores)
    with open(scores) as lines:
        return [row[column] for row in csv.DictReader(lines)]


def make_stream(kind, name, seed, rows, test_rows, *more):
    out = FOLDER / f"{name}.csv"
    subprocess.run([sys.executable, ROOT / "scripts/make_streams.py", kind, "--rows", str(rows), "--seed", str(seed),
                    "--test-rows", str(test_rows), "--out", out, *more], check=True)
    return out, out.with_suffix(".test.csv")


def sensors(args):
    rows = []
    for seed in range(1, args.seeds + 1):
        train, test = make_stream("sensors", "sensors", seed, 300_000, 20_000)
        model, _ = fit(train, 6, *args.more)
        level = held_out(model, test)
        labels = test.with_suffix(".labels").read_text().split()
        ari = adjusted_rand_index(labels, predicted(model, test, "component"))
        reference = "–"
        if numpy:
            known = numpy.loadtxt(train.with_suffix(".labels"), dtype=int)
            reference = f"{from_labels(numbers(train), known, 6).score(numbers(test)):.3f}"
        # The share of a late mode's rows in a component of its own, 2,000 rows after the mode appears.
        late = []
        for share, mode in ((0.55, "4"), (0.8, "5")):
            fit(train, 6, "--limit", int(share * 300_000) + 2000, *args.more)
            components = predicted(FOLDER / "model.json", test, "component")
            own = [c for c, label in zip(components, labels) if label == mode]
            others = {c for c, label in zip(components, labels) if int(label) < int(mode)}
            late.append(f"{sum(c not in others or others_rare(components, labels, c, mode) for c in own) / len(own):.3f}")
        rows.append([seed, f"{level:.3f}", reference, f"{ari:.4f}", *late])
    table(["seed", "held out", "EM from the true modes", "adjusted Rand index", "mode that appears after 55 %",
           "mode that appears after 80 %"], rows)


def others_rare(components, labels, component, mode):
    """Whether almost no row of an earlier mode belongs to the component."""
    rows = [label for c, label in zip(components, labels) if c == component and int(label) <= int(mode)]
    return sum(label == mode for label in rows) > 0.98 * len(rows)


def hard(args):
    rows = []
    for dim in (3, 10):
        for seed in range(1, args.seeds + 1):
            options = ("--k", 4, "--d", dim, "--n", 60_000, "--seed", seed, "--heavy-tails", "--test-rows", 20_000)
            train, test, truth = draw("heavy", *options)
            model, _ = fit(train, 12, *args.more)
            reference = em_from_truth(truth, train, test) if numpy else "–"
            rows.append([f"heavy tails, {dim} columns", seed, *compared(held_out(model, test), reference)])
    for seed in range(1, args.seeds + 1):
        train, test = make_stream("scales", "scales", seed, 60_000, 20_000)
        model, _ = fit(train, 8, *args.more)
        reference = "–"
        if numpy:
            labels = numpy.loadtxt(train.with_suffix(".labels"), dtype=int)
            reference = from_labels(numbers(train), labels, 8).score(numbers(test))
        rows.append(["scales over three decades, 4 columns", seed, *compared(held_out(model, test), reference)])
    table(["data", "seed", "held out", "EM from the truth", "difference"], rows)


def compared(level, reference):
    if reference == "–":
        return f"{level:.4f}", "–", "–"
    return f"{level:.4f}", f"{reference:.4f}", f"{level - reference:+.4f}"


def em_from_truth(truth, train, test):
    mixture = json.loads(truth.read_text())["state"]["candidates"][0]["learned"]["point"]["mixture"]
    means, precisions = [], []
    for component in mixture["components"]:
        means.append(component["mean"])
        dim = len(component["mean"])
        lower = numpy.zeros((dim, dim))
        for i, row in enumerate(component["covariance"]["lower"]):
            lower[i, : i + 1] = row
        precisions.append(numpy.linalg.inv(component["covariance"]["scale"] * lower @ lower.T))
    em = GaussianMixture(len(means), weights_init=mixture["weights"], means_init=means, precisions_init=precisions,
                         max_iter=200, tol=1e-6, reg_covar=1e-10)
    return em.fit(numbers(train)).score(numbers(test))


def clusters(args):
    overlaps = (0.01, 0.03, 0.05)
    rows = []
    for kind, modes, k, count in (("skewed", 4, 15, 20_000), ("sensors", 6, 8, 300_000)):
        for seed in range(1, args.seeds + 1):
            train, test = make_stream(kind, kind, seed, count, 20_000)
            model, result = fit(train, args.k or k, *args.more)
            found = [run("show", model, "--overlap", overlap) for overlap in overlaps]
            counts = [len(shown["clusters"]) for shown in found]
            labels = test.with_suffix(".labels").read_text().split()
            ari = adjusted_rand_index(labels, predicted(model, test, "cluster"))
            rows.append([kind, seed, modes, result["k"], *counts, len(found[1]["outliers"]), f"{ari:.4f}"])
    table(["data", "seed", "true clusters", "components", *(f"clusters, overlap {overlap}" for overlap in overlaps),
           "outlier components", "adjusted Rand index by cluster"], rows)


def split_file(path):
    """The header, the training rows, and every tenth row as a test row."""
    with open(path) as lines:
        header, *rows = (line.rstrip("\n") for line in lines)
    return header, [row for i, row in enumerate(rows) if i % 10 != 9], rows[9::10]


def write(path, header, rows):
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def in_orders(name, header, train, test, k, orders, *more):
    """Held-out scores after learning rows in file order, and shuffled by several seeds."""
    test = write(FOLDER / f"{name}.test.csv", header, test)
    levels = []
    for order in range(orders + 1):
        rows = list(train)
        if order:
            random.Random(order).shuffle(rows)
        model, _ = fit(write(FOLDER / f"{name}.csv", header, rows), k, *more)
        levels.append(held_out(model, test))
    return levels


def order(args):
    rows = []
    for name, drop in (("banknote", ["--drop", "class"]), ("magic04", ["--drop", "class"]), ("airfoil", [])):
        header, train, test = split_file(ROOT / f"datasets/{name}.csv")
        for k in (5, 8):
            drop_known = drop if "class" in header else []
            in_file, *shuffled = in_orders(name, header, train, test, k, args.seeds, *drop_known, *args.more)
            mean = sum(shuffled) / len(shuffled)
            shown = " ".join(f"{level:.3f}" for level in shuffled)
            rows.append([name, k, f"{in_file:.3f}", shown, f"{in_file - mean:+.3f}"])
    table(["data", "K", "file order", "shuffled, one figure per seed", "file order − mean of shuffled"], rows)


def watch(args):
    header, train, test = split_file(args.file)
    rows = []
    for k in (10, 20):
        in_file, *shuffled = in_orders("watch", header, train, test, k, args.seeds, *args.more)
        reference = "–"
        if numpy:
            fits = [GaussianMixture(k, random_state=seed).fit(numbers(FOLDER / "watch.csv")) for seed in range(args.seeds)]
            reference = " ".join(f"{em.score(numbers(FOLDER / 'watch.test.csv')):.3f}" for em in fits)
        rows.append([k, f"{in_file:.3f}", " ".join(f"{level:.3f}" for level in shuffled), reference])
    table(["K", "file order", "shuffled, one figure per seed",
           "scikit-learn's default fit of the shuffled rows, one figure per seed"], rows)


def parts(args):
    header, train, test = split_file(ROOT / "datasets/magic04.csv")
    last = len(header.split(",")) - 1
    train.sort(key=lambda row: row.split(",")[last])
    drop = ["--drop", header.split(",")[last]] if "class" in header else []
    test = write(FOLDER / "magic04.test.csv", header, test)
    whole = list(train)
    random.Random(1).shuffle(whole)
    model, _ = fit(write(FOLDER / "magic04.whole.csv", header, whole), 5, *drop)
    one = held_out(model, test)
    prior, _ = fit(write(FOLDER / "magic04.prior.csv", header, whole[:1000]), 5, *drop)
    prior = prior.rename(FOLDER / "prior.json")
    rows = []
    for count in (2, 4, 10):
        shards = []
        for i in range(count):
            part = train[i * len(train) // count:(i + 1) * len(train) // count]
            shard = FOLDER / f"shard{i}.json"
            run("fit", "--data", write(FOLDER / "part.csv", header, part), "--prior", prior, "--out", shard)
            shards.append(shard)
        merged = FOLDER / "merged.json"
        run("merge", "--prior", prior, *shards, "--out", merged)
        level = held_out(merged, test)
        rows.append([count, f"{level:.3f}", f"{one:.3f}", f"{level - one:+.3f}"])
    table(["parts", "merged", "one pass over shuffled rows", "difference"], rows)


def peak(*arguments):
    """The largest resident set of a run on two threads, in MB."""
    words = [COMMAND, *map(str, arguments), "--threads", "2", "--quiet"]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(words)}\nfailed")
    return used.ru_maxrss * 1024 / 1e6


def memory(args):
    rows = []
    for dim in args.dims or [10, 50, 91, 100]:
        train = FOLDER / "memory.csv"
        run("synth", "--k", 20, "--d", dim, "--n", 100_000, "--out", train)
        model, other = FOLDER / "memory.model.json", FOLDER / "memory.other.json"
        checkpoint = FOLDER / "memory.checkpoint"
        for k, learner, options in (
            (12, "oBMM", []),
            (20, "oBMM", []),
            ("5,10,20", "oBMM", []),
            ("auto", "oBMM", []),
            (20, "oDMM, 5 shards", ["--algo", "odmm", "--shards", 5]),
        ):
            fit = ["fit", "--data", train, "--k", k, *options, *args.more]
            megabytes = [
                peak(*fit, "--out", model),
                peak(*fit, "--out", other, "--checkpoint", checkpoint),
                peak("fit", "--data", train, "--limit", 30_000, "--resume", model, "--out", other),
                peak("show", model),
            ]
            rows.append([dim, k, learner, *(f"{size:.0f}" for size in megabytes)])
    table(["columns", "K", "learner", "fit, MB", "with checkpoints", "resume", "show"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    trials = {f.__name__: f for f in (mixtures, many, sensors, hard, clusters, order, watch, parts, memory)}
    parser.add_argument("trial", choices=trials)
    parser.add_argument("file", nargs="?", help="the data for watch")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--dims", type=lambda text: [int(d) for d in text.split(",")], help="columns, for mixtures and memory")
    parser.add_argument("--effort", help="passed to fit")
    parser.add_argument("--k", help="for clusters, passed to fit (default: 15 for skewed, 8 for sensors)")
    args = parser.parse_args()
    if args.trial == "watch" and not args.file:
        parser.error("watch needs a file")
    args.more = ["--effort", args.effort] if args.effort else []
    FOLDER.mkdir(parents=True, exist_ok=True)
    trials[args.trial](args)


if __name__ == "__main__":
    main()
