#!/usr/bin/env python3
"""Makes the tracks whose data have to be made first. track_drift.sh and track_gaps.sh call it; each writes one small table.

    scripts/track_trials.py drift FOLDER   streams whose clusters move; test rows are from the last tenth of the time
    scripts/track_trials.py gaps FOLDER    values removed at random from the training rows; test rows are complete

Both run `gmm-bmm compare --test`. The program is target/release/gmm-bmm, or the value of GMM_BMM. Needs only the standard library.
"""

import argparse
import csv
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

from datasets_lib.catalogue import load
from track_page import nats

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = os.environ.get("GMM_BMM", "target/release/gmm-bmm")
DATASETS = pathlib.Path(os.environ.get("GMM_BMM_DATASETS", "datasets"))
WORK = pathlib.Path("target/tracks")


def compare(data, test, out, *options):
    """Compares on one file, and returns each learner's mean test score and how the comparison was made."""
    shutil.rmtree(out, ignore_errors=True)
    words = [COMMAND, "compare", "--data", data, "--test", test, "--out", out, "--dequantize", "off", *map(str, options), "--json", "--quiet"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    result = json.loads(done.stdout)
    scores = {entry["contender"]: entry["score"]["mean"] for entry in result["sets"][0]["entries"]}
    made = (out / "summary.md").read_text(encoding="utf-8").split("## Provenance")[1].strip()
    return scores, made.replace(" --json --quiet", "")


def write(folder, question, sentence, header, rows, notes, made, seconds):
    """Writes README.md for people and table.csv for programs."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "table.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    shown = [[f"{cell:.3f}".replace("-", "−") if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    lines = [f"# Track: {folder.name}", "", sentence, "", question, "", "| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in shown]
    lines += ["", *notes, "", "## Provenance", "", "The first of the runs:", "", made, "",
              f"Made by `scripts/track_{folder.name}.sh`. It took {seconds:.0f} s."]
    (folder / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(folder / "README.md")


def drift(args):
    began, rows, made = time.time(), [], None
    WORK.mkdir(parents=True, exist_ok=True)
    learners = {"oem": "oEM", "obmm": "oBMM", "oem_revised": "oEM revised", "obmm_revised": "oBMM revised",
                "obmm_forgetting": "oBMM forgetting", "em": "EM"}
    for seed in range(1, args.seeds + 1):
        file = WORK / f"drifting-{seed}.csv"
        make = [sys.executable, "scripts/make_streams.py", "drifting", "--rows", args.rows, "--seed", seed, "--out", file, "--test-rows", 10_000]
        subprocess.run([str(word) for word in make], check=True, stdout=subprocess.DEVNULL)
        test = WORK / f"drifting-{seed}.test.csv"
        scores, how = compare(file, test, WORK / f"drift-{seed}", "--order", "file", "--k", 4,
                              "--half-life", args.rows // 20, "--algos", ",".join(learners))
        made = made or how
        recent = WORK / f"drifting-{seed}-recent.csv"
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        recent.write_text("".join(lines[:1] + lines[-(args.rows // 10):]), encoding="utf-8")
        level = compare(recent, test, WORK / f"drift-{seed}-recent", "--k", 4, "--algos", "em")[0]["em"]
        rows.append([seed, *(scores[learner] for learner in learners), level])
    means = [statistics.fmean(row[i] for row in rows) for i in range(1, len(rows[0]))]
    of = dict(zip(learners.values(), means))
    forgetting = of.pop("oBMM forgetting")
    best = max(of, key=of.get)
    sentence = (
        f"With a half-life of a twentieth of the rows oBMM revised gains {forgetting - of['oBMM revised']:.2f} nats; it is then "
        f"{abs(forgetting - of[best]):.2f} {'above' if forgetting > of[best] else 'below'} {best}, the best of the others, and "
        f"{abs(means[-1] - forgetting):.2f} {'below' if forgetting < means[-1] else 'above'} batch EM on the last tenth of the rows (mean of "
        f"{len(rows)} streams)."
    )
    write(pathlib.Path(args.folder), "Which learners follow data that drift?", sentence, ["stream", *learners.values(), "EM, last tenth"],
          [*rows, ["mean", *means]],
          ["Mean log-likelihood of test rows from the last tenth of the time, in nats. A stream has four clusters in eight columns, whose means "
           f"move steadily by 4 standard deviations over {args.rows:,} rows, and is learned in its order with K = 4. Parameters are "
           "chosen on the last tenth of the training rows. oEM then chooses a small α, by which it forgets old rows too; oEM revised and oBMM "
           "revised end with EM on all rows, which they keep here, so they describe the whole stream and not its end. oBMM forgetting is oBMM revised with a half-life. EM is batch EM on all "
           "rows, and on the last tenth of them."],
          made, time.time() - began)


def removed(rows, share, rng):
    """The rows with a share of their values removed at random. A row that would lose all its values keeps them."""
    def one(row):
        kept = [value if rng.random() >= share else "" for value in row]
        return kept if any(kept) else row
    return [one(row) for row in rows]


def save(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return path


def gaps(args):
    began, table, made = time.time(), [], None
    learners = {"start": "start", "oem": "oEM", "obmm": "oBMM", "oem_revised": "oEM revised", "obmm_revised": "oBMM revised", "em": "EM"}
    entries = {entry.name: entry for entry in load(ROOT / "datasets" / "catalogue.json")}
    for name in args.sets:
        with open(DATASETS / f"{name}.csv", newline="", encoding="utf-8") as file:
            header, *all_rows = csv.reader(file)
        places = [header.index(column) for column in entries[name].columns]
        rows = [[row[place] for place in places] for row in all_rows]
        random.Random(1).shuffle(rows)
        cut = len(rows) // 5
        test = save(WORK / "complete" / f"{name}.csv", entries[name].columns, rows[:cut])
        for share in (0, 10, 30, 50):
            train = removed(rows[cut:][: args.rows], share / 100, random.Random(share))
            data = save(WORK / f"gaps-{share}" / f"{name}.csv", entries[name].columns, train)
            scores, how = compare(data, test, WORK / f"gaps-{share}" / f"{name}-compared", "--missing", "marginal", "--k", args.k,
                                  "--algos", ",".join(learners))
            made = made or how
            table.append([entries[name].title, f"{share} %", *(scores[learner] for learner in learners)])
    costs = {share: [table[i - place][6] - table[i][6] for i, line in enumerate(table) for place in [i % 4] if line[1] == f"{share} %"]
             for share in (10, 30, 50)}
    worst = max(abs(line[6] - line[7]) for line in table)
    sentence = (
        "Without a tenth, three tenths and half of its training values oBMM revised loses "
        + ", ".join(nats(statistics.fmean(costs[share])) for share in (10, 30)) + f" and {nats(statistics.fmean(costs[50]))} nats "
        f"(mean of {len(args.sets)} sets), and stays within {worst:.2f} of batch EM on the same values."
    )
    write(pathlib.Path(args.folder), "What do missing values cost?", sentence, ["data set", "missing", *learners.values()], table,
          ["Mean log-likelihood of complete test rows, a fifth of each set, in nats. Values are removed at random from the training rows "
           f"only, so the lines of a set are comparable. At most {args.rows:,} training rows; K = {args.k}; `--missing marginal`."],
          made, time.time() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("track", choices=["drift", "gaps"])
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--seeds", type=int, default=3, help="streams of 'drift'")
    parser.add_argument("--k", type=int, default=4, help="components in 'gaps'")
    parser.add_argument("--sets", nargs="+", default=["banknote", "ccpp"], help="data sets of 'gaps'")
    args = parser.parse_args()
    {"drift": drift, "gaps": gaps}[args.track](args)


if __name__ == "__main__":
    main()
