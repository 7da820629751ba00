"""Dask, on a local cluster of processes."""

import dask.array
import dask.dataframe
import numpy as np
import pytest
from conftest import SAMPLE_ROWS, SETTINGS, check_mixture, check_weighted, die_once, run_blocks, weighted
from distributed import Client, LocalCluster

import gmm_bmm.dask as gmm_dask
from gmm_bmm import OnlineGaussianMixture
from gmm_bmm import distributed as distributed_shards


@pytest.fixture(scope="module")
def client():
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            yield client


def fit(X, **parameters):
    return gmm_dask.fit(X, random_state=1, **{"sample_rows": SAMPLE_ROWS, **SETTINGS, **parameters})


def test_scores_are_lazy_and_those_of_the_estimator(client, frame):
    rows = dask.array.from_array(frame.to_numpy(), chunks=(2500, 2))
    mixture = fit(rows)
    labels, score = gmm_dask.predict(mixture, rows), gmm_dask.score(mixture, rows)
    assert isinstance(labels, dask.array.Array) and isinstance(score, dask.array.Array)
    np.testing.assert_array_equal(labels.compute(), mixture.predict(frame.to_numpy()))
    assert score.compute() == pytest.approx(mixture.score(frame.to_numpy()))
    named = OnlineGaussianMixture(random_state=1, **SETTINGS).fit(frame)
    ranks = gmm_dask.rank_samples(named, dask.dataframe.from_pandas(frame, npartitions=3)).compute()
    np.testing.assert_array_equal(ranks, named.rank_samples(frame))
    assert ranks.index.equals(frame.index)


def test_few_rows_are_those_of_a_local_fit_and_empty_partitions_add_nothing(client, frame):
    rows = dask.dataframe.from_pandas(frame, npartitions=4)
    few = rows.map_partitions(lambda part: part[(part.index < 500) | (part.index >= 11_500)])
    local = OnlineGaussianMixture(random_state=1, **SETTINGS).fit(few.compute())
    assert fit(few).to_bytes() == local.to_bytes()
    assert fit(rows.map_partitions(lambda part: part[part.index < 8000])).n_samples_seen_ == 8000


def test_the_prior_has_enough_rows_if_one_partition_has_nearly_all(client, frame, monkeypatch):
    sizes, prior = [], distributed_shards.prior
    monkeypatch.setattr(distributed_shards, "prior", lambda rows, *a, **k: sizes.append(len(rows)) or prior(rows, *a, **k))
    mixed = frame.sample(frac=1.0, random_state=0).reset_index(drop=True)
    parts = [mixed.iloc[:11_000]] + [mixed.iloc[start : start + 100] for start in range(11_000, 12_000, 100)]
    rows = dask.dataframe.from_delayed([dask.delayed(part) for part in parts], meta=frame.iloc[:0])
    mixture = fit(rows)
    assert mixture.n_samples_seen_ == 12_000 and SAMPLE_ROWS <= sizes[0] < SAMPLE_ROWS + 20, sizes


def test_rows_have_weights(client, frame):
    rows = dask.dataframe.from_pandas(weighted(frame), npartitions=4)
    mixture = fit(rows, sample_weight="times")
    check_weighted(mixture, frame)
    values, times = rows[["a", "b", "c"]], rows["times"]
    assert fit(values, sample_weight=times).to_bytes() == mixture.to_bytes()
    array = fit(values.to_dask_array(lengths=True), sample_weight=times.to_dask_array(lengths=True))
    np.testing.assert_array_equal(array.means_, mixture.means_)
    score = gmm_dask.score(mixture, values, sample_weight=times).compute()
    assert score == pytest.approx(mixture.score(frame, sample_weight=weighted(frame)["times"]))
    few = fit(rows, sample_weight="times", sample_rows=12_000)
    local = OnlineGaussianMixture(random_state=1, **SETTINGS).fit(frame, sample_weight=weighted(frame)["times"])
    assert few.to_bytes() == local.to_bytes()


def test_weights_that_do_not_fit_are_refused(client, frame):
    rows = dask.dataframe.from_pandas(frame, npartitions=4)
    with pytest.raises(ValueError, match="no column 'times'"):
        fit(rows, sample_weight="times")
    with pytest.raises(ValueError, match="4 partitions and sample_weight 3"):
        fit(rows, sample_weight=dask.dataframe.from_pandas(frame, npartitions=3)["a"])
    with pytest.raises(ValueError, match="a weight must be 0 or above"):
        fit(rows, sample_weight="a")


def test_the_plain_estimator_does_not_collect_all_rows(frame):
    rows = dask.dataframe.from_pandas(frame, npartitions=4)
    for lazy in (rows, rows.to_dask_array()):
        with pytest.raises(TypeError, match=r"gmm_bmm\.dask\.fit"):
            OnlineGaussianMixture(2).fit(lazy)


def test_the_pages_run(client, frame):
    run_blocks("import dask", ddf=dask.dataframe.from_pandas(frame, npartitions=2))


def killing(part, flag):
    if len(part) and part.index[0] == 6000:
        die_once(flag)
    return part


def test_a_killed_worker_changes_no_bit(client, frame, tmp_path):
    rows = dask.dataframe.from_pandas(frame, npartitions=4)
    mixture = fit(rows)
    check_mixture(mixture, frame)
    flag = tmp_path / "killed"
    again = fit(rows.map_partitions(killing, str(flag), meta=frame.iloc[:0]))
    assert flag.exists() and again.to_bytes() == mixture.to_bytes()
