"""Weights of rows."""

import warnings

import numpy as np
import pytest

from gmm_bmm import OnlineGaussianMixture


@pytest.mark.parametrize(("weight", "known"), [(2.0, True), (1.0, False)])
def test_a_model_remembers_that_rows_had_weights(tmp_path, weight, known):
    X = np.random.default_rng(0).normal(size=(600, 2))
    weights = np.where(np.arange(600) == 7, weight, 1.0)
    OnlineGaussianMixture(2, random_state=0).fit(X, sample_weight=weights).save(tmp_path / "model.json")
    resumed = OnlineGaussianMixture.load(tmp_path / "model.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed.partial_fit(X, sample_weight=np.ones(600))
    if known:
        with pytest.warns(UserWarning, match="sample_weight"):
            resumed.partial_fit(X)
    else:
        resumed.partial_fit(X)
    assert ('"weights": {}' in (tmp_path / "model.json").read_text()) == known


def test_equal_weights_do_not_change_the_number_of_components():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2)) + 9 * rng.integers(2, size=(2000, 2))
    found = [OnlineGaussianMixture(random_state=0).fit(X, sample_weight=np.full(2000, weight)) for weight in (1.0, 1000.0)]
    assert [mixture.n_components_ for mixture in found] == [4, 4]
    assert found[0].score(X) == pytest.approx(found[1].score(X), abs=0.005)


def test_uneven_weights_are_a_finding():
    X = np.random.default_rng(0).normal(size=(600, 2))
    weights = np.where(np.arange(600) == 7, 1e6, 1.0)
    assert any("uneven_weights" in found for found in OnlineGaussianMixture(1).fit(X, sample_weight=weights).findings_)
