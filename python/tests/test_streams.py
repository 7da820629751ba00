"""Batches from other libraries, threads, interrupts and errors."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from gmm_bmm import OnlineGaussianMixture


def test_batches_of_arrow_pandas_and_polars_give_the_same_bytes(rows):
    pyarrow = pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    names = list("abcd")
    table = pyarrow.table({name: rows[:, j] for j, name in enumerate(names)})
    streams = {
        "arrow": (batch.to_pandas() for batch in table.to_batches(max_chunksize=3_000)),
        "pandas": (pandas.DataFrame(part, columns=names) for part in np.array_split(rows, 7)),
        "polars": polars.DataFrame(rows, schema=names).iter_slices(1_777),
    }
    found = {}
    for kind, stream in streams.items():
        mixture = OnlineGaussianMixture(random_state=0)
        for batch in stream:
            mixture.partial_fit(batch)
        found[kind] = mixture.to_bytes()
    assert found["arrow"] == found["pandas"] == found["polars"]


@pytest.fixture(scope="module")
def drifting():
    """Two modes whose means move by 8 standard deviations."""
    rng = np.random.default_rng(5)
    time = np.linspace(0, 1, 60_000)[:, None]
    mode = rng.integers(2, size=(60_000, 1))
    return rng.normal(size=(60_000, 3)) + 8 * time + 20 * mode


def test_a_half_life_follows_rows_that_drift(drifting):
    latest = drifting[-2_000:]
    constant = OnlineGaussianMixture(2, random_state=0).fit(drifting)
    forgetting = OnlineGaussianMixture(2, half_life=1_000, random_state=0).fit(drifting)
    assert forgetting.score(latest) > constant.score(latest) + 1.0
    assert forgetting.weight_concentration_.sum() < 1_000 / np.log(2) + 10
    changes = [finding["data_change"] for finding in constant.findings_ if "data_change" in finding]
    assert len(changes) == 1 and 5_000 < changes[0]["row"] < 60_000 and not changes[0]["forgets"]


@pytest.mark.parametrize("algorithm", ["obmm", "oem"])
def test_the_half_life_can_be_changed_and_survives_a_file(drifting, tmp_path, algorithm):
    first, second = np.array_split(drifting, 2)
    mixture = OnlineGaussianMixture(2, algorithm=algorithm, random_state=0).partial_fit(first)
    mixture.set_params(half_life=500).partial_fit(second)
    mixture.save(tmp_path / "model.json")
    other = OnlineGaussianMixture.load(tmp_path / "model.json")
    assert other.half_life == 500
    for each in (mixture, other):
        each.partial_fit(first)
    assert mixture.to_bytes() == other.to_bytes()
    other.set_params(half_life=None).partial_fit(second)
    assert OnlineGaussianMixture._of(other._fit).half_life is None
    with pytest.raises(ValueError, match="half_life"):
        OnlineGaussianMixture(2, half_life=0).fit(first)


def test_shards_have_no_half_life(rows):
    with pytest.raises(ValueError, match="half-life"):
        OnlineGaussianMixture(2, half_life=500, random_state=0).fit(rows).shard()


def test_threads_on_one_estimator_wait_for_each_other(rows):
    mixture = OnlineGaussianMixture(3, random_state=0)
    failures = []

    def learn():
        try:
            for batch in np.array_split(rows, 20):
                mixture.partial_fit(batch)
                mixture.predict(batch[:10])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=learn) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures
    assert mixture.n_samples_seen_ == 4 * 20_000
    assert np.isfinite(mixture.score(rows))


def test_other_threads_run_while_rows_are_learned():
    rows = np.random.default_rng(0).standard_normal((60_000, 20))
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begun = time.perf_counter()
    OnlineGaussianMixture(8, random_state=0).fit(rows)
    took = time.perf_counter() - begun
    done.set()
    thread.join()
    longest = np.diff([begun, *ticks]).max()
    assert longest < 0.5 * took, (longest, took)


@pytest.mark.skipif(os.name == "nt", reason="signals differ")
def test_an_interrupt_ends_learning_and_leaves_a_sound_state():
    rows = np.random.default_rng(0).standard_normal((400_000, 30))
    mixture = OnlineGaussianMixture(20, random_state=0)
    # A shell lets background processes ignore the signal.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100):
            mixture.partial_fit(rows)
    signal.signal(signal.SIGINT, handler)
    assert time.perf_counter() - begun < 20
    seen = mixture.n_samples_seen_
    mixture.partial_fit(rows[:1000])
    assert mixture.n_samples_seen_ == seen + 1000


def test_errors_speak_python(rows):
    mixture = OnlineGaussianMixture(3, random_state=0)
    for use in (lambda: mixture.predict(rows), lambda: mixture.weights_, lambda: mixture.save("x"), mixture.sample):
        with pytest.raises(NotFittedError):
            use()
    assert not hasattr(mixture, "means_")
    mixture.partial_fit(rows)
    with pytest.raises(ValueError, match="3 features"):
        mixture.partial_fit(rows[:, :3])
    for message in (str(finding) for finding in mixture.findings_):
        assert "--" not in message


def test_findings_and_history_are_plain_data(rows):
    constant = np.column_stack([rows, np.ones(len(rows))])
    mixture = OnlineGaussianMixture(random_state=0).fit(constant)
    assert any("constant" in str(finding).lower() for finding in mixture.findings_)
    assert all({"rows", "reason", "kept", "moves"} <= revision.keys() for revision in mixture.history_)


def test_rows_in_order_of_class_are_learned(rows):
    ordered = rows[np.argsort(rows[:, 1] - rows[:, 2])]
    mixture = OnlineGaussianMixture(random_state=0)
    for batch in np.array_split(ordered, 40):
        mixture.partial_fit(batch)
    mixture.finish()
    assert mixture.score(rows) > OnlineGaussianMixture(3, random_state=0).fit(rows).score(rows) - 0.02


def test_rows_that_wait_for_the_start_are_fitted_once(rows):
    mixture = OnlineGaussianMixture(random_state=0).partial_fit(rows[:3_000])

    def seconds(calls):
        begun = time.process_time()
        for _ in range(calls):
            mixture.predict(rows[:1])
            mixture.score(rows[:1])
            mixture.n_components_
        return time.process_time() - begun

    first = seconds(1)
    assert seconds(10) < first
