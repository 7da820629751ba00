"""The examples of DuckDB and Polars run."""

import runpy
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["duckdb_batches", "polars_batches"])
def test_batches_of_a_query(name):
    mixture = runpy.run_path(str(Path(__file__).parents[1] / "examples" / f"{name}.py"))["main"]()
    assert mixture.n_samples_seen_ == 120_000
    assert sorted(map(tuple, mixture.means_.round().tolist())) == [(x, y) for x in (1, 11, 21) for y in (1, 11)]
