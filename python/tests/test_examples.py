"""The examples run, and find what is in their data."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, *words):
    done = subprocess.run([sys.executable, EXAMPLES / name, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_out_of_core():
    pytest.importorskip("pandas")
    printed = run("out_of_core.py")
    assert "200000 rows, 4 components, 4 clusters" in printed
    assert len(printed.splitlines()) == 5


def test_anomaly_scores():
    found, missed, false, rows = (int(number) for number in re.findall(r"\d+", run("anomaly_scores.py")))
    assert found > 30 and missed <= 2 and false < 60 and rows == 60_000, (found, missed, false)


def test_distributed():
    printed = run("distributed.py")
    weights = {tuple(round(float(x)) for x in mean.split()): float(weight)
               for weight, mean in re.findall(r"([\d.]+) of the rows around \[([^]]*)\]", printed)}
    expected = np.mean([np.roll([0.6, 0.3, 0.1], part) for part in range(4)], axis=0)
    found = [weights[centre] for centre in ((0, 0), (10, 0), (0, 10))]
    np.testing.assert_allclose(found, expected, atol=0.01)


@pytest.mark.parametrize("readme", ["README.md", "../README.md"])
def test_the_readmes_run(readme, tmp_path, monkeypatch):
    text = (Path(__file__).parents[1] / readme).read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    assert blocks
    monkeypatch.chdir(tmp_path)
    names = {"batches": np.random.default_rng(0).normal(size=(5, 100, 2))}
    for block in blocks:
        exec(compile(block, readme, "exec"), names)  # noqa: S102
