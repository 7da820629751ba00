#!/usr/bin/env python3
"""Fills the figures and verdicts of README.md, docs/REPRODUCTION.md and results/*/README.md from the records in results/.

    scripts/make_reproduction.py            fills them
    scripts/make_reproduction.py --check    fails if they differ from what the records say

A part stands between '<!-- made: NAME -->' and '<!-- end -->'. A part whose records are not there stays as it is.
Environment: GMM_BMM is the program (target/release/gmm-bmm), RESULTS the folder of results (results).
"""

from __future__ import annotations

import csv
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

ROOT = Path(__file__).resolve().parent.parent
GMM_BMM = os.environ.get("GMM_BMM", str(ROOT / "target/release/gmm-bmm"))
RESULTS = Path(os.environ.get("RESULTS", ROOT / "results")).resolve()
# Differences that the pages call equal, in nats per row.
EQUAL = 0.005

# Both sides of each comparison begin in the same way.
PAIRS = [
    ("both from a blind start", "oem_blind", "obmm_blind"),
    ("both from a fitted start, oEM as printed", "oem_printed", "obmm"),
    ("both from a fitted start, oEM in its strong form", "oem", "obmm"),
    ("both with revisions", "oem_revised", "obmm_revised"),
]
README_COLUMNS = [
    ("oem_blind", "oEM blind"), ("obmm_blind", "oBMM blind"), ("oem", "oEM"), ("obmm", "oBMM"),
    ("oem_revised", "oEM revised"), ("obmm_revised", "oBMM revised"), ("em", "EM with moves"),
]


class Missing(Exception):
    """Records that are not there."""


class Cell(NamedTuple):
    mean: float
    error: float
    difference: Optional[float]
    difference_error: Optional[float]
    p: Optional[float]


class Table(NamedTuple):
    """The chosen cells of one table, by data set and learner, tested against one learner."""

    cells: Dict[Tuple[str, str], Cell]
    sets: List[dict]
    times: List[dict]
    runs: List[dict]
    summary: str

    def judged(self) -> List[dict]:
        """Sets with results; those that are there with and without noise only with noise."""
        names = {one["data"]["data"] for one in self.sets}
        has_cells = {data for data, _ in self.cells}
        return [one for one in self.sets
                if one["data"]["data"] in has_cells and one["data"]["data"] + "+dequantized" not in names]


def optional(text: str) -> Optional[float]:
    return float(text) if text else None


@lru_cache(maxsize=None)
def table(name: str, reference: str = "obmm") -> Table:
    folder = RESULTS / name
    if not (folder / "records.jsonl.gz").is_file():
        raise Missing(f"{folder} has no packed records")
    with tempfile.TemporaryDirectory() as out:
        command = [GMM_BMM, "--json", "compare", "--from-records", str(folder), "--out", out, "--reference", reference,
                   "--no-pictures"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        sets = json.loads(done.stdout)["sets"]
        cells = {}
        with open(Path(out) / "table.csv", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["chosen"] == "true" and not row["k"]:
                    cells[row["data"], row["learner"]] = Cell(
                        float(row["mean"]), optional(row["standard_error"]) or 0.0, optional(row["difference"]),
                        optional(row["difference_error"]), optional(row["p_value"]))
        with open(Path(out) / "times.csv", encoding="utf-8", newline="") as file:
            times = list(csv.DictReader(file))
        summary = (Path(out) / "summary.md").read_text(encoding="utf-8")
    import gzip

    with gzip.open(folder / "records.jsonl.gz", "rt", encoding="utf-8") as file:
        runs = [json.loads(line) for line in file if line.startswith('{"kind":"run"')]
    return Table(cells, sets, times, runs, summary)


def number(value: Optional[float], decimals: int = 2) -> str:
    if value is None:
        return ""
    text = f"{value:.{decimals}f}"
    return ("0." + "0" * decimals if float(text) == 0 else text).replace("-", "−")


def title(one: dict) -> str:
    text = one["data"]["title"]
    if one["data"]["dequantized"]:
        text += ", dequantized"
    if one["units"] == "zscore":
        text += ", z-scored"
    return text + (" (stand-in)" if one["data"]["stand_in"] else "")


def markdown(head: List[str], rows: List[List[str]], left: int = 1) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * left + "---:|" * (len(head) - left)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def bold_best(values: List[Optional[float]], decimals: int = 2) -> List[str]:
    texts = [number(value, decimals) for value in values]
    known = [value for value in values if value is not None]
    best = number(max(known), decimals) if known else ""
    return [f"**{text}**" if text and text == best else text for text in texts]


def named(sets: List[dict]) -> str:
    return ", ".join(one["data"]["title"].split(" (")[0] for one in sets)


class Verdict(NamedTuple):
    claim: str
    figures: str
    verdict: str

    def row(self) -> List[str]:
        return list(self)


def against(where: str, ours: str, theirs: str) -> Tuple[List[dict], Dict[str, Cell]]:
    """The cells of `ours` tested against `theirs`. The differences are ours − theirs."""
    tested = table(where, theirs)
    sets = [one for one in tested.judged()
            if (one["data"]["data"], ours) in tested.cells and (one["data"]["data"], theirs) in tested.cells
            and not one["data"]["stand_in"]]
    if not sets:
        raise Missing(f"{where} does not have {ours} and {theirs}")
    return sets, {one["data"]["data"]: tested.cells[one["data"]["data"], ours] for one in sets}


def sides(sets: List[dict], cells: Dict[str, Cell]) -> Tuple[List[dict], List[dict], List[dict]]:
    """Sets where the first learner is above, equal and below: beyond EQUAL and two standard errors."""
    above, equal, below = [], [], []
    for one in sets:
        cell = cells[one["data"]["data"]]
        gain, error = cell.difference or 0.0, cell.difference_error or 0.0
        (above if gain > max(EQUAL, 2 * error) else below if gain < -max(EQUAL, 2 * error) else equal).append(one)
    return above, equal, below


def beats(where: str, claim: str, theirs: str, ours: str) -> Verdict:
    sets, cells = against(where, ours, theirs)
    above, equal, below = sides(sets, cells)
    gains = [cells[one["data"]["data"]].difference or 0.0 for one in sets]
    figures = f"above on {len(above)} of {len(sets)}"
    figures += f" ({named(above)})" if 0 < len(above) <= 4 else ""
    figures += f", equal on {len(equal)}, below on {len(below)}"
    figures += f" ({named(below)})" if 0 < len(below) <= 4 else ""
    figures += f"; by {number(min(gains), 3)} to {number(max(gains), 3)}"
    share = len(above) / len(sets)
    if share >= 0.9 and not below:
        verdict = "holds"
    elif share >= 0.9 or (share >= 0.5 and len(above) > 2 * len(below)):
        verdict = "holds on most sets"
    elif len(above) > len(below):
        verdict = "holds in part"
    elif not above and not below:
        verdict = "no difference"
    else:
        verdict = "does not hold"
    return Verdict(claim, figures, verdict)


def figure1() -> List[Verdict]:
    path = RESULTS / "figure1" / "figure1.jsonl"
    if not path.is_file():
        raise Missing("no figure1.jsonl")
    names = {"obmm_revised": "revised", "obmm": "from a fitted start", "obmm_blind": "from a blind start",
             "oem": "oEM from a fitted start", "oem_blind": "oEM from a blind start"}
    gaps: Dict[str, List[float]] = {}
    rows = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        curve = json.loads(line)
        if curve["kind"] == "curve" and curve["level"]:
            rows, score = curve["points"][-1]
            gaps.setdefault(curve["contender"], []).append(curve["level"][1] - score)
    if "obmm" not in gaps:
        raise Missing("figure1.jsonl is of an earlier version")
    parts = [f"{name} {number(sum(gaps[one]) / len(gaps[one]), 4)} and {number(max(gaps[one]), 4)}"
             for one, name in names.items() if one in gaps]

    def near(one: str) -> int:
        return sum(gap < 0.01 for gap in gaps[one])

    n = len(gaps["obmm"])
    verdict = "; ".join(
        f"{names[one]}: within 0.01 on {near(one)} of {n}" for one in ("obmm_revised", "obmm", "obmm_blind"))
    verdict = ("holds" if near("obmm_blind") == n else "holds with revisions" if near("obmm_revised") == n else "holds in part") + f" ({verdict})"
    return [Verdict("oBMM converges to the true model ([Figure 1](../results/figure1/README.md))",
                    f"gap after {rows:,} rows, mean and largest of {n} sets: " + ", ".join(parts), verdict)]


def losses_of_odmm(where: str, odmm: str, obmm: str, claim: str) -> Verdict:
    sets, cells = against(where, odmm, obmm)
    parts = [f"{named([one])} {number(cells[one['data']['data']].difference, 3)}" for one in sets]
    worst = min(cells[one["data"]["data"]].difference or 0.0 for one in sets)
    paper = "the paper loses 3.3 to 7.3"
    return Verdict(claim, ", ".join(parts) + f"; {paper}",
                   "holds" if worst > -0.05 else "holds, within the paper's loss" if worst > -3.3 else "does not hold")


def seconds(where: str) -> Dict[Tuple[str, str], dict]:
    return {(row["data"], row["learner"]): row for row in table(where).times}


def speed_of_odmm(odmm: str, obmm: str, claim: str) -> Verdict:
    one_thread, threads = seconds("table3/one-thread"), seconds("table3")
    parts, ratios = [], []
    for one in table("table3").sets:
        data = one["data"]["data"]
        if (data, odmm) not in one_thread or (data, obmm) not in one_thread:
            continue
        base = float(one_thread[data, obmm]["learn_seconds_median"])
        machines = one_thread[data, odmm]["machine_seconds_median"]
        if not machines:
            continue
        wall = float(threads[data, obmm]["learn_seconds_median"]) / float(threads[data, odmm]["learn_seconds_median"])
        ratios.append(base / float(machines))
        parts.append(f"{title(one)} {ratios[-1]:.1f} ({wall:.1f})")
    if not ratios:
        raise Missing("table3 has no times of machines")
    verdict = "holds" if min(ratios) >= 4 else "holds in part" if max(ratios) >= 4 else "does not hold"
    return Verdict(claim, "times faster on five machines (in brackets: here, on all threads): " + ", ".join(parts), verdict)


def claims() -> List[Verdict]:
    made: List[Verdict] = []

    def add(make: Callable[[], "List[Verdict] | Verdict"]) -> None:
        try:
            new = make()
        except Missing as why:
            print(f"left out: {why}", file=sys.stderr)
            return
        made.extend(new if isinstance(new, list) else [new])

    add(figure1)
    link1, link2, link3 = (f"[Table {n}](../results/table{n}/README.md)" for n in (1, 2, 3))
    for how, theirs, ours in PAIRS:
        add(lambda: beats("table1", f"oBMM is above oEM on 9 of 10 sets ({link1}), {how}", theirs, ours))
    for how, theirs, ours in PAIRS:
        add(lambda: beats("table2", f"oBMM is above oEM on the large sets ({link2}), {how}", theirs, ours))
    add(lambda: losses_of_odmm("table2", "odmm_blind", "obmm_blind", f"oDMM loses little against oBMM ({link2}), both from a blind start"))
    add(lambda: losses_of_odmm("table2", "odmm", "obmm", "the same, both from a fitted start"))
    add(lambda: speed_of_odmm("odmm_blind", "obmm_blind", f"oDMM on five machines is about five times faster ({link3}), both from a blind start"))
    add(lambda: speed_of_odmm("odmm", "obmm", "the same, both from a fitted start, whose time counts on both sides"))
    if not made:
        raise Missing("no records")
    return made


def part_claims() -> str:
    dated = []
    for name in ("table1", "table2", "table3"):
        try:
            dated.append(f"- Table {name[-1]}: {provenance(name)}")
        except Missing:
            continue
    return "\n".join([markdown(["claim", "our figures", "verdict"], [one.row() for one in claims()], left=3), "", *dated])


def part_verdicts() -> str:
    """For the README: the verdicts alone."""
    def plain(text: str) -> str:
        return re.sub(r"\]\(\.\./results/", "](results/", text)

    return markdown(["claim of the paper", "verdict"], [[plain(one.claim), one.verdict] for one in claims()], left=2)


def part_table1() -> str:
    """For the README: both counterparts of every column."""
    whole = table("table1")
    learners = [(one, name) for one, name in README_COLUMNS if any(learner == one for _, learner in whole.cells)]
    rows = []
    for one in whole.judged():
        data, paper = one["data"]["data"], one["paper"]
        means = [whole.cells[data, learner].mean if (data, learner) in whole.cells else None for learner, _ in learners]
        rows.append([title(one), number(paper["oem"]), number(paper["obmm"])] + bold_best(means))
    return markdown(["data set", "paper oEM", "paper oBMM"] + [name for _, name in learners], rows)


def part_pairs(where: str) -> str:
    """For docs/REPRODUCTION.md: differences oBMM − oEM under equal circumstances, with their standard errors."""
    found = {}
    for how, theirs, ours in PAIRS:
        try:
            found[how] = against(where, ours, theirs)
        except Missing:
            continue
    if not found:
        raise Missing(where)
    rows = []
    for one in next(iter(found.values()))[0]:
        data = one["data"]["data"]
        row = [title(one)]
        for sets, cells in found.values():
            cell = cells.get(data)
            if cell is None or cell.difference is None:
                row.append("")
                continue
            mark = "" if cell.p is None or cell.p >= 0.05 else "*"
            row.append(f"{number(cell.difference, 3)} ± {number(cell.difference_error, 3)}{mark}")
        rows.append(row)
    return markdown(["oBMM − oEM"] + list(found), rows)


def part_scaling() -> str:
    """Table 3: one core, all cores, five machines."""
    one_thread, threads = seconds("table3/one-thread"), seconds("table3")
    rows = []
    for one in table("table3").sets:
        data, paper = one["data"]["data"], one["paper_seconds"]
        if (data, "obmm") not in one_thread:
            continue
        row = [title(one), f"{one['data']['rows']:,} × {len(one['data']['columns'])}",
               number(paper["oem"], 1), number(paper["obmm"], 1), number(paper["odmm"], 1)]
        for learner in ("oem_blind", "obmm_blind", "odmm_blind", "obmm", "odmm", "obmm_revised"):
            cells = [source.get((data, learner)) for source in (one_thread, threads)]
            texts = [f"{float(cell['learn_seconds_median']):.2f}" if cell else "–" for cell in cells]
            if learner.startswith("odmm"):
                machines = cells[0]["machine_seconds_median"] if cells[0] else ""
                texts.append(f"{float(machines):.2f}" if machines else "–")
            row.append(" / ".join(texts))
        rows.append(row)
    return markdown(["data set", "rows", "paper oEM", "paper oBMM", "paper oDMM", "oEM blind", "oBMM blind", "oDMM blind, five machines last",
                     "oBMM", "oDMM, five machines last", "oBMM revised"], rows)


def provenance(where: str) -> str:
    runs = table(where).runs
    if not runs:
        raise Missing(where)
    last = runs[-1]
    ks = last["ks"]
    k = f"{ks[0]} to {ks[-1]}" if len(ks) > 3 else ", ".join(map(str, ks))
    tests = f"{last['folds']} folds" if last["folds"] > 1 else "separate test rows"
    days = sorted({run["began"][:10] for run in runs})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return (f"Run of {when}, version {last['tool']}: K = {k}, {tests}, seed {last['seed']}, {last['threads']} threads, "
            f"{last['processor']}.")


def part_best(where: str) -> str:
    """The first sentence of a table's page, and its date."""
    lines = table(where).summary.split("| data set")[0].splitlines()
    sentences = [line.replace("\\", "") for line in lines[1:] if line and not line.startswith("Mean test")]
    return "\n\n".join([*sentences, provenance(where)])


PARTS: Dict[str, Callable[[], str]] = {
    "claims": part_claims,
    "verdicts": part_verdicts,
    "table1": part_table1,
    "pairs of table1": lambda: part_pairs("table1"),
    "pairs of table2": lambda: part_pairs("table2"),
    "scaling": part_scaling,
    "best of table1": lambda: part_best("table1"),
    "best of table2": lambda: part_best("table2"),
    "best of table3": lambda: provenance("table3"),
}
PAGES = ["README.md", "docs/REPRODUCTION.md", "results/table1/README.md", "results/table2/README.md", "results/table3/README.md"]
PART = re.compile(r"(<!-- made: ([a-z0-9 ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str) -> str:
    def fill(found: "re.Match[str]") -> str:
        try:
            return f"{found[1]}{PARTS[found[2]]()}\n{found[3]}"
        except Missing as why:
            print(f"left as it is: '{found[2]}' ({why})", file=sys.stderr)
            return found[0]

    return PART.sub(fill, text)


def main(check: bool) -> int:
    differ = 0
    for name in PAGES:
        path = ROOT / name
        before = path.read_text(encoding="utf-8")
        after = filled(before)
        if check and before != after:
            differ = 1
            sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True), name, "from the records"))
        elif before != after:
            path.write_text(after, encoding="utf-8")
            print(f"{name} is filled")
    return differ


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:] == ["--check"]))
