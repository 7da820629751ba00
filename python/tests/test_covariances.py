"""The four covariance types, with scikit-learn's names, shapes and values."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV

from gmm_bmm import OnlineGaussianMixture

TYPES = ["full", "tied", "diag", "spherical"]


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(5)
    centres = np.array([[0, 0, 0], [6, 0, 3], [0, 7, -3]])
    X = np.concatenate([rng.normal(c, [1.0, 0.7, 1.3], (1500, 3)) for c in centres])
    rng.shuffle(X)
    return X


@pytest.mark.parametrize("algorithm", ["obmm", "oem"])
@pytest.mark.parametrize("kind", TYPES)
def test_attributes_have_scikit_learns_shapes_and_values(X, kind, algorithm):
    own = OnlineGaussianMixture(3, covariance_type=kind, algorithm=algorithm, random_state=0).fit(X)
    other = GaussianMixture(3, covariance_type=kind, n_init=3, random_state=0).fit(X)
    assert own.score(X) > other.score(X) - 0.01
    order = np.argmin(((own.means_[:, None] - other.means_[None]) ** 2).sum(-1), axis=0)
    for name in ("covariances_", "precisions_", "precisions_cholesky_"):
        mine, theirs = getattr(own, name), getattr(other, name)
        assert mine.shape == theirs.shape
        mine = mine if kind == "tied" else mine[order]
        np.testing.assert_allclose(mine, theirs, rtol=0.15, atol=0.05)
    assert own.bic(X) == pytest.approx(other.bic(X), rel=2e-3)
    drawn, components = own.sample(20_000)
    first = drawn[components == 0]
    np.testing.assert_allclose(first.mean(axis=0), own.means_[0], atol=0.15)


@pytest.mark.parametrize("kind", TYPES)
def test_scikit_learn_mixtures_go_there_and_back(X, kind):
    other = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    own = OnlineGaussianMixture.from_sklearn(other, n_samples=len(X), random_state=0)
    assert own.covariance_type == kind
    np.testing.assert_allclose(own.covariances_, other.covariances_, rtol=1e-9)
    np.testing.assert_allclose(own.score_samples(X), other.score_samples(X), atol=0.02)
    back = own.partial_fit(X).to_sklearn()
    assert back.covariance_type == kind and back.covariances_.shape == other.covariances_.shape
    np.testing.assert_allclose(back.score_samples(X), own.score_samples(X), atol=1e-9)
    back.set_params(max_iter=200).fit(X)
    assert back.score(X) >= other.score(X) - 1e-3


@pytest.mark.parametrize("kind", TYPES)
def test_batches_pickles_and_files_change_no_bit(X, kind, tmp_path):
    whole = OnlineGaussianMixture(3, covariance_type=kind, start_rows=300, random_state=0).partial_fit(X)
    parts = OnlineGaussianMixture(3, covariance_type=kind, start_rows=300, random_state=0)
    for batch in np.array_split(X, 7):
        parts = pickle.loads(pickle.dumps(parts.partial_fit(batch)))
    assert parts.to_bytes() == whole.to_bytes()
    parts.save(tmp_path / "model.json")
    loaded = OnlineGaussianMixture.load(tmp_path / "model.json")
    assert loaded.covariance_type == kind
    np.testing.assert_array_equal(loaded.covariances_, whole.covariances_)


def test_a_grid_search_over_the_covariance_type(X):
    grid = {"covariance_type": TYPES, "n_components": [1, 3]}
    search = GridSearchCV(OnlineGaussianMixture(effort="fast", random_state=0), grid, cv=3).fit(X)
    assert search.best_params_["n_components"] == 3
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("kind", TYPES)
def test_gaps_weights_and_a_learned_number(X, kind):
    gapped = X.copy()
    gapped[::7, 1] = np.nan
    weights = np.where(np.arange(len(X)) % 5 == 0, 2.0, 1.0)
    own = OnlineGaussianMixture(covariance_type=kind, missing="marginal", random_state=0)
    own.fit(gapped, sample_weight=weights)
    # Clusters with three standard deviations take several spheres.
    assert own.n_components_ == 3 or kind == "spherical"
    assert np.isfinite(own.score_samples(gapped)).all()
    filled = own.impute(gapped)
    assert np.sqrt(np.mean((filled - X)[::7, 1] ** 2)) < 2.0
    assert np.isfinite(own.explain(X[:5])).all()


@pytest.mark.parametrize("kind", TYPES)
def test_a_pass_begins_from_a_given_mixture(X, kind):
    means = np.array([[0.5, 0.5, 0], [5, 0, 2], [0, 6, -2]])
    own = OnlineGaussianMixture(3, covariance_type=kind, means_init=means, keep_rows=0, random_state=0).fit(X)
    assert (np.abs(own.means_ - [[0, 0, 0], [6, 0, 3], [0, 7, -3]]) < 0.3).all(), "in the order of means_init"
    other = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    arrays = dict(weights_init=other.weights_, means_init=other.means_, precisions_init=other.precisions_)
    again = OnlineGaussianMixture(3, covariance_type=kind, random_state=0, **arrays)
    assert clone(again).fit(X).score(X) > other.score(X) - 0.01
    for change, message in [
        ({"means_init": means[:, :2]}, "means_init must have the shape"),
        ({"means_init": means[:2]}, "does not allow for them"),
        ({"weights_init": [0.5, 0.6, 0.1]}, "sum to 1"),
        ({"precisions_init": -other.precisions_}, "positive"),
        ({"means_init": None}, "needs means_init"),
    ]:
        with pytest.raises(ValueError, match=message):
            clone(again).set_params(**change).fit(X)


def test_a_warm_start_begins_from_the_fit_before(X):
    own = OnlineGaussianMixture(3, warm_start=True, keep_rows=0, random_state=0).fit(X)
    before = own.means_
    again = own.fit(X + 0.5).means_
    assert np.abs(again - before - 0.5).max() < 0.1, "components keep their order"
    assert own.n_samples_seen_ < 2 * len(X)


def test_verbose_prints_revisions(capsys):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (6000, 2)), rng.normal(9, 1, (6000, 2))])
    OnlineGaussianMixture(verbose=1, start_rows=500, random_state=0).fit(X)
    assert "revision" in capsys.readouterr().out


def test_an_unknown_type_is_refused(X):
    with pytest.raises(ValueError, match="covariance_type"):
        OnlineGaussianMixture(covariance_type="banded").fit(X)


def test_rows_after_the_start_do_not_widen_tied_covariances():
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(4, 5)) * 4
    X = centres[rng.integers(0, 4, 2300)] + rng.normal(size=(2300, 5))
    mixture = OnlineGaussianMixture(4, covariance_type="tied", effort="fast", start_rows=2000, random_state=0)
    mixture.partial_fit(X[:2000]).partial_fit(X[2000:])
    assert np.diag(mixture.covariances_).max() < 1.2
