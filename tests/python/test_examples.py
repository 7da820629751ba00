"""The scripts in examples/: their models against the one-process run over the same parts, and lost shards named.

Run with: python3 -m unittest discover -s tests/python
Needs a built gmm-bmm (GMM_BMM, or the newest under target/).
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
WARMUP = 1000


def find_program():
    if "GMM_BMM" in os.environ:
        return os.environ["GMM_BMM"]
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [path for path in (target / kind / "gmm-bmm" for kind in ("debug", "release")) if path.exists()]
    return str(max(built, key=lambda path: path.stat().st_mtime).resolve()) if built else None


PROGRAM = find_program()


def rows(count: int, seed: int) -> list:
    draw = random.Random(seed)
    centres = [(0.0, 0.0, 1.0), (4.0, -3.0, 0.0)]
    return [[centre + draw.gauss(0.0, 1.0 + 0.3 * j) for j, centre in enumerate(draw.choice(centres))]
            for _ in range(count)]


def close(found, expected, at="model") -> None:
    """That two JSON values are the same up to rounding."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), at
        for key in expected:
            close(found[key], expected[key], f"{at}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), at
        for i, pair in enumerate(zip(found, expected)):
            close(*pair, f"{at}[{i}]")
    else:
        assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9), f"{at}: {found} and {expected}"


@unittest.skipIf(PROGRAM is None, "gmm-bmm is not built: cargo build")
class WithParts(unittest.TestCase):
    """Three parts, and the model of one process that reads them as three shards."""

    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)
        self.parts = [rows(2000, seed) for seed in (1, 2, 3)]
        for i in range(3):
            self.write_part(i, self.parts[i])
        self.learn_in_process("part-*.csv")

    def learn_in_process(self, *data: str) -> None:
        named = [word for name in data for word in ("--data", name)]
        self.tool("fit", "--algo", "odmm", "--deal", "parts", "--shards", "3", "--init-rows", str(WARMUP), *named,
                  "--k", "2", "--out", "process.json")
        self.expected = self.model("process.json")["state"]["candidates"][0]["learned"]["sharded"]["posterior"]

    def write_part(self, i: int, values: list, more: str = "") -> None:
        text = "a,b,c\n" + "".join(",".join(map(repr, row)) + "\n" for row in values) + more
        (self.folder / f"part-{i}.csv").write_text(text)

    def model(self, name: str) -> dict:
        return json.loads((self.folder / name).read_text())

    def tool(self, *words: str) -> None:
        subprocess.run([PROGRAM, *words], cwd=self.folder, check=True, capture_output=True)

    def run_script(self, *words: str, **environment: str):
        environment = {**os.environ, "GMM_BMM": PROGRAM, "K": "2", "WARMUP": str(WARMUP), **environment}
        return subprocess.run(list(words), cwd=self.folder, env=environment, capture_output=True, text=True)

    def check_model(self, name: str = "model.json") -> None:
        model = self.model(name)
        close(model["state"]["candidates"][0]["learned"]["bayes"]["posterior"], self.expected)
        self.assertEqual(model["state"]["rows"] + model["state"]["lineage"]["prior_rows"], 6000)


class Shell(WithParts):
    def shards(self, **environment: str):
        return self.run_script(str(EXAMPLES / "shards.sh"), "model.json", "part-0.csv", "part-1.csv", "part-2.csv",
                               **environment)

    def without_parallel(self) -> str:
        """A path on which there is no GNU parallel."""
        tools = self.folder / "bin"
        tools.mkdir()
        for name in ("sh", "dirname", "nproc", "mkdir", "cat", "printf", "xargs", "tr", "rm", "grep"):
            (tools / name).symlink_to(shutil.which(name))
        return str(tools)

    def test_xargs_gives_the_model_of_one_process(self):
        done = self.shards(PATH=self.without_parallel())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_model()
        self.assertFalse((self.folder / "model.shards").exists())

    @unittest.skipUnless(shutil.which("parallel"), "GNU parallel is not installed")
    def test_parallel_gives_the_model_of_one_process(self):
        done = self.shards()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_model()

    def test_a_lost_shard_is_named_and_only_it_is_learned_again(self):
        self.write_part(1, self.parts[1], "1,tall,2\n")
        done = self.shards()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("'tall'", done.stderr)
        self.assertIn("shard 2 of 3 missing", done.stderr)
        self.assertFalse((self.folder / "model.json").exists())
        kept = self.folder / "model.shards" / "shard-1.json"
        learned = kept.stat().st_mtime_ns
        other = self.shards(K="3")
        self.assertEqual(other.returncode, 2)
        self.assertIn("other settings", other.stderr)
        self.assertEqual(kept.stat().st_mtime_ns, learned)
        self.write_part(1, self.parts[1])
        done = self.shards()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_model()

    def test_slurm_scripts_give_the_model_of_one_process(self):
        """With an sbatch that runs each job at once, as Slurm would in the end."""
        stand_in = self.folder / "sbatch"
        stand_in.write_text("""#!/bin/sh
            tasks=
            while case $1 in --*) true ;; *) false ;; esac; do
                case $1 in --array=1-*) tasks=$(seq 1 "${1#--array=1-}") ;; esac
                shift
            done
            for task in ${tasks:-0}; do SLURM_ARRAY_TASK_ID=$task sh "$1" >&2; done
            echo 7
        """)
        stand_in.chmod(0o755)
        done = self.run_script(str(EXAMPLES / "slurm/submit.sh"), "model.json", "part-0.csv", "part-1.csv",
                               "part-2.csv", PATH=f"{self.folder}:{os.environ['PATH']}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_model()


if __name__ == "__main__":
    unittest.main()
