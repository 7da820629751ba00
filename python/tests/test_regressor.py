"""Regression by a mixture over X and y."""

import numpy as np
import pytest
from conftest import expected_failed_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from gmm_bmm import MixtureRegressor


@parametrize_with_checks(
    [
        MixtureRegressor(random_state=0),
        MixtureRegressor(2, missing="marginal", effort="fast", random_state=0),
    ],
    expected_failed_checks=expected_failed_checks,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def branches():
    """A target with two branches, whose noise grows with the first column; the second column is noise."""
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.uniform(0, 4, 6000), rng.standard_normal(6000)])
    sign = np.where(rng.random(6000) < 0.3, -1.0, 1.0)
    y = sign * (1 + X[:, 0]) + (0.1 + 0.1 * X[:, 0]) * rng.standard_normal(6000)
    return X, y


def test_the_distribution_of_the_target_is_learned(branches):
    X, y = branches
    regressor = MixtureRegressor(random_state=0).fit(X[:5000], y[:5000])
    X, y = X[5000:], y[5000:]
    low, high = regressor.predict_quantiles(X, (0.05, 0.95)).T
    assert 0.87 < np.mean((low < y) & (y < high)) < 0.93
    # The entropy of the true distribution, whose branches do not overlap.
    noise = 0.1 + 0.1 * X[:, 0]
    truth = -0.5 * np.log(2 * np.pi * np.e * noise**2) + 0.3 * np.log(0.3) + 0.7 * np.log(0.7)
    assert np.mean(regressor.log_density(X, y)) > np.mean(truth) - 0.15
    mean, deviation = regressor.predict(X, return_std=True)
    # The branches are up to 10 apart, so their local weights need to be known within a few hundredths.
    assert np.abs(mean - 0.4 * (1 + X[:, 0])).mean() < 0.25
    drawn = regressor.sample(X, 400, random_state=1)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=6 * deviation.max() / 20)
    np.testing.assert_allclose(drawn.std(axis=0), deviation, rtol=0.25)


def test_several_targets_and_batches(branches):
    X, y = branches
    Y = np.column_stack([y, X[:, 0] - 2 * X[:, 1]])
    regressor = MixtureRegressor(4, random_state=0)
    for rows, targets in zip(np.array_split(X, 8), np.array_split(Y, 8)):
        regressor.partial_fit(rows, targets)
    regressor.finish()
    whole = MixtureRegressor(4, random_state=0).fit(X, Y)
    assert regressor.predict(X[:9]).shape == (9, 2)
    assert regressor.predict_quantiles(X[:9], [0.1, 0.5, 0.9]).shape == (9, 2, 3)
    assert regressor.sample(X[:9], 5).shape == (5, 9, 2)
    np.testing.assert_array_equal(regressor.predict(X), whole.predict(X))
    np.testing.assert_allclose(whole.predict(X)[:, 1], Y[:, 1], atol=0.1)
    with pytest.raises(ValueError, match="y has 1 targets"):
        regressor.partial_fit(X, y)


def test_missing_values_of_x_are_integrated_out(branches):
    X, y = branches
    X = X.copy()
    X[::3, 1] = np.nan
    regressor = MixtureRegressor(6, missing="marginal", random_state=0).fit(X, y)
    # The second column says nothing about the target.
    here, there = regressor.predict([[1.0, np.nan], [1.0, 0.0]])
    assert abs(here - there) < 0.15
    with pytest.raises(ValueError, match="quantiles must be between 0 and 1"):
        regressor.predict_quantiles(X, [0.5, 1.0])


def test_a_factor_widens_the_distribution_and_leaves_the_means(branches):
    X, y = branches[0][:500], branches[1][:500]
    regressor = MixtureRegressor(1, random_state=0).fit(X, y)
    assert regressor.variance_factor_ == 1.0
    mean, deviation = regressor.predict(X[:9], return_std=True)
    regressor._predicting = regressor._widen(regressor.mixture_, 4.0)
    wide, wide_deviation = regressor.predict(X[:9], return_std=True)
    np.testing.assert_allclose(wide, mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(wide_deviation, 2 * deviation, rtol=1e-9)
    two = MixtureRegressor(2, random_state=0).fit(X, y)
    mean = two.predict(X)
    two._predicting = two._widen(two.mixture_, 3.0)
    np.testing.assert_allclose(two.predict(X), mean, rtol=1e-7, atol=1e-9)
    assert 1.0 <= MixtureRegressor(random_state=0).fit(X[:120], y[:120]).variance_factor_ <= 4.0
