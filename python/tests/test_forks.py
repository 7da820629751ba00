"""Processes that are forked while the package is in use."""

import multiprocessing
import os
import pickle
import signal
import threading
import time

import joblib
import numpy as np
import pytest

from gmm_bmm import OnlineGaussianMixture, merge

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

MAX = 60
"""Seconds after which a child counts as hanging."""


def in_fork(work):
    """What ``work`` returns in a forked child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            signal.alarm(MAX)
            with open(write, "wb") as pipe:
                try:
                    pickle.dump(work(), pipe)
                except BaseException as error:
                    pickle.dump(error, pipe)
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        answer = pipe.read()
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"the child was ended by signal {os.WTERMSIG(status)}"
    answer = pickle.loads(answer)
    if isinstance(answer, BaseException):
        raise answer
    return answer


def learn(rows):
    return OnlineGaussianMixture(3, random_state=0).fit(rows).to_bytes()


def learn_number(rows):
    return OnlineGaussianMixture(random_state=0).fit(rows).to_bytes()


def everything(mixture, rows):
    """The result of every method that may work on several threads."""
    holes = np.where(np.arange(rows.size).reshape(rows.shape) % 7 == 0, np.nan, rows)
    prior = OnlineGaussianMixture(2, random_state=0).fit(rows[:1_000])
    parts = [prior.shard().partial_fit(part) for part in np.array_split(rows[1_000:3_000], 2)]
    return [
        learn(rows[:500]),
        learn_number(rows),
        merge(parts, prior=prior).to_bytes(),
        pickle.loads(pickle.dumps(mixture)).partial_fit(rows[:700]).finish().to_bytes(),
        pickle.loads(pickle.dumps(mixture)).set_params(half_life=900).partial_fit(rows).to_bytes(),
        OnlineGaussianMixture.from_sklearn(mixture.to_sklearn(), n_samples=900, random_state=0).partial_fit(rows).to_bytes(),
        *(
            result.tobytes()
            for result in (
                mixture.score_samples(rows), mixture.predict(rows), mixture.predict_proba(rows),
                mixture.rank_samples(rows), mixture.explain(rows), mixture.impute(holes),
                mixture.sample_missing(holes, random_state=1), mixture.clusters_, mixture.means_,
            )
        ),
        str(mixture.findings_), str(mixture.history_),
    ]


@pytest.fixture
def many(rows):
    return np.concatenate([rows, rows[::-1] + 0.5])


def test_a_child_gives_the_bits_of_its_parent(many):
    mixture = OnlineGaussianMixture(random_state=0).fit(many)
    expected = everything(mixture, many)
    assert in_fork(lambda: everything(mixture, many)) == expected


def test_children_of_children(rows):
    expected = learn(rows[:500])
    grandchild = lambda: (learn(rows[:500]), in_fork(lambda: (learn(rows[:500]), in_fork(lambda: learn(rows[:500])))))
    assert in_fork(grandchild) == (expected, (expected, expected))
    assert in_fork(lambda: in_fork(lambda: learn(rows[:500]))) == expected


def test_a_fork_in_a_thread(rows):
    expected, found = learn(rows[:500]), []
    thread = threading.Thread(target=lambda: found.append(in_fork(lambda: learn(rows[:500]))))
    thread.start()
    thread.join()
    assert found == [expected]


def test_threads_in_a_child(rows):
    expected = learn(rows[:500])

    def in_threads():
        found = []
        threads = [threading.Thread(target=lambda: found.append(learn(rows[:500]))) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        return found

    assert in_fork(in_threads) == [expected] * 4


def test_multiprocessing_with_fork(rows):
    expected = learn(rows[:500])
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(learn, [rows[:500]] * 4).get(MAX) == [expected] * 4


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_joblib(rows, backend):
    expected = learn(rows[:500])
    jobs = joblib.Parallel(n_jobs=2, backend=backend, timeout=MAX)
    assert jobs(joblib.delayed(learn)(rows[:500]) for _ in range(4)) == [expected] * 4


def test_forks_while_other_threads_learn(rows):
    """A child may use what no thread used at the time of the fork, and is told of what was in use."""
    expected = learn(rows[:500])
    busy, done = OnlineGaussianMixture(3, random_state=0).partial_fit(rows), threading.Event()

    def keep_learning():
        while not done.is_set():
            busy.partial_fit(rows)

    def use_it():
        try:
            return len(busy.predict(rows[:10]))
        except RuntimeError as error:
            return str(error)

    thread = threading.Thread(target=keep_learning)
    thread.start()
    try:
        for _ in range(10):
            time.sleep(0.003)
            found, answer = in_fork(lambda: (learn(rows[:500]), use_it()))
            assert found == expected
            assert answer == 10 or "forked" in answer
    finally:
        done.set()
        thread.join()


def test_an_interrupt_ends_learning_in_a_child():
    rows = np.random.default_rng(0).standard_normal((100_000, 20))
    OnlineGaussianMixture(2, random_state=0).fit(rows[:500])

    def interrupted():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            mixture = OnlineGaussianMixture(10, random_state=0)
            for _ in range(1_000):
                mixture.partial_fit(rows)
        except KeyboardInterrupt:
            return "interrupted"

    assert in_fork(interrupted) == "interrupted"
