"""The adapters of scripts/adapters: two in a comparison by the command, and each by itself."""

import json
import os
import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy
import pytest

ADAPTERS = Path(__file__).resolve().parents[2] / "scripts" / "adapters"
PACKAGES = {
    "sklearn_gmm": "sklearn",
    "sklearn_bayesian_gmm": "sklearn",
    "gmm_mml_auto": "gmm_mml",
    "river_gaussian": "river",
    "gmm_bmm_python": "gmm_bmm",
    "kernel_density": "scipy",
}


def words(adapter):
    """The command of an adapter."""
    script = ADAPTERS / ("mclust.R" if adapter == "mclust" else f"{adapter}.py")
    return f"{'Rscript' if adapter == 'mclust' else sys.executable} {script}"


def compare(folder, adapter):
    """Runs a small comparison with one adapter, and returns its cell and that of oBMM. With a test file there is one fold, so that the
    adapter's packages are imported once less for each of its commands."""
    program = os.environ.get("GMM_BMM")
    if not program:
        pytest.skip("GMM_BMM does not name the command")
    (folder / "learners.toml").write_text(
        "protocol = 1\n[[learner]]\n"
        f"name = '{adapter}'\n"
        f"command = '{words(adapter)} learn {{train}} {{model}} {{k}} {{seed}}'\n"
        f"scorer = '{words(adapter)} score {{model}} {{test}} {{scores}}'\n"
    )
    arguments = "compare --data train.csv --test test.csv --k 2 --algos obmm --learners learners.toml --out out --jobs 1"
    subprocess.run([program, *arguments.split()], cwd=folder, check=True, capture_output=True)
    records = [json.loads(line) for line in (folder / "out" / "records.jsonl").read_text().splitlines()]
    cells = [record for record in records if record["kind"] == "cell"]
    is_own = [isinstance(cell["contender"], dict) for cell in cells]
    [own] = [cell for cell, mine in zip(cells, is_own) if mine]
    [other] = [cell for cell, mine in zip(cells, is_own) if not mine]
    return own, other


def call(monkeypatch, adapter, *arguments):
    """Calls an adapter in this process, which has imported most packages already."""
    monkeypatch.syspath_prepend(ADAPTERS)
    monkeypatch.setattr(sys, "argv", [adapter, *map(str, arguments)])
    runpy.run_path(ADAPTERS / f"{adapter}.py", run_name="__main__")


def why_absent(adapter):
    """Why an adapter cannot run here; None where it can."""
    if adapter != "mclust":
        package = PACKAGES[adapter]
        return None if find_spec(package) else f"{package} is not installed"
    if shutil.which("Rscript") is None:
        return "R is not installed (Debian: r-cran-mclust)"
    asked = subprocess.run(["Rscript", "-e", "quit(status = !requireNamespace('mclust', quietly = TRUE))"], capture_output=True)
    return "the R package mclust is not installed (Debian: r-cran-mclust)" if asked.returncode else None


CENTRES = numpy.array([[0.0, 0.0], [600.0, 0.02]])
UNITS = numpy.array([50.0, 0.004])


def write(path, rows):
    numpy.savetxt(path, rows, delimiter=",", header="x,y", comments="")


def write_rows(folder):
    """Training and test rows of two groups in columns of very different units. Returns the test rows."""
    random = numpy.random.default_rng(2)
    rows = CENTRES[random.integers(0, 2, 240)] + random.normal(size=(240, 2)) * UNITS
    write(folder / "train.csv", rows[:160])
    write(folder / "test.csv", rows[160:])
    return rows[160:]


@pytest.mark.parametrize("adapter", ["sklearn_gmm", "mclust"])
def test_an_adapter_takes_part_in_a_comparison(tmp_path, adapter):
    if absent := why_absent(adapter):
        pytest.skip(absent)
    write_rows(tmp_path)
    own, other = compare(tmp_path, adapter)
    assert own.get("failure") is None
    assert abs(own["measured"]["integral"][0] - 1) < 0.15
    assert abs(numpy.mean(own["test"]) - numpy.mean(other["test"])) < 0.4
    assert own["measured"]["peak_memory"] > 1e7


@pytest.mark.parametrize("adapter", list(PACKAGES))
def test_an_adapter_learns_and_scores(tmp_path, monkeypatch, adapter):
    if absent := why_absent(adapter):
        pytest.skip(absent)
    rows = write_rows(tmp_path)
    train, model, test, scores, chosen = [tmp_path / name for name in ("train.csv", "model", "test.csv", "scores.txt", "k.txt")]
    chooses = adapter in ("gmm_mml_auto", "river_gaussian")
    call(monkeypatch, adapter, "learn", train, model, 2, 7, *([chosen] if chooses else []))
    call(monkeypatch, adapter, "score", model, test, scores)
    mean = numpy.mean(numpy.loadtxt(scores))
    # The true density.
    squares = (((rows[:, None] - CENTRES) / UNITS) ** 2).sum(axis=2)
    truth = numpy.mean(numpy.log(numpy.exp(-0.5 * squares).sum(axis=1) / (4 * numpy.pi * UNITS.prod())))
    if adapter == "river_gaussian":
        assert mean < truth - 0.2, "one Gaussian cannot follow two groups"
        assert chosen.read_text().strip() == "1"
    else:
        # One bandwidth for both groups smooths each of them too much.
        assert abs(mean - truth) < (1.0 if adapter == "kernel_density" else 0.4)
    # The density integrates to 1.
    grid = numpy.stack(numpy.meshgrid(numpy.linspace(-6, 18, 97), numpy.linspace(-6, 11, 69)), axis=-1).reshape(-1, 2)
    write(test, grid * UNITS)
    call(monkeypatch, adapter, "score", model, test, scores)
    assert abs(numpy.exp(numpy.loadtxt(scores)).sum() * 0.25**2 * UNITS.prod() - 1) < 0.1
