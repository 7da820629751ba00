"""bench_peers.py without its peers: running and measuring children, the page, and what is left out.

Run with: python3 -m unittest discover -s tests/python
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import bench_peers  # noqa: E402
from peers_lib import table  # noqa: E402
from peers_lib.children import ChildError, run  # noqa: E402

# Replaces the binary. It answers in the same format, with figures that follow from the arguments alone.
FAKE_TOOL = """#!{python}
import json, pathlib, sys
arguments = sys.argv[1:]
def value(name):
    return arguments[arguments.index(name) + 1]
if arguments == ["-V"]:
    print("gmm-bmm 9.9.9")
elif arguments[0] == "synth":
    for name in ("--out", "--test-out", "--truth"):
        pathlib.Path(value(name)).write_text(value("--n"))
elif arguments[0] == "fit":
    assert value("--threads") == "1"
    print(json.dumps({{"read_seconds": 0.5, "learn_seconds": 2.0 if value("--algo") == "oem" else 1.0}}))
elif arguments[0] == "eval":
    print(json.dumps({{"mean_log_likelihood": -1.0 if "truth" in value("--model") else -1.25}}))
else:
    assert arguments[2] in ("obmm", "oem") and int(arguments[3]) > 0
    print(json.dumps({{"read_seconds": 0.25, "learn_seconds": 1.5 if arguments[2] == "oem" else 0.75}}))
"""

# Replaces the Python of the virtual environment. It has mlpack if there is a file with that name in its folder, and answers jobs.
FAKE_PYTHON = """#!{python}
import json, pathlib, sys
arguments = sys.argv[1:]
if arguments[0] == "-m":
    raise SystemExit(1)  # nothing can be installed
elif arguments[0] == "-c" and "mlpack" in arguments[1]:
    if not pathlib.Path(sys.argv[0]).with_name("mlpack").exists():
        raise SystemExit(1)
    print("8.8.8")
elif arguments[0] == "-c":
    print(json.dumps(["1.1", "2.2"]))
elif arguments[1] == "parquet":
    pathlib.Path(arguments[3]).touch()
    print("{{}}")
else:
    assert arguments[0].endswith("python_peer.py"), arguments
    fit = {{"read_seconds": 0.5, "learn_seconds": 6.0, "iterations": 20, "log_likelihood": None}}
    print(json.dumps({{
        "read": {{"read_seconds": 1.0}},
        "iteration": {{"iteration_seconds": 4.0, "score_seconds": 2.0}},
        "fit": {{**fit, "iterations": 12, "log_likelihood": -1.5}},
        "minibatch": {{"read_seconds": 0.5, "learn_seconds": 8.0}},
        "mlpack_iteration": {{"iteration_seconds": 3.0}},
        "mlpack_fit": fit,
    }}[arguments[1]]))
"""


class Children(unittest.TestCase):
    def test_a_child_is_measured_and_has_one_thread(self):
        code = "import os, json; block = bytearray(80 << 20); print(json.dumps(os.environ['OMP_NUM_THREADS']))"
        done = run([sys.executable, "-c", code])
        self.assertEqual(done.json(), "1")
        self.assertGreater(done.peak_megabytes, 80)
        self.assertGreater(done.seconds, 0)

    def test_a_child_that_fails_is_an_error(self):
        with self.assertRaisesRegex(ChildError, "status 3"):
            run([sys.executable, "-c", "raise SystemExit(3)"])


class Page(unittest.TestCase):
    def results(self):
        runs = [
            {"who": table.OBMM, "read_seconds": 0.5, "learn_seconds": 1.0, "wall_seconds": 1.05, "passes": 1,
             "peak_megabytes": 20.4, "log_likelihood": -3.5, "rows_per_second": 2000.0},
            {"who": table.OBMM_IN_MEMORY, "read_seconds": 0.5, "learn_seconds": 0.84, "rows_per_second": 2500.0,
             "start_seconds": 0.1, "pass_seconds": 0.44, "revision_seconds": 0.2, "end_seconds": 0.1,
             "iteration_seconds": 1.0, "score_seconds": 0.5},
            {"who": table.POLARS, "read_seconds": 1.0, "rows_per_second": 1000.0},
            {"who": table.ITERATION, "learn_seconds": 4.0, "score_seconds": 2.0},
            {"who": table.SKLEARN, "learn_seconds": 50.0, "passes": 12, "log_likelihood": -3.25},
            {"who": table.MLPACK_ITERATION, "learn_seconds": 8.0},
            {"who": table.TRUTH, "log_likelihood": -3.0},
        ]
        return {"machine": {"processor": "a processor", "cores": 2}, "versions": {"polars": "1"}, "repeats": 3,
                "left_out": ["Armadillo (not installed)"],
                "sets": [{"name": "d = 3, K = 2, seed 7", "rows": 1000, "columns": 3, "k": 2, "runs": runs}]}

    def test_ratios_and_rows_are_on_the_page(self):
        page = table.render(self.results())
        lines = page.splitlines()
        cells = [line.strip("| ").split(" | ") for line in lines if line.startswith(("| set ", "| d = 3"))]
        expected = {
            "pass of oBMM / one scikit-learn iteration": "0.11",
            "whole oBMM fit / one scikit-learn iteration, in memory": "0.21",
            "one iteration of our EM / one of scikit-learn": "0.25",
            "one iteration of our EM / one of mlpack": "0.12",
            "scikit-learn's scoring / ours": "4.0",
            "scikit-learn's whole fit / whole oBMM fit, in memory": "59.5",
            "rows/s read, the library / polars": "2.50",
            "fit from file / larger of reading and learning, while both run": "1.05",
            "fit from file / larger of reading and learning, each alone": "1.25",
            "peak memory of the oBMM fit, MB": "20",
            "held-out, oBMM less the true model, nats": "-0.5000",
            "held-out, oBMM less scikit-learn, nats": "-0.2500",
            "whole oBMM fit with gaps / without": "–",
            "MiniBatchKMeans / oBMM, from file": "–",
            "oEM / oBMM, in memory": "–",
        }
        self.assertEqual(dict(zip(*cells)), {"set": "d = 3, K = 2, seed 7", **expected})
        for line in ("## d = 3, K = 2, seed 7, n = 1,000",
                     "| the library, oBMM, rows in memory | 2,500 | 0.500 | 0.840 | 0.100 | 0.440 | 0.300 | 0.500 | – | – | – | – |",
                     "Left out: Armadillo (not installed)."):
            self.assertIn(line, lines)

    def test_every_line_of_a_table_has_as_many_cells(self):
        tables = table.render(self.results()).split("\n\n")
        for lines in (part.splitlines() for part in tables if part.startswith("|")):
            self.assertEqual(len({line.count("|") for line in lines}), 1)


class Driver(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.tool = self.folder / "gmm-bmm"
        self.tool.write_text(FAKE_TOOL.format(python=sys.executable))
        self.tool.chmod(0o755)

    def main(self, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            status = bench_peers.main(["--out", str(self.folder / "out"), "--gmm-bmm", str(self.tool), "--library",
                                       str(self.tool), *arguments])
        return status, said.getvalue()

    def test_a_quick_run_without_peers_writes_both_files(self):
        status, said = self.main("--quick", "--no-peers", "--columns", "3", "5", "6")
        self.assertEqual(status, 0, said)
        results = json.loads((self.folder / "out" / "peers.json").read_text())
        self.assertEqual([data["columns"] for data in results["sets"]], [3, 3, 3, 3, 5, 5, 5])
        drawn = {data["rows"] for data in results["sets"] if "seed" in data["name"]}
        read = {data["rows"] for data in results["sets"] if "seed" not in data["name"]}
        self.assertEqual((drawn, read), ({1000, bench_peers.QUICK_ROWS}, {bench_peers.QUICK_ROWS * 9 // 10}))
        page = (self.folder / "out" / "peers.md").read_text()
        self.assertIn("watch (no file)", page)
        self.assertIn("scikit-learn and polars (not installed); Armadillo", page)

    def test_one_set_can_be_chosen_and_peers_that_cannot_be_had_are_left_out(self):
        with mock.patch.object(bench_peers, "python_with_packages", return_value=None), \
                mock.patch.object(bench_peers, "armadillo_program", return_value=None):
            status, said = self.main("--columns", "50")
        self.assertEqual(status, 0, said)
        results = json.loads((self.folder / "out" / "peers.json").read_text())
        self.assertEqual([(data["rows"], data["columns"]) for data in results["sets"]], [(130_064, 50)])

    def test_a_run_of_parts_resumes_and_keeps_the_order_of_the_sets(self):
        def names():
            return [data["name"] for data in json.loads((self.folder / "out" / "peers.json").read_text())["sets"]]

        gaps, small = "d = 16, K = 6, seed 7, 10% gaps", "d = 5, K = 3, seed 7, 1,000 rows"
        self.assertEqual(self.main("--no-peers", "--only", "gaps")[0], 0)
        self.assertEqual(names(), [gaps])
        self.assertIn("whole oBMM fit with gaps / without", (self.folder / "out" / "peers.md").read_text())
        status, said = self.main("--no-peers", "--only", "gaps", "3, seed 7, 1,000")
        self.assertEqual((status, names(), gaps in said), (0, [small, gaps], False), said)
        status, said = self.main("--no-peers", "--only", "gaps", "--again")
        self.assertEqual((status, names(), gaps in said), (0, [small, gaps], True), said)

    def test_a_parquet_file_is_learned_by_both(self):
        results = self.run_with_fake_python("--only", "Parquet")[1]
        runs = {run["who"]: run for run in results["sets"][0]["runs"]}
        self.assertEqual(set(runs), {table.OBMM, table.MINI_BATCH, table.TRUTH})
        self.assertEqual(runs[table.MINI_BATCH]["learn_seconds"], 8.0)

    def run_with_fake_python(self, *chosen):
        python = self.folder / "python"
        python.write_text(FAKE_PYTHON.format(python=sys.executable))
        python.chmod(0o755)
        with mock.patch.object(bench_peers, "python_with_packages", return_value=python), \
                mock.patch.object(bench_peers, "armadillo_program", return_value=None):
            status, said = self.main("--quick", *(chosen or ("--columns", "50")))
        self.assertEqual(status, 0, said)
        results = json.loads((self.folder / "out" / "peers.json").read_text())
        return said, results, {run["who"]: run for run in results["sets"][0]["runs"]}

    def test_mlpack_takes_part_where_it_is_installed(self):
        (self.folder / "mlpack").touch()
        said, results, runs = self.run_with_fake_python()
        self.assertEqual((results["left_out"], results["versions"]["mlpack"]), (["Armadillo (not installed)"], "8.8.8"))
        self.assertEqual(runs[table.MLPACK_ITERATION]["learn_seconds"], 3.0)
        whole = runs[table.MLPACK]
        self.assertEqual([whole["learn_seconds"], whole["passes"], whole["log_likelihood"]], [6.0, 20, None])
        self.assertIn("mlpack, gmm_train", (self.folder / "out" / "peers.md").read_text())

    def test_the_others_take_part_without_mlpack(self):
        said, results, runs = self.run_with_fake_python()
        self.assertIn("left out: mlpack (not installed)", said)
        self.assertIn("mlpack (not installed)", results["left_out"])
        self.assertNotIn("mlpack", results["versions"])
        self.assertEqual((table.SKLEARN in runs, table.MLPACK in runs), (True, False))

    def test_a_binary_that_is_not_there_or_fails_is_said(self):
        self.tool.write_text("#!/bin/sh\ncase $1 in -V) echo gmm-bmm 1 ;; *) exit 4 ;; esac\n")
        status, said = self.main("--quick", "--no-peers")
        self.assertEqual((status, "failed with status 4" in said), (1, True), said)
        self.tool.unlink()
        status, said = self.main("--quick", "--no-peers")
        self.assertEqual((status, "cargo build --release" in said), (1, True), said)


if __name__ == "__main__":
    unittest.main()
