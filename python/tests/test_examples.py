"""The examples run, and find what is in their data."""

import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name):
    # joblib's processes import the module by its name.
    sys.path.insert(0, str(EXAMPLES))
    try:
        return __import__(name)
    finally:
        sys.path.pop(0)


def test_out_of_core(tmp_path, capsys):
    pytest.importorskip("pandas")
    example = load("out_of_core")
    example.write_example(tmp_path / "rows.csv", 40_000)
    mixture = example.main(tmp_path / "rows.csv")
    assert mixture.n_components_ == 4
    assert "40000 rows, 4 components, 4 clusters" in capsys.readouterr().out


def test_anomaly_scores():
    found, missed, false = load("anomaly_scores").main(40)
    assert found > 10 and missed == 0 and false < 40, (found, missed, false)


def test_distributed(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    mixture = load("distributed").main()
    assert mixture.n_samples_seen_ == 80_000
    expected = np.mean([np.roll([0.6, 0.3, 0.1], part) for part in range(4)], axis=0)
    order = [np.argmin(np.linalg.norm(mixture.means_ - centre, axis=1)) for centre in ([0, 0], [10, 0], [0, 10])]
    np.testing.assert_allclose(mixture.weights_[order], expected, atol=0.01)


def test_the_readme_runs():
    text = (Path(__file__).parents[1] / "README.md").read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    assert len(blocks) >= 2
    names: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102
