"""Missing values: learning, scoring, imputing."""

import numpy as np
import pytest
from sklearn.utils import get_tags

from gmm_bmm import OnlineGaussianMixture


@pytest.fixture(scope="module")
def gaps():
    """Two correlated clusters, complete and with a quarter of the values removed."""
    rng = np.random.default_rng(3)
    near = rng.multivariate_normal([0, 0, 0], [[1, 0.8, 0.3], [0.8, 1, 0], [0.3, 0, 1]], 4000)
    far = rng.multivariate_normal([6, 3, -5], [[2, -0.9, 0], [-0.9, 1, 0], [0, 0, 1]], 2000)
    whole = rng.permutation(np.vstack([near, far]))
    return whole, np.where(rng.random(whole.shape) < 0.25, np.nan, whole)


def test_nan_is_refused_unless_it_is_asked_for(gaps):
    whole, holes = gaps
    for mixture in [OnlineGaussianMixture(2), OnlineGaussianMixture(2, random_state=0).fit(whole)]:
        with pytest.raises(ValueError, match="NaN"):
            mixture.partial_fit(holes)
    with pytest.raises(ValueError, match="NaN"):
        mixture.score_samples(holes)
    assert not get_tags(mixture).input_tags.allow_nan
    assert get_tags(OnlineGaussianMixture(missing="marginal")).input_tags.allow_nan
    with pytest.raises(ValueError, match="missing"):
        OnlineGaussianMixture(missing="drop").fit(whole)
    with pytest.raises(ValueError, match="infinity"):
        OnlineGaussianMixture(2, missing="marginal").fit(np.full((20, 2), np.inf))


def test_a_mixture_is_learned_from_the_values_that_are_there(gaps):
    whole, holes = gaps
    mixture = OnlineGaussianMixture(2, missing="marginal", random_state=0).fit(holes)
    reference = OnlineGaussianMixture(2, random_state=0).fit(whole)
    assert mixture.score(whole) > reference.score(whole) - 0.01
    order, known = np.argsort(mixture.weights_), np.argsort(reference.weights_)
    np.testing.assert_allclose(mixture.covariances_[order], reference.covariances_[known], atol=0.15)
    assert np.isfinite(mixture.score_samples(holes)).all()
    assert np.mean(mixture.predict(holes) == mixture.predict(whole)) > 0.98
    again = OnlineGaussianMixture(2, missing="marginal", random_state=0)
    for batch in np.array_split(holes, 11):
        again.partial_fit(batch)
    assert again.finish().to_bytes() == mixture.to_bytes()


def test_settings_of_a_saved_pass_have_it(gaps, tmp_path):
    mixture = OnlineGaussianMixture(2, missing="marginal", random_state=0).fit(gaps[1])
    mixture.save(tmp_path / "model.json")
    assert OnlineGaussianMixture.load(tmp_path / "model.json").missing == "marginal"


def test_imputed_values_are_conditional_means(gaps):
    whole, holes = gaps
    mixture = OnlineGaussianMixture(2, random_state=0).fit(whole)
    filled = mixture.impute(holes)
    missing = np.isnan(holes)
    np.testing.assert_array_equal(filled[~missing], whole[~missing])
    assert np.isfinite(filled).all()
    means = np.broadcast_to(np.nanmean(holes, axis=0), whole.shape)
    error = np.sqrt(np.mean((filled - whole)[missing] ** 2))
    assert error < 0.6 * np.sqrt(np.mean((means - whole)[missing] ** 2))
    # One row by hand: the second and third columns given the first.
    row = holes[:1].copy()
    row[:] = [1.5, np.nan, np.nan]
    w, mu, cov = mixture.weights_, mixture.means_, mixture.covariances_
    density = w * np.exp(-0.5 * (1.5 - mu[:, 0]) ** 2 / cov[:, 0, 0]) / np.sqrt(cov[:, 0, 0])
    expected = mu + cov[:, 0, :] / cov[:, :1, 0] * (1.5 - mu[:, :1])
    np.testing.assert_allclose(mixture.impute(row)[0], density @ expected / density.sum(), rtol=1e-9)
    np.testing.assert_allclose(mixture.impute(np.full((1, 3), np.nan))[0], w @ mu, rtol=1e-9)


def test_draws_follow_from_the_seed_and_have_the_spread_of_the_data(gaps):
    whole, holes = gaps
    mixture = OnlineGaussianMixture(2, random_state=0).fit(whole)
    drawn = mixture.sample_missing(holes, random_state=1)
    missing = np.isnan(holes)
    np.testing.assert_array_equal(drawn[~missing], whole[~missing])
    np.testing.assert_array_equal(drawn, mixture.sample_missing(holes, random_state=1))
    assert (drawn != mixture.sample_missing(holes, random_state=2)).any()
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(whole.T), atol=0.4)


def test_frames_with_gaps_are_accepted(gaps):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(gaps[1], columns=["a", "b", "c"])
    mixture = OnlineGaussianMixture(2, missing="marginal", random_state=0).fit(frame)
    np.testing.assert_array_equal(mixture.impute(frame), mixture.impute(frame.to_numpy()))
