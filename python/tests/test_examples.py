"""The examples run, and find what is in their data."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gmm_bmm

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


def run_blocks(page, names):
    """Runs the Python blocks of a page. python/tests_engines runs those that need an engine."""
    text = (Path(__file__).parents[1] / page).read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    blocks = [block for block in blocks if not re.search(r"gmm_bmm(\.spark| import dask| import ray)", block)]
    assert blocks
    for block in blocks:
        if "gmm_bmm.river" in block:
            pytest.importorskip("river")
        exec(compile(block, page, "exec"), names)  # noqa: S102


@pytest.mark.parametrize("page", ["README.md", "../README.md", "../docs/START.md", "../docs/MIGRATION.md"])
def test_the_pages_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stream = [{"x": i % 2 * 9.0, "y": i % 7 / 7} for i in range(50)]
    run_blocks(page, {"batches": np.random.default_rng(0).normal(size=(5, 100, 2)), "stream": stream})


def test_a_model_file_is_read_and_ranked_as_its_page_says(tmp_path):
    names = {}
    run_blocks("../docs/MODEL_FORMAT.md", names)
    X = np.random.default_rng(0).normal(size=(6000, 1)) * [1.0, 2.0] + np.array([[0.0, 0.0], [9.0, 0.0]] * 3000)
    whole = {"full": lambda c: c, "tied": lambda c: [c, c], "diag": lambda c: [np.diag(v) for v in c],
             "spherical": lambda c: [v * np.eye(2) for v in c]}  # fmt: skip
    for covariance_type, expected in whole.items():
        mixture = gmm_bmm.OnlineGaussianMixture(2, covariance_type=covariance_type, random_state=0).fit(X)
        mixture.save(tmp_path / "model.json")
        weights, parts = names["mixture"](tmp_path / "model.json")
        np.testing.assert_allclose(weights, mixture.weights_)
        np.testing.assert_allclose([mean for mean, _ in parts], mixture.means_)
        np.testing.assert_allclose([covariance for _, covariance in parts], expected(mixture.covariances_))
        if program := os.environ.get("GMM_BMM"):
            command = [program, "export", tmp_path / "model.json", "--out", tmp_path / "mixture.npz"]
            subprocess.run(command, check=True, capture_output=True)
            ranks = names["ranks"](tmp_path / "mixture.npz", X[:100])
            np.testing.assert_allclose(ranks, mixture.rank_samples(X[:100]), atol=1 / len(X))


def modules():
    """The modules of the package that need no engine."""
    names = [module.name for module in pkgutil.iter_modules(gmm_bmm.__path__)]
    return ["gmm_bmm", *(f"gmm_bmm.{name}" for name in names if name not in ("_core", "spark", "dask", "ray"))]


@pytest.mark.parametrize("name", modules())
def test_the_examples_of_docstrings_print_what_they_say(name):
    if name == "gmm_bmm.river":
        pytest.importorskip("river")
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
