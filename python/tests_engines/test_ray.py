"""Ray, on this machine."""

import numpy as np
import pytest
import ray
import ray.data
from conftest import SAMPLE_ROWS, SETTINGS, check_mixture, check_weighted, die_once, run_blocks, weighted

import gmm_bmm.ray as gmm_ray


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_a_killed_worker_changes_no_bit(frame, tmp_path):
    def fit(rows):
        return gmm_ray.fit(rows, columns=["a", "b", "c"], sample_rows=SAMPLE_ROWS, random_state=1, **SETTINGS)

    flag = str(tmp_path / "killed")

    def killing(block):
        if block["a"].iloc[0] == frame["a"].iloc[6000]:
            die_once(flag)
        return block

    rows = ray.data.from_pandas([frame.assign(word="w").iloc[start : start + 3000] for start in range(0, 12_000, 3000)])
    mixture = fit(rows)
    check_mixture(mixture, frame)
    again = fit(rows.map_batches(killing, batch_format="pandas", batch_size=None))
    assert (tmp_path / "killed").exists() and again.to_bytes() == mixture.to_bytes()
    scored = gmm_ray.transform(mixture, rows).to_pandas()
    assert list(scored.columns) == ["a", "b", "c", "word", "prediction", "log_density", "rank"]
    np.testing.assert_array_equal(scored["log_density"], mixture.score_samples(scored[["a", "b", "c"]]))


def test_the_pages_run(frame):
    run_blocks("import ray", ds=ray.data.from_pandas(frame))


def test_rows_have_weights(frame):
    rows = ray.data.from_pandas([weighted(frame).iloc[start : start + 3000] for start in range(0, 12_000, 3000)])
    mixture = gmm_ray.fit(rows, sample_weight="times", sample_rows=SAMPLE_ROWS, random_state=1, **SETTINGS)
    check_weighted(mixture, frame)
