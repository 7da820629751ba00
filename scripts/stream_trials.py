#!/usr/bin/env python3
"""Measures what long streams are told and learn. Each trial prints a Markdown table; results/streams/README.md shows them. Needs numpy.

    scripts/stream_trials.py changes       changes that have to be reported within 2,000 rows
    scripts/stream_trials.py stationary    changes that are reported in streams that do not change
    scripts/stream_trials.py late          a cluster that appears late, with K learned, and a spike
    scripts/stream_trials.py ranks         ranks of fresh rows and anomalies, with a half-life and data that drift
    scripts/stream_trials.py explain       which column an explanation names, where one was moved by 3 standard deviations
    scripts/stream_trials.py series        the learned K of an autoregressive series of 4,500 rows

The program is target/release/gmm-bmm, or the value of GMM_BMM. Files are written to target/trials.
"""

import argparse
import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np

PROGRAM = os.environ.get("GMM_BMM", "target/release/gmm-bmm")
FOLDER = Path("target/trials")
COLUMNS = 3
# Rows that are ranked.
FRESH = 20_000


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def fit(rows, *arguments, model="stream.json"):
    np.save(FOLDER / "stream.npy", rows)
    return json.loads(run("fit", "--data", FOLDER / "stream.npy", "--out", FOLDER / model, "--json", *arguments))


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    print()


def base(random, count, clusters):
    """Rows of one cluster, or of several that are 10 standard deviations apart."""
    rows = random.standard_normal((count, COLUMNS))
    if clusters > 1:
        own = random.integers(0, clusters, count)
        rows[:, 0] += 10 * (own % 2)
        rows[:, 1] += 10 * (own // 2)
    return rows


def jump(by, where):
    def change(random, rows):
        rows[:, where] += by
    return change


def scale(by, where):
    def change(random, rows):
        centre = 10 * np.round(rows / 10)
        rows[:, where] = centre[:, where] + by * (rows - centre)[:, where]
    return change


def correlate(random, rows):
    centre = 10 * np.round(rows / 10)
    apart = rows - centre
    rows[:, 1] = centre[:, 1] + 0.6 * apart[:, 0] + 0.8 * apart[:, 1]


def newcomers(random, rows):
    rows[random.random(len(rows)) < 0.05] += [30.0, -20.0, 15.0]


def drift(where):
    def change(random, rows):
        rows[:, where] += (2 * np.arange(len(rows)) / 20_000)[:, None]
    return change


def flip(random, rows):
    """Applied to the whole stream below: the weights of two clusters."""


ONE, ALL = slice(0, 1), slice(None)
CHANGES = {
    **{f"jump of {by} in {name}": (jump(by, where), "level") for by in (1, 2, 3, 4, 10, 30)
       for name, where in (("one column", ONE), ("all", ALL))},
    **{f"spread times {by} in {name}": (scale(by, where), "spread") for by in (0.5, 2)
       for name, where in (("one column", ONE), ("all", ALL))},
    "correlation 0 to 0.6": (correlate, "correlation"),
    "new cluster, 5 % of the rows": (newcomers, "new_component"),
    "drift of 2 over 20,000 rows, one column": (drift(ONE), "level"),
    "drift of 2 over 20,000 rows, all": (drift(ALL), "level"),
    "weights 0.9/0.1 to 0.1/0.9": (flip, "weights"),
}


def changed_stream(name, seed, clusters):
    """Rows up to the row by which the change has to be reported, and the row of the change."""
    random = np.random.default_rng([seed, clusters, list(CHANGES).index(name)])
    at = 40_000 + 137 * seed % 1000
    last = at + (22_000 if "drift" in name else 5_000 if "weights" in name else 2_000)
    if "weights" in name:
        rows = random.standard_normal((last, COLUMNS))
        share = np.where(np.arange(last) < at, 0.1, 0.9)
        rows += 10 * (random.random(last) < share)[:, None]
    else:
        rows = base(random, last, clusters)
        CHANGES[name][0](random, rows[at:])
    return rows, at


def changes(args):
    rows = []
    for name, (_, kind) in CHANGES.items():
        for clusters, k in ((1, 1), (1, 4), (1, "auto"), (4, 4), (4, "auto")):
            if args.case not in name or clusters > 1 and "weights" in name:
                continue
            offsets, kinds, on_time = [], Counter(), 0
            for seed in range(1, args.seeds + 1):
                stream, at = changed_stream(name, seed, clusters)
                found = fit(stream, "--k", k, "--seed", seed).get("data_changes")
                if not found:
                    offsets.append("none")
                    continue
                first = found["list"][0]
                on_time += abs(first["row"] - at) <= (20_000 if "drift" in name else 2_000)
                offsets.append(f"{first['row'] - at:+}")
                kinds[first["kind"]] += 1
            told = ", ".join(f"{kind} {times}" for kind, times in kinds.most_common())
            rows.append([name, clusters, k, f"{on_time}/{args.seeds}", kind, told, " ".join(offsets)])
            print(*rows[-1], sep=" | ", flush=True)
    table(["change", "clusters", "K", "reported in time", "kind", "kinds reported", "row reported − row of the change, per seed"], rows)


def autoregressive(random, count, keep, columns=COLUMNS):
    rows = random.standard_normal((count, columns))
    rows[1:] *= np.sqrt(1 - keep * keep)
    for i in range(1, count):
        rows[i] += keep * rows[i - 1]
    return rows


def stationary_stream(name, seed, count):
    random = np.random.default_rng([seed, 7])
    rows = random.standard_normal((count, COLUMNS))
    time = np.arange(count)
    if name == "spikes":
        rows[random.random(count) < 0.0003] *= 1000
    elif name == "one outlier":
        rows[random.integers(20_000, count)] += 1000
    elif name == "AR(0.99)":
        rows = autoregressive(random, count, 0.99)
    elif name == "AR(0.9)":
        rows = autoregressive(random, count, 0.9)
    elif name == "daily cycle of 1,440 rows":
        rows += 3 * np.sin(2 * np.pi * time / 1440)[:, None]
    elif name == "spread with a daily cycle":
        rows *= (1.5 + np.sin(2 * np.pi * time / 1440))[:, None]
    elif name == "modes that alternate every 2,000 rows":
        rows += 8 * (time // 2000 % 2)[:, None]
    elif name == "Student t, 3 degrees":
        rows /= np.sqrt(random.chisquare(3, (count, COLUMNS)) / 3)
    elif name == "four clusters":
        rows = base(random, count, 4)
    return rows


STATIONARY = ["independent", "spikes", "one outlier", "AR(0.9)", "AR(0.99)", "daily cycle of 1,440 rows", "spread with a daily cycle",
              "modes that alternate every 2,000 rows", "Student t, 3 degrees", "four clusters"]


def stationary(args):
    rows, streams, alarms = [], 0, 0
    for name in STATIONARY:
        for k in (1, 4, "auto"):
            if args.case not in name:
                continue
            found = []
            for seed in range(1, args.seeds + 1):
                result = fit(stationary_stream(name, seed, 100_000), "--k", k, "--seed", seed)
                found += [f"{change['kind']} at {change['row']} (seed {seed})" for change in result.get("data_changes", {}).get("list", [])[:1]]
            streams, alarms = streams + args.seeds, alarms + len(found)
            rows.append([name, k, f"{len(found)}/{args.seeds}", "; ".join(found)])
            print(*rows[-1], sep=" | ", flush=True)
    table(["stream", "K", "false alarms", "which"], rows)
    print(f"{alarms} false alarms in {streams} streams of 100,000 rows")


def score(model, rows):
    np.save(FOLDER / "test.npy", rows)
    return json.loads(run("eval", "--model", FOLDER / model, "--data", FOLDER / "test.npy", "--json"))["mean_log_likelihood"]


def late(args):
    rows = []
    for dim in (2, 5):
        for seed in range(1, args.seeds + 1):
            random = np.random.default_rng([seed, dim])
            stream = random.standard_normal((100_000, dim))
            new = random.random(100_000) < 0.19
            new[:40_000] = False
            stream[new, 0] += 52
            after = stream[60_000:]
            fit(stream[:45_000], "--k", "auto", "--seed", seed, model="early.json")
            result = fit(stream, "--k", "auto", "--seed", seed)
            share = np.array([0.81, 0.19])
            best = -0.5 * dim * (1 + np.log(2 * np.pi)) + float(share @ np.log(share))
            rows.append([dim, seed, result["k"], f"{best:.3f}", f"{score('early.json', after) - best:+.3f}", f"{score('stream.json', after) - best:+.3f}"])
    table(["columns", "seed", "K at the end", "best score of rows after the change", "5,000 rows after the change, difference", "at the end, difference"], rows)
    rows = []
    for seed in range(1, args.seeds + 1):
        random = np.random.default_rng([seed, 99])
        stream = random.standard_normal((100_000, COLUMNS))
        losses = []
        for k in (1, 4, "auto"):
            spiked = stream.copy()
            spiked[40_000, 1] = 1e5
            fit(stream, "--k", k, "--seed", seed, model="usual.json")
            fit(spiked, "--k", k, "--seed", seed)
            losses.append(f"{score('stream.json', stream[40_001:]) - score('usual.json', stream[40_001:]):+.4f}")
        rows.append([seed, *losses])
    table(["seed", "a spike of 1e5: score of later rows against the same stream without it, K = 1", "K = 4", "K learned"], rows)


def predicted(model, rows, *arguments):
    np.save(FOLDER / "test.npy", rows)
    scores = FOLDER / "scores.csv"
    run("predict", "--model", FOLDER / model, "--data", FOLDER / "test.npy", "--scores", scores, *arguments)
    head, *lines = scores.read_text().strip().splitlines()
    return head.split(","), [line.split(",") for line in lines]


def ranks(args):
    rows = []
    for gaps in (0, 0.1):
        for seed in range(1, args.seeds + 1):
            random = np.random.default_rng([seed, 5])
            count, half_life = 100_000, 2_000
            # What is ranked comes without further drift.
            stream = random.standard_normal((count + FRESH, COLUMNS))
            stream += (20 * np.minimum(np.arange(count + FRESH), count) / count)[:, None]
            odd = stream[count:count + 500].copy()
            odd[:, 0] += 6
            if gaps:
                stream[random.random(stream.shape) < gaps] = np.nan
                odd[:, 1:][random.random((500, COLUMNS - 1)) < gaps] = np.nan
            options = ["--missing", "marginal"] if gaps else []
            fit(stream[:count], "--k", 2, "--half-life", half_life, "--seed", seed, *options)
            cells = []
            for part in (stream[count:], odd):
                part = part[~np.isnan(part).all(axis=1)]
                head, lines = predicted("stream.json", part, *options)
                cells.append(np.sort([float(line[head.index("rank")]) for line in lines]))
            fresh, odd_ranks = cells
            steps = np.arange(1, len(fresh) + 1) / len(fresh)
            distance = max(np.max(steps - fresh), np.max(fresh - steps + 1 / len(fresh)))
            rows.append([f"{gaps:.0%}", seed, f"{distance:.4f}", f"{np.median(odd_ranks):.5f}", f"{np.quantile(odd_ranks, 0.95):.5f}"])
    table(["gaps", "seed", "KS distance of fresh rows", "median rank of anomalies", "95 % of them below"], rows)


def explain(args):
    rows = []
    for dim, clusters in ((5, 3), (10, 5)):
        for seed in range(1, args.seeds + 1):
            random = np.random.default_rng([seed, dim])
            means = 4 * random.standard_normal((clusters, dim))
            factors = np.tril(random.standard_normal((clusters, dim, dim))) * 0.5 + np.eye(dim)
            own = random.integers(0, clusters, 22_000)
            data = means[own] + np.einsum("nij,nj->ni", factors[own], random.standard_normal((22_000, dim)))
            names = fit(data[:20_000], "--k", clusters, "--seed", seed)["columns"]
            test, moved = data[20_000:].copy(), random.integers(0, dim, 2_000)
            test[np.arange(2_000), moved] += 3 * data.std(axis=0)[moved] * random.choice([-1, 1], 2_000)
            head, lines = predicted("stream.json", test, "--explain")
            named = np.array([line[head.index("explanation")].split(":")[0] for line in lines])
            rows.append([dim, clusters, seed, f"{np.mean(named == np.array(names)[moved]):.1%}"])
    table(["columns", "clusters", "seed", "right"], rows)


def series(args):
    rows = []
    for dim in (1, 2, 3):
        found = []
        for seed in range(1, args.seeds + 1):
            data = autoregressive(np.random.default_rng([seed, dim]), 4_500, 0.98, dim)
            found.append(fit(data, "--k", "auto", "--seed", seed)["k"])
        rows.append([dim, max(found), " ".join(map(str, found))])
    table(["columns", "largest K", "K per seed"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    trials = {trial.__name__: trial for trial in (changes, stationary, late, ranks, explain, series)}
    parser.add_argument("trial", choices=trials)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--case", default="", help="only the streams whose name has this")
    args = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    trials[args.trial](args)


if __name__ == "__main__":
    main()
