"""Rows for the tests of the engines. scripts/test_engines.sh runs them in a virtual environment of their own."""

import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

COLUMNS = ["a", "b", "c"]
SETTINGS = {"n_components": 2, "start_rows": 1000}
SAMPLE_ROWS = 2000


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    """12,000 rows of two clusters, sorted: each partition has its own."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 1, (6000, 3)), rng.normal([5, 5, 0], 1, (6000, 3))])
    return pd.DataFrame(rows, columns=COLUMNS)


def check_mixture(mixture, frame) -> None:
    """That it learned each row once, as one pass does."""
    assert mixture.n_samples_seen_ == len(frame)
    assert list(mixture.feature_names_in_) == COLUMNS
    np.testing.assert_allclose(np.sort(mixture.weights_), [0.5, 0.5], atol=0.005)
    halves = frame.to_numpy().reshape(2, -1, 3).mean(axis=1)
    np.testing.assert_allclose(mixture.means_[np.argsort(mixture.means_[:, 0])], halves, atol=0.02)
    assert not any("prior_rows_repeated" in finding for finding in mixture.findings_)


def weighted(frame) -> pd.DataFrame:
    """With a column of weights: rows of the first cluster count three times, and every tenth row does not count."""
    first = np.arange(len(frame)) < 6000
    return frame.assign(times=np.where(np.arange(len(frame)) % 10 == 0, 0.0, np.where(first, 3.0, 1.0)))


def check_weighted(mixture, frame) -> None:
    """That it learned what :func:`weighted` says."""
    assert list(mixture.feature_names_in_) == COLUMNS
    by_first = np.argsort(mixture.means_[:, 0])
    np.testing.assert_allclose(mixture.weights_[by_first], [0.75, 0.25], atol=0.005)
    counted = frame[np.arange(len(frame)) % 10 != 0]
    halves = counted.to_numpy().reshape(2, -1, 3).mean(axis=1)
    np.testing.assert_allclose(mixture.means_[by_first], halves, atol=0.02)


def run_blocks(engine: str, **names) -> None:
    """Runs the blocks of the pages that import an engine's module, with these names."""
    found = 0
    for page in ("docs/DISTRIBUTED.md", "docs/MIGRATION.md"):
        text = (Path(__file__).parents[2] / page).read_text()
        for block in [block.split("```")[0] for block in text.split("```python\n")[1:]]:
            if engine in block:
                exec(compile(block, page, "exec"), names)  # noqa: S102
                found += 1
    assert found


def die_once(flag: str) -> None:
    """Kills this process, as a worker that runs out of memory is killed, unless it was done before."""
    try:
        Path(flag).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
