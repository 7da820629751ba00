#!/usr/bin/env python3
"""Writes README.md of a track: one sentence of conclusion, computed from its table.csv, the table, and its provenance.

    scripts/track_page.py FOLDER QUESTION SECONDS

FOLDER is results/tracks/NAME with the output of `gmm-bmm compare`. Needs only the standard library.
"""

import csv
import pathlib
import statistics
import sys


def means(folder, k=None):
    """The mean test score of each learner, by data set: with the chosen K, or with a given one."""
    found = {}
    with open(folder / "table.csv", newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            if (line["chosen"] == "true") if k is None else (line["k"] == str(k)):
                found.setdefault(line["data"], {})[line["learner"]] = float(line["mean"])
    return found


def mean_gain(sets, learner, over, other=None):
    """The mean over the sets by which a learner is above another one, or above itself in `other`."""
    return statistics.fmean(sets[name][learner] - (other or sets)[name][over] for name in sets)


def above(gain):
    return f"{abs(gain):.2f} {'above' if gain >= 0 else 'below'}"


def nats(value):
    """Two decimals, and no sign of zero."""
    return f"{value if abs(value) >= 0.005 else 0.0:.2f}".replace("-", "−")


def shuffled(folder):
    sets = means(folder)
    to_em = {learner: above(mean_gain(sets, learner, "em_plain")) for learner in ("obmm_revised", "obmm", "oem", "obmm_blind", "oem_blind")}
    return (f"On average over {len(sets)} sets oBMM revised is {to_em['obmm_revised']} batch EM without moves, oBMM {to_em['obmm']}, oEM "
            f"{to_em['oem']}, and from a blind start oBMM is {to_em['obmm_blind']} and oEM {to_em['oem_blind']}.")


def order(folder):
    k = 5
    sets, random_order = means(folder, k), means(folder.parent / "shuffled", k)
    cost = {learner: -mean_gain(sets, learner, learner, random_order)
            for learner in ("oem_blind", "oem", "oem_revised", "obmm_blind", "obmm", "obmm_revised")}
    return (f"With K = {k}, file order instead of random order costs oEM {nats(cost['oem'])} nats, oBMM {nats(cost['obmm'])}, oEM revised "
            f"{nats(cost['oem_revised'])} and oBMM revised {nats(cost['obmm_revised'])}; from a blind start it costs oEM {nats(cost['oem_blind'])} and oBMM "
            f"{nats(cost['obmm_blind'])} (mean of {len(sets)} sets; a negative cost is a gain).")


def unknown_k(folder):
    sets = means(folder)
    return (f"With a learned K, oBMM is {above(mean_gain(sets, 'obmm_auto', 'obmm_revised'))} oBMM revised with the K of 4, 8, 16 and 32 that validation rows choose, and batch EM "
            f"{above(mean_gain(sets, 'em_auto', 'obmm_revised'))} it (mean of {len(sets)} sets).")


def shards(folder):
    sets = means(folder)
    number = folder.name.split("-")[1]
    gains = [sets[name]["odmm"] - sets[name]["obmm"] for name in sets]
    return (f"Test scores of oDMM with {number} shards differ from those of oBMM by {min(gains):+.3f} to {max(gains):+.3f} nats "
            f"({len(sets)} sets).").replace("-", "−")


def section(summary, title):
    """The lines of a section of summary.md; the first one has no title."""
    parts = ("\n" + summary).split("\n## ")
    return parts[0] if title is None else next(part for part in parts if part.startswith(title)).split("\n", 1)[1]


def main():
    folder, question, seconds = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    name = folder.name.split("-")[0]
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    table = section(summary, None).split("\n", 2)[2].strip().replace("the details in summary.md give", "table.csv gives")
    text = [f"# Track: {folder.name}", "", globals()[name](folder), "", question, "", table, "", "## Provenance", "",
            section(summary, "Provenance").strip(), "", f"Made by `scripts/track_{name}.sh`. It took {seconds} s."]
    (folder / "README.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    print(folder / "README.md")


if __name__ == "__main__":
    main()
