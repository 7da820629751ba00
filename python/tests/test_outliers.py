"""Detection of anomalies by a mixture."""

import pickle

import numpy as np
import pytest
from conftest import expected_failed_checks
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from gmm_bmm import MixtureOutlierDetector


@parametrize_with_checks(
    [
        MixtureOutlierDetector(random_state=0),
        MixtureOutlierDetector(0.1, n_components=2, missing="marginal", effort="fast", random_state=0),
    ],
    expected_failed_checks=expected_failed_checks,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def mixed():
    """Two clusters, a small dense group of anomalies far away, and scattered ones. Returns rows and what is an anomaly."""
    rng = np.random.default_rng(1)
    usual = np.concatenate([rng.normal(0, 1, (1800, 3)), rng.normal([9, 0, 3], 0.5, (1000, 3))])
    group, scattered = rng.normal([4, 14, -6], 0.1, (30, 3)), rng.uniform(-20, 20, (30, 3))
    X, is_anomaly = np.concatenate([usual, group, scattered]), np.arange(2860) >= 2800
    order = rng.permutation(len(X))
    return X[order], is_anomaly[order]


def test_groups_of_anomalies_are_found_among_the_learned_rows(mixed):
    X, is_anomaly = mixed
    detector = MixtureOutlierDetector(random_state=0).fit(X)
    assert roc_auc_score(is_anomaly, -detector.score_samples(X)) > 0.995
    assert (detector.predict(X[is_anomaly]) == -1).mean() > 0.9
    assert (detector.predict(X[~is_anomaly]) == -1).mean() < 0.03
    np.testing.assert_array_equal(detector.decision_function(X), detector.score_samples(X) - detector.offset_)
    np.testing.assert_array_equal(MixtureOutlierDetector(random_state=0).fit_predict(X), detector.predict(X))


@pytest.mark.parametrize("share", [0.001, 0.02, 0.5])
def test_contamination_is_the_share_of_the_learned_rows_that_are_anomalies(mixed, share):
    X, _ = mixed
    detector = MixtureOutlierDetector(share, n_components=3, random_state=0).fit(X)
    assert (detector.predict(X) == -1).sum() == int(share * len(X))
    stream = MixtureOutlierDetector(share, n_components=3, random_state=0)
    for batch in np.array_split(X, 9):
        stream.partial_fit(batch)
    stream.finish()
    np.testing.assert_array_equal(stream.score_samples(X), detector.score_samples(X))
    # A sample of 1,000 rows estimates the offset.
    assert abs((stream.predict(X) == -1).mean() - share) < 3 * np.sqrt(share / 1000)
    again = pickle.loads(pickle.dumps(stream))
    assert again.offset_ == stream.offset_


def test_a_long_stream_has_the_share_of_anomalies_that_was_asked_for():
    rng = np.random.default_rng(3)
    # Tails that are heavier than those of the mixture.
    rows = rng.standard_t(2, (30_000, 3))
    ones, parts = (MixtureOutlierDetector(0.02, n_components=4, random_state=0) for _ in range(2))
    for i in range(0, len(rows), 1000):
        ones.partial_fit(rows[i : i + 1000])
    for batch in np.array_split(rows, 7):
        parts.partial_fit(batch)
    assert ones.offset_ == parts.offset_
    assert abs((ones.predict(rows) == -1).mean() - 0.02) < 0.008
    absent = MixtureOutlierDetector(0.02, n_components=4, random_state=0).partial_fit(rows[:6000])
    weights = np.repeat([1.0, 0.0, 1.0], [3000, 500, 3000])
    with_absent = np.concatenate([rows[:3000], rows[-500:], rows[3000:6000]])
    zero = MixtureOutlierDetector(0.02, n_components=4, random_state=0).partial_fit(with_absent, sample_weight=weights)
    assert zero.offset_ == absent.offset_


def test_weights_count_rows(mixed):
    X, _ = mixed
    weights = np.ones(len(X))
    weights[::2] = 2
    weighted = MixtureOutlierDetector(0.05, n_components=2, random_state=0).fit(X, sample_weight=weights)
    found = weighted.predict(X) == -1
    assert abs(weights[found].sum() / weights.sum() - 0.05) < 0.001
    with pytest.raises(ValueError, match="in row 3"):
        MixtureOutlierDetector().fit(X, sample_weight=np.where(np.arange(len(X)) == 3, -1, 1))


def test_missing_values_count_as_usual(mixed):
    X, is_anomaly = mixed
    X = X.copy()
    X[::3, 2] = np.nan
    detector = MixtureOutlierDetector(missing="marginal", random_state=0).fit(X)
    assert roc_auc_score(is_anomaly, -detector.score_samples(X)) > 0.98
    scores = detector.score_samples([[0.0, np.nan, np.nan], [0.0, 0.0, 0.0], [np.nan, 14.0, np.nan]])
    assert abs(scores[0] - scores[1]) < 2 and scores[2] < detector.offset_
    with pytest.raises(ValueError, match="NaN"):
        MixtureOutlierDetector().fit(X)


def test_old_rows_lose_weight():
    rng = np.random.default_rng(2)
    before, after = rng.normal(0, 1, (4000, 2)), rng.normal(12, 1, (4000, 2))
    detector = MixtureOutlierDetector(half_life=400, random_state=0).partial_fit(before)
    assert (detector.predict(after) == -1).all()
    detector.partial_fit(after)
    assert (detector.predict(after) == 1).mean() > 0.95 and (detector.predict(before) == -1).all()


def test_early_scores_do_not_depend_on_batches_and_are_refitted_seldom(mixed):
    rows = mixed[0][:400]
    whole = MixtureOutlierDetector(n_components=2, random_state=0).partial_fit(rows)
    weights = np.ones(500)
    weights[100:200] = 0
    padded = np.insert(rows, 100, np.full((100, 3), 50.0), axis=0)
    parts = MixtureOutlierDetector(n_components=2, random_state=0)
    fitted = []
    for i in range(0, 500, 50):
        parts.partial_fit(padded[i : i + 50], sample_weight=weights[i : i + 50])
        parts.score_samples(rows[:5])
        fitted.append(parts._current().n_samples_seen_)
    np.testing.assert_array_equal(parts.score_samples(rows), whole.score_samples(rows))
    assert parts.offset_ == whole.offset_
    assert 0.8 * 400 <= fitted[-1] <= 400 and len(set(fitted)) < 8
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(parts)).score_samples(rows), whole.score_samples(rows))
    assert whole.finish()._current() is whole.mixture_
