"""The adapters of scripts/adapters in a comparison by the command."""

import json
import os
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


def compare(folder, adapter):
    """Runs a small comparison with one adapter, and returns its cell and that of oBMM. With a test file there is one fold, so that the
    adapter's packages are imported once less for each of its commands."""
    program = os.environ.get("GMM_BMM")
    if not program:
        pytest.skip("GMM_BMM does not name the command")
    script = ADAPTERS / ("mclust.R" if adapter == "mclust" else f"{adapter}.py")
    runs = "Rscript" if adapter == "mclust" else sys.executable
    takes_k = adapter not in ("gmm_mml_auto", "river_gaussian", "kernel_density")
    k = "{k}" if takes_k else "0"
    chosen = "{chosen_k}" if adapter in ("gmm_mml_auto", "river_gaussian") else ""
    (folder / "learners.toml").write_text(
        "protocol = 1\n[[learner]]\n"
        f"name = '{adapter}'\n"
        f"command = '{runs} {script} learn {{train}} {{model}} {k} {{seed}} {chosen}'\n"
        f"scorer = '{runs} {script} score {{model}} {{test}} {{scores}}'\n"
    )
    words = "compare --data train.csv --test test.csv --k 2 --algos obmm --learners learners.toml --out out --jobs 1"
    subprocess.run([program, *words.split()], cwd=folder, check=True, capture_output=True)
    records = [json.loads(line) for line in (folder / "out" / "records.jsonl").read_text().splitlines()]
    cells = [record for record in records if record["kind"] == "cell"]
    is_own = [isinstance(cell["contender"], dict) for cell in cells]
    [own] = [cell for cell, mine in zip(cells, is_own) if mine]
    [other] = [cell for cell, mine in zip(cells, is_own) if not mine]
    return own, other


def why_absent(adapter):
    """Why an adapter cannot run here; None where it can."""
    if adapter != "mclust":
        package = PACKAGES[adapter]
        return None if find_spec(package) else f"{package} is not installed"
    if shutil.which("Rscript") is None:
        return "R is not installed (Debian: r-cran-mclust)"
    asked = subprocess.run(["Rscript", "-e", "quit(status = !requireNamespace('mclust', quietly = TRUE))"], capture_output=True)
    return "the R package mclust is not installed (Debian: r-cran-mclust)" if asked.returncode else None


@pytest.mark.parametrize("adapter", [*PACKAGES, "mclust"])
def test_an_adapter_takes_part(tmp_path, adapter):
    if absent := why_absent(adapter):
        pytest.skip(absent)
    random = numpy.random.default_rng(2)
    centres = numpy.array([[0.0, 0.0], [600.0, 0.02]])[random.integers(0, 2, 240)]
    rows = centres + random.normal(size=(240, 2)) * [50.0, 0.004]
    for name, part in [("train", rows[:160]), ("test", rows[160:])]:
        numpy.savetxt(tmp_path / f"{name}.csv", part, delimiter=",", header="x,y", comments="")
    own, other = compare(tmp_path, adapter)
    assert own.get("failure") is None
    assert abs(own["measured"]["integral"][0] - 1) < 0.15
    mean, reference = numpy.mean(own["test"]), numpy.mean(other["test"])
    if adapter == "river_gaussian":
        assert mean < reference - 0.2, "one Gaussian cannot follow two groups"
        assert own["k"] == 1
    else:
        # One bandwidth for both groups smooths each of them too much.
        assert abs(mean - reference) < (1.0 if adapter == "kernel_density" else 0.4)
    assert own["measured"]["peak_memory"] > 1e7
