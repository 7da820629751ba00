"""Clusters: components that are united by their overlap, or until a wanted number is left."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from gmm_bmm import OnlineGaussianMixture


def fitted(X, **parameters):
    return OnlineGaussianMixture(random_state=0, **parameters).fit(X)


@pytest.mark.parametrize("seed", [0, 1])
def test_moons_and_circles_are_two_clusters(seed):
    for X, y in (make_moons(3000, noise=0.05, random_state=seed), make_circles(3000, noise=0.05, factor=0.5, random_state=seed)):
        mixture = fitted(X)
        assert mixture.n_components_ > 4
        assert len(set(mixture.clusters_)) == 2
        assert adjusted_rand_score(y, mixture.predict_cluster(X)) > 0.95


def test_blobs_stay_apart():
    X, y = make_blobs(3000, centers=[[0, 0], [6, 0], [0, 7]], random_state=0)
    mixture = fitted(X)
    assert len(set(mixture.clusters_)) == 3
    assert adjusted_rand_score(y, mixture.predict_cluster(X)) > 0.98


def test_the_components_of_wdbc_are_not_all_one_cluster():
    X, y = load_breast_cancer(return_X_y=True)
    mixture = fitted(X, n_components=5)
    assert len(set(mixture.clusters_)) > 1
    mixture.set_params(n_clusters=2)
    assert len(set(mixture.clusters_)) == 2
    assert adjusted_rand_score(y, mixture.predict_cluster(X)) > 0.3


def test_as_many_clusters_as_are_wanted():
    X, _ = make_moons(2000, noise=0.05, random_state=3)
    mixture = fitted(X, n_components=8)
    for wanted in range(1, 9):
        mixture.set_params(n_clusters=wanted)
        clusters = mixture.clusters_
        assert len(set(clusters)) == wanted
        np.testing.assert_array_equal(mixture.predict_cluster(X), clusters[mixture.predict(X)])
    with pytest.raises(ValueError, match="n_clusters=9 is more than the 8 components"):
        mixture.set_params(n_clusters=9).clusters_
    with pytest.raises(ValueError, match="n_clusters"):
        fitted(X, n_clusters=0)
