#!/usr/bin/env python3
"""Measures forgetting by a half-life, and the finding that the data change. Each trial prints a Markdown table; results/drift/README.md
shows them.

    scripts/drift_trials.py drifting       sensors whose means move by 4 standard deviations; K given and learned
    scripts/drift_trials.py stationary     what a half-life of a tenth of the rows costs if the data stay the same
    scripts/drift_trials.py alarms         changes that are found in data that stay the same
    scripts/drift_trials.py changes        where changes are found: a shift, a drift, modes that alternate

The program is target/release/gmm-bmm, or the value of GMM_BMM. Files are written to target/trials.
"""

import argparse
import math
import random

from structure_trials import FOLDER, draw, fit, free_numbers, held_out, make_stream, run, table


def drifting(args):
    rows, count = [], 100_000
    for seed in range(1, args.seeds + 1):
        train, test = make_stream("drifting", "drifting", seed, count, 20_000)
        model, _ = fit(train, 4, "--algo", "em", "--skip", count * 9 // 10)
        reference = held_out(model, test)
        for k in (4, "auto"):
            cells = []
            for half_life in ("none", count // 10, count // 20, count // 30, count // 40):
                model, result = fit(train, k, "--half-life", half_life)
                cells.append(f"{held_out(model, test) - reference:+.3f}" + (f" (K = {result['k']})" if k == "auto" else ""))
            rows.append([seed, k, f"{reference:.3f}", *cells])
    table(["seed", "K", "batch EM on the last tenth", "no half-life", "half-life n/10", "n/20", "n/30", "n/40"], rows)


def stationary(args):
    rows, count = [], 60_000
    for dim, k in ((3, 4), (10, 4)):
        for learner in ("obmm", "oem"):
            excess, constant = [], []
            for seed in range(1, args.seeds + 1):
                train, test, truth = draw("stationary", "--k", k, "--d", dim, "--n", count, "--seed", seed, "--test-rows", 50_000)
                best = held_out(truth, test)
                for losses, half_life in ((excess, count // 10), (constant, "none")):
                    model, _ = fit(train, k, "--algo", learner, "--half-life", half_life)
                    losses.append(best - held_out(model, test))
            keep = 2 ** (-10 / count)
            effective = (1 + keep) / (1 - keep)
            predicted = free_numbers(k, dim) / (2 * effective)
            mean = sum(excess) / len(excess)
            rows.append([dim, learner, free_numbers(k, dim), f"{effective:.0f}", f"{predicted:.4f}", f"{mean:.4f}",
                         f"{mean / predicted:.2f}", " ".join(f"{loss:.4f}" for loss in excess),
                         f"{free_numbers(k, dim) / (2 * count):.4f}", f"{sum(constant) / len(constant):.4f}"])
    table(["columns", "learner", "p", "n_eff", "p/(2 n_eff)", "loss, mean", "ratio", "loss, one figure per seed",
           "p/(2n)", "loss without a half-life"], rows)


def alarms(args):
    rows = []
    for dim, clusters, count, k in ((2, 3, 60_000, 3), (3, 5, 100_000, "auto"), (10, 4, 60_000, 4), (10, 4, 60_000, 1),
                                    (20, 6, 60_000, 6), (50, 4, 40_000, 4)):
        found = 0
        for seed in range(1, args.seeds + 1):
            train, _, _ = draw("alarms", "--k", clusters, "--d", dim, "--n", count, "--seed", seed, "--test-rows", 10)
            _, result = fit(train, k)
            found += "data_changes" in result
        rows.append([dim, clusters, k, count, f"{found} of {args.seeds}"])
    table(["columns", "clusters", "K", "rows", "streams in which a change is found"], rows)


def stream_with(path, count, seed, centre):
    """Rows of three columns around `centre(i)`; one row in a thousand is an outlier of a million standard deviations."""
    rng = random.Random(seed)
    with open(path, "w") as out:
        print("a,b,c", file=out)
        for i in range(count):
            far = 1e6 if rng.random() < 0.001 else 0.0
            print(",".join(f"{rng.gauss(centre(i, rng), 1) + far:.6f}" for _ in range(3)), file=out)
    return path


def changes(args):
    rows, count = [], 100_000
    kinds = {
        "none, with outliers": lambda i, rng: 20.0 * rng.randrange(2),
        "a shift by 1 after 60,000 rows": lambda i, rng: 20.0 * rng.randrange(2) + (i >= 60_000),
        "a shift by 0.3 after 60,000 rows": lambda i, rng: 20.0 * rng.randrange(2) + 0.3 * (i >= 60_000),
        "a drift by 2": lambda i, rng: 20.0 * rng.randrange(2) + 2 * i / count,
        "two modes that alternate every 3,000 rows": lambda i, rng: 20.0 * (i // 3000 % 2),
        "a daily cycle of 5,000 rows, amplitude 1": lambda i, rng: math.sin(2 * math.pi * i / 5000),
    }
    for kind, centre in kinds.items():
        found = []
        for seed in range(1, args.seeds + 1):
            _, result = fit(stream_with(FOLDER / "changes.csv", count, seed, centre), "auto")
            found.append(shown(result))
        rows.append([kind, ", ".join(found)])
    found = []
    for seed in range(1, args.seeds + 1):
        train, _ = make_stream("sensors", "sensors", seed, 300_000, 10)
        found.append(shown(fit(train, 6)[1]))
    rows.append(["the stream 'sensors': new modes after 165,000 and 240,000 of 300,000 rows", ", ".join(found)])
    table(["change", "row of the first change found (number of changes), one figure per seed"], rows)


def shown(result):
    found = result.get("data_changes")
    return f"{found['first']} ({found['times']})" if found else "–"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    trials = {f.__name__: f for f in (drifting, stationary, alarms, changes)}
    parser.add_argument("trial", choices=trials)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    trials[args.trial](args)


if __name__ == "__main__":
    main()
