"""Ranks, explanations, and batches that are learned twice."""

import pickle

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from gmm_bmm import OnlineGaussianMixture


def lower(scores, others):
    """The fraction of `others` below each score."""
    return np.searchsorted(np.sort(others), scores) / len(others)


@pytest.mark.parametrize("algorithm", ["obmm", "oem"])
def test_the_rank_is_the_fraction_of_learned_rows_with_a_lower_density(rows, algorithm):
    mixture = OnlineGaussianMixture(3, algorithm=algorithm, random_state=0).fit(rows)
    expected = lower(mixture.score_samples(rows), mixture.score_samples(rows))
    ranks = mixture.rank_samples(rows)
    assert ranks.shape == (len(rows),)
    assert np.abs(ranks - expected).max() < 0.01
    low = (expected > 0) & (expected < 0.01)
    assert np.abs(ranks[low] / expected[low] - 1).max() < 0.05
    far = rows[:1] + 1e3
    assert mixture.rank_samples(far)[0] == 0.0


def test_ranks_follow_the_stream_and_the_file(rows):
    mixture = OnlineGaussianMixture(3, random_state=0)
    for batch in np.array_split(rows, 50):
        mixture.partial_fit(batch)
    expected = lower(mixture.score_samples(rows), mixture.score_samples(rows))
    assert np.abs(mixture.rank_samples(rows) - expected).max() < 0.02
    mixture.finish()
    again = OnlineGaussianMixture._of(type(mixture._fit).from_bytes(mixture.to_bytes()))
    np.testing.assert_array_equal(again.rank_samples(rows), mixture.rank_samples(rows))


def test_a_mixture_from_elsewhere_has_no_ranks_before_the_first_rows(rows):
    scikit = GaussianMixture(2, random_state=0).fit(rows[:2_000])
    mixture = OnlineGaussianMixture.from_sklearn(scikit, n_samples=2_000, random_state=0)
    assert np.isnan(mixture.rank_samples(rows[:3])).all()
    mixture.partial_fit(rows)
    assert abs(mixture.rank_samples(rows).mean() - 0.5) < 0.02


def test_an_explanation_is_the_density_of_a_column_given_the_others(rows):
    mixture = OnlineGaussianMixture(3, random_state=0).fit(rows)
    weights, means, covariances = mixture.weights_, mixture.means_, mixture.covariances_
    X = rows[:200].copy()
    X[:, 1] += np.linspace(-9, 9, len(X))

    def log_density(columns):
        parts = [
            np.log(weight) + multivariate_normal(mean[columns], covariance[np.ix_(columns, columns)]).logpdf(X[:, columns])
            for weight, mean, covariance in zip(weights, means, covariances)
        ]
        return logsumexp(parts, axis=0)

    variances = weights @ (np.diagonal(covariances, axis1=1, axis2=2) + means**2) - (weights @ means) ** 2
    columns = list(range(X.shape[1]))
    given_others = np.array([log_density(columns) - log_density([c for c in columns if c != j]) for j in columns]).T
    expected = np.sqrt(np.maximum(0.0, -2.0 * given_others - np.log(2.0 * np.pi * variances)))
    np.testing.assert_allclose(np.abs(mixture.explain(X)), expected, rtol=1e-9, atol=1e-9)
    assert np.abs(mixture.explain(X)).max() > 5
    with pytest.raises(ValueError, match="features"):
        mixture.explain(X[:, :2])


def test_a_batch_that_is_learned_twice_is_a_finding(rows):
    mixture = OnlineGaussianMixture(3, random_state=0)
    batches = np.array_split(rows, 40)
    for batch in batches:
        mixture.partial_fit(batch)
    assert not any("rows_learned_before" in finding for finding in mixture.findings_)
    mixture.partial_fit(batches[7])
    found = [finding["rows_learned_before"] for finding in mixture.findings_ if "rows_learned_before" in finding]
    assert len(found) == 1
    assert found[0]["from"] - found[0]["before"] == len(rows) - 7 * len(batches[0])
    assert 0.9 * len(batches[7]) < found[0]["rows"] <= len(batches[7])


def test_rows_learned_before_have_one_name(rows, tmp_path):
    whole = OnlineGaussianMixture(3, random_state=0).fit(rows)
    whole.save(tmp_path / "model.json")
    pickled = pickle.loads(pickle.dumps(whole))
    for mixture in (whole, OnlineGaussianMixture.load(tmp_path / "model.json"), pickled):
        before = mixture.findings_
        found = [finding for finding in mixture.partial_fit(rows).findings_ if finding not in before]
        assert [list(finding) for finding in found] == [["rows_learned_before"]]
        about = found[0]["rows_learned_before"]
        # The keys of rows are a sample, so the first and the last of them are known nearly.
        assert about["from"] - about["before"] == 20_000 and about["before"] < 20 and 19_900 < about["rows"] <= 20_000


def test_rows_of_outlier_components_have_a_low_rank(rows):
    rows = rows.copy()
    rows[::1500] = 500 + 0.01 * rows[::1500]
    mixture = OnlineGaussianMixture(4, random_state=0).fit(rows)
    assert (mixture.clusters_[mixture.predict(rows[::1500])] == -1).all()
    assert mixture.rank_samples(rows[::1500]).max() < 0.001
    assert abs(mixture.rank_samples(rows).mean() - 0.5) < 0.01


def test_discrete_columns_get_the_noise_with_which_they_were_learned(rows, tmp_path):
    rows = rows.copy()
    rows[:, 0] = np.round(rows[:, 0])
    plain = OnlineGaussianMixture(3, random_state=0).fit(rows)
    noisy = OnlineGaussianMixture(3, random_state=0, dequantize=True).fit(rows)
    assert plain.score(rows) > noisy.score(rows) + 0.01
    batches = OnlineGaussianMixture(3, random_state=0, dequantize=True)
    for batch in np.array_split(rows, 7):
        batches.partial_fit(batch)
    assert batches.finish().to_bytes() == noisy.to_bytes()
    noisy.save(tmp_path / "model.json")
    again = OnlineGaussianMixture.load(tmp_path / "model.json")
    assert again.dequantize is True
    np.testing.assert_array_equal(again.score_samples(rows), noisy.score_samples(rows))
    assert abs(noisy.rank_samples(rows).mean() - 0.5) < 0.005


def test_a_page_is_one_document_without_links(rows):
    page = OnlineGaussianMixture(3, random_state=0).fit(rows).to_html()
    assert page.startswith("<!DOCTYPE html>") and "default-src 'none'" in page and "src=" not in page.replace("script-src", "")
