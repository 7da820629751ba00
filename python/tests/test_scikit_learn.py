"""scikit-learn's own checks, and the company that an estimator has to keep."""

import pickle

import joblib
import numpy as np
import pytest
from conftest import expected_failed_checks
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gmm_bmm import OnlineGaussianMixture

ESTIMATORS = [
    OnlineGaussianMixture(random_state=0),
    OnlineGaussianMixture(2, random_state=0),
    OnlineGaussianMixture(2, missing="marginal", random_state=0),
    OnlineGaussianMixture("auto:1..4", algorithm="oem", effort="fast", random_state=0),
    OnlineGaussianMixture(2, covariance_type="tied", random_state=0),
    OnlineGaussianMixture(2, covariance_type="diag", random_state=0),
    OnlineGaussianMixture(2, covariance_type="spherical", algorithm="oem", random_state=0),
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failed_checks)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_clone_has_the_parameters_and_nothing_learned(rows):
    mixture = OnlineGaussianMixture((2, 5), effort="fast", random_state=3).fit(rows)
    copy = clone(mixture)
    assert copy.get_params() == mixture.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(rows)


@pytest.mark.parametrize("dump", [pickle.dumps, None])
def test_a_pickled_pass_resumes_to_the_same_bits(rows, dump, tmp_path):
    whole = OnlineGaussianMixture(random_state=0)
    for batch in np.array_split(rows, 20):
        whole.partial_fit(batch)
    half = OnlineGaussianMixture(random_state=0).partial_fit(rows[:9_000])
    half.predict(rows[:10])
    if dump:
        half = pickle.loads(dump(half))
    else:
        joblib.dump(half, tmp_path / "half.joblib")
        half = joblib.load(tmp_path / "half.joblib")
    half.partial_fit(rows[9_000:])
    assert half.to_bytes() == whole.to_bytes()
    np.testing.assert_array_equal(half.covariances_, whole.covariances_)


def test_the_mixture_does_not_depend_on_how_rows_are_cut(rows):
    one = OnlineGaussianMixture(3, random_state=0).fit(rows)
    many = OnlineGaussianMixture(3, random_state=0)
    for row in rows[:50]:
        many.partial_fit(row[None, :])
    for batch in np.array_split(rows[50:], 7):
        many.partial_fit(batch)
        many.predict(rows[:5])
    many.finish()
    np.testing.assert_array_equal(one.means_, many.means_)


def test_attributes_are_those_of_gaussian_mixture(rows):
    mixture = OnlineGaussianMixture(random_state=0).fit(rows)
    assert mixture.n_components_ == 3
    reference = GaussianMixture(3, random_state=0).fit(rows)
    order = np.argsort(mixture.means_[:, 0] + 2 * mixture.means_[:, 1])
    expected = np.argsort(reference.means_[:, 0] + 2 * reference.means_[:, 1])
    np.testing.assert_allclose(mixture.weights_[order], reference.weights_[expected], atol=1e-3)
    np.testing.assert_allclose(mixture.means_[order], reference.means_[expected], atol=1e-2)
    np.testing.assert_allclose(mixture.covariances_[order], reference.covariances_[expected], atol=3e-2)
    for name in ("precisions_", "precisions_cholesky_"):
        np.testing.assert_allclose(getattr(mixture, name)[order], getattr(reference, name)[expected], atol=3e-2)
    assert abs(mixture.score(rows) - reference.score(rows)) < 1e-3
    assert abs(mixture.bic(rows) / reference.bic(rows) - 1) < 1e-3
    assert abs(mixture.aic(rows) / reference.aic(rows) - 1) < 1e-3
    assert mixture.converged_ is True and mixture.n_iter_ == 1
    assert np.isfinite(mixture.lower_bound_) and mixture.lower_bound_ == mixture.prequential_score_
    assert mixture.weight_concentration_.sum() == pytest.approx(20_000, rel=1e-2)
    assert (mixture.mean_precision_ > 1000).all() and (mixture.degrees_of_freedom_ > 1000).all()
    assert sorted(set(mixture.clusters_)) == sorted(mixture.clusters_)


def test_densities_and_probabilities_agree_with_scipy(rows):
    from scipy.special import logsumexp
    from scipy.stats import multivariate_normal

    mixture = OnlineGaussianMixture(random_state=0).fit(rows)
    terms = np.column_stack([
        np.log(weight) + multivariate_normal(mean, covariance).logpdf(rows[:500])
        for weight, mean, covariance in zip(mixture.weights_, mixture.means_, mixture.covariances_)
    ])
    expected = logsumexp(terms, axis=1)
    np.testing.assert_allclose(mixture.score_samples(rows[:500]), expected, rtol=1e-10)
    np.testing.assert_allclose(mixture.predict_proba(rows[:500]), np.exp(terms - expected[:, None]), atol=1e-12)
    np.testing.assert_array_equal(mixture.predict(rows[:500]), terms.argmax(axis=1))
    np.testing.assert_array_equal(mixture.fit_predict(rows), mixture.predict(rows))


def test_drawn_rows_have_the_moments_of_the_mixture(rows):
    mixture = OnlineGaussianMixture(random_state=0).fit(rows)
    drawn, labels = mixture.sample(50_000)
    assert drawn.shape == (50_000, 4) and labels.shape == (50_000,)
    for j in range(3):
        own = drawn[labels == j]
        np.testing.assert_allclose(own.mean(axis=0), mixture.means_[j], atol=0.05)
        np.testing.assert_allclose(np.cov(own.T), mixture.covariances_[j], atol=0.08)


def test_frames_give_the_numbers_of_arrays(rows):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    names = ["a", "b", "c", "d"]
    by_array = OnlineGaussianMixture(random_state=0).fit(rows)
    for frame in (pandas.DataFrame(rows, columns=names), polars.DataFrame(rows, schema=names)):
        by_frame = OnlineGaussianMixture(random_state=0).fit(frame)
        assert list(by_frame.feature_names_in_) == names
        np.testing.assert_array_equal(by_frame.means_, by_array.means_)
        np.testing.assert_array_equal(by_frame.predict(frame), by_array.predict(rows))
        with pytest.raises(ValueError, match="feature names"):
            by_frame.predict(pandas.DataFrame(rows[:5], columns=names[::-1]))


def test_a_pipeline_and_a_grid_search(rows):
    pandas = pytest.importorskip("pandas")
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, OnlineGaussianMixture(random_state=0))
    frame = pandas.DataFrame(rows[:6000], columns=list("abcd"))
    labels = pipeline.fit(frame).predict(frame)
    assert set(labels) == {0, 1, 2}
    assert list(pipeline[-1].feature_names_in_) == list("abcd")
    grid = {"onlinegaussianmixture__n_components": [1, 3]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(frame)
    assert search.best_params_ == {"onlinegaussianmixture__n_components": 3}


def test_unusual_arrays(rows):
    expected = OnlineGaussianMixture(3, random_state=0).fit(rows).means_
    read_only = rows.copy()
    read_only.setflags(write=False)
    lists = rows[:200].tolist()
    for array in (np.asfortranarray(rows), read_only, rows[::-1][::-1]):
        np.testing.assert_array_equal(OnlineGaussianMixture(3, random_state=0).fit(array).means_, expected)
    assert OnlineGaussianMixture(2, random_state=0).fit(lists).means_.shape == (2, 4)
    single = rows.astype(np.float32)
    np.testing.assert_allclose(OnlineGaussianMixture(3, random_state=0).fit(single).means_, expected, atol=1e-5)


def test_small_inputs():
    ten = np.arange(10.0)[:, None]
    mixture = OnlineGaussianMixture(random_state=0).fit(ten)
    assert np.isfinite(mixture.score(ten)) and mixture.predict(ten).shape == (10,)
    one = OnlineGaussianMixture(1, random_state=0).partial_fit(ten[:1])
    assert one.n_samples_seen_ == 1 and np.isfinite(one.score_samples(ten)).all()
    with pytest.raises(ValueError, match="1 sample"):
        OnlineGaussianMixture(1).fit(ten[:1])
    with pytest.raises(ValueError, match="n_samples >= n_components"):
        OnlineGaussianMixture(20).fit(ten)


@pytest.mark.parametrize("wrong", [0, "many", "25", "auto:2", "auto:0..3", "2..5", (3, 2), (1, 2, 3), (1, 10**9), 1.5])
def test_wrong_numbers_of_components_are_refused(wrong):
    with pytest.raises(ValueError, match="n_components"):
        OnlineGaussianMixture(wrong).fit(np.zeros((30, 2)))


def test_values_that_are_not_finite_are_refused_and_change_nothing(rows):
    mixture = OnlineGaussianMixture(3, random_state=0).partial_fit(rows[:10_000])
    bad = rows[:5].copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        mixture.partial_fit(bad)
    assert mixture.n_samples_seen_ == 10_000
