"""The sentences of the tracks, computed from tables that are made up."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import track_page  # noqa: E402
import track_trials  # noqa: E402


def table(folder: Path, scores: dict) -> Path:
    """Writes a table.csv with K = 5 in which a learner has the same mean on both sets, less 1 on the second."""
    folder.mkdir(parents=True)
    lines = ["data,learner,k,chosen,mean"]
    for less, data in enumerate(("a", "b")):
        for learner, mean in scores.items():
            lines += [f"{data},{learner},5,false,{mean - less}", f"{data},{learner},,true,{mean - less}"]
    (folder / "table.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


class Sentences(unittest.TestCase):
    def setUp(self):
        self.held = tempfile.TemporaryDirectory()
        self.addCleanup(self.held.cleanup)
        self.folder = Path(self.held.name)

    def test_order_is_compared_with_random_order(self):
        learners = ["oem_blind", "oem", "oem_revised", "obmm_blind", "obmm", "obmm_revised"]
        table(self.folder / "shuffled", {learner: -3.0 for learner in learners})
        order = table(self.folder / "order", dict(zip(learners, [-8.0, -3.5, -3.25, -2.5, -3.001, -3.0])))
        sentence = track_page.order(order)
        for words in ("costs oEM 0.50 nats, oBMM 0.00, oEM revised 0.25", "oEM 5.00 and oBMM −0.50", "mean of 2 sets"):
            self.assertIn(words, sentence)

    def test_shards_show_the_range(self):
        sentence = track_page.shards(table(self.folder / "shards-50", {"obmm": -2.0, "odmm": -2.125}))
        self.assertIn("with 50 shards differ from those of oBMM by −0.125 to −0.125 nats (2 sets)", sentence)

    def test_a_learned_k(self):
        scores = {"obmm": -3.0, "obmm_revised": -2.0, "obmm_auto": -1.5, "em_auto": -2.25}
        sentence = track_page.unknown_k(table(self.folder / "unknown_k", scores))
        self.assertIn("oBMM is 0.50 above", sentence)
        self.assertIn("batch EM 0.25 below it", sentence)

    def test_a_page_has_a_sentence_the_table_and_its_provenance(self):
        folder = table(self.folder / "shards-5", {"obmm": -2.0, "odmm": -2.125})
        summary = "# Comparison\n\nMean.\n\n| a |\n|---|\n\n## Learners\n\n- x\n\n## Provenance\n\n- `made`, gmm-bmm 1\n"
        (folder / "summary.md").write_text(summary, encoding="utf-8")
        arguments, sys.argv = sys.argv, ["track_page.py", str(folder), "What?", "3"]
        try:
            track_page.main()
        finally:
            sys.argv = arguments
        text = (folder / "README.md").read_text(encoding="utf-8")
        self.assertEqual([line for line in text.splitlines() if line][:5],
                         ["# Track: shards-5", track_page.shards(folder), "What?", "Mean.", "| a |"])
        self.assertIn("- `made`, gmm-bmm 1", text)
        self.assertNotIn("Learners", text)

    def test_removed_values_leave_one_in_each_row(self):
        import random
        rows = track_trials.removed([["1", "2"]] * 500, 0.5, random.Random(1))
        gone = sum(value == "" for row in rows for value in row)
        self.assertTrue(200 < gone < 300 and all(any(row) for row in rows), gone)


if __name__ == "__main__":
    unittest.main()
