"""The examples run, and find what is in their data."""

import os
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


def close(printed, expected):
    """The same words, and numbers that differ by less than 5 %, or 0.2 in all: a version may find another mixture."""
    number = r"-?\d+\.?\d*"
    numbers = [[float(x) for x in re.findall(number, text)] for text in (printed, expected)]
    return re.sub(number, "#", printed) == re.sub(number, "#", expected) and np.allclose(*numbers, rtol=0.05, atol=0.2)


@pytest.mark.parametrize("output", sorted((EXAMPLES / "output").glob("*.txt")), ids=lambda file: file.stem)
def test_examples_print_what_the_site_shows(output):
    if output.stem == "spark_job":
        pytest.skip("python/tests_engines runs it")
    pytest.importorskip("pandas")
    printed = run(output.stem + ".py")
    if os.environ.get("UPDATE_EXAMPLES"):
        output.write_text(printed)
    assert close(printed, output.read_text()), printed


@pytest.mark.parametrize("readme", ["README.md", "../README.md", "../docs/START.md", "../docs/MIGRATION.md"])
def test_the_readmes_run(readme, tmp_path, monkeypatch):
    text = (Path(__file__).parents[1] / readme).read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    assert blocks
    monkeypatch.chdir(tmp_path)
    names = {"batches": np.random.default_rng(0).normal(size=(5, 100, 2))}
    for block in blocks:
        exec(compile(block, readme, "exec"), names)  # noqa: S102
