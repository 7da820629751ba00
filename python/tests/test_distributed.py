"""Shards as bytes: each row counts once, whatever is tried again."""

import numpy as np
import pytest

from gmm_bmm import OnlineGaussianMixture, distributed


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(4, 5)) * 3
    rows = centres[rng.integers(0, 4, 30_000)] + rng.normal(size=(30_000, 5))
    return rows[np.argsort(rows[:, 0])]


def prior_of(rows, n_components, **parameters):
    sample = rows[np.random.default_rng(0).choice(len(rows), 3000, replace=False)]
    return distributed.prior(sample, n_components, start_rows=3000, random_state=0, **parameters)


def learn(rows, prior, shards=12):
    begin = distributed.to_send(prior)
    return [distributed.learn_shard(np.array_split(part, 3), begin, name=i)
            for i, part in enumerate(np.array_split(rows, shards))]


def test_with_one_component_it_has_the_moments_of_all_rows_each_once(rows):
    mixture = distributed.merge(learn(rows, prior := prior_of(rows, 1)), prior)
    assert mixture.n_samples_seen_ == len(rows)
    # The prior counts as one row at most.
    assert mixture.mean_precision_[0] == pytest.approx(len(rows), abs=1.5)
    np.testing.assert_allclose(mixture.means_[0], rows.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(mixture.covariances_[0], np.cov(rows.T), rtol=2e-3, atol=2e-3)
    assert not any("prior_rows_repeated" in finding for finding in mixture.findings_)


def test_shards_are_small_and_lose_nothing_against_one_pass(rows):
    prior = prior_of(rows, "auto")
    shards = learn(rows, prior)
    assert max(map(len, shards)) < 80_000 < len(prior.to_bytes())
    one = OnlineGaussianMixture("auto", random_state=0).fit(np.random.default_rng(1).permutation(rows))
    mixture = distributed.merge(shards, prior)
    assert mixture.n_components_ == one.n_components_ == 4
    assert mixture.score(rows) > one.score(rows) - 0.005


def test_retried_tasks_empty_shards_and_groups_change_no_bit_of_the_posterior(rows):
    prior = prior_of(rows, 4)
    shards = learn(rows, prior)
    merged = distributed.merge(shards, prior)
    assert distributed.learn_shard([rows[:0]], prior, name=99) == b""
    again = distributed.merge([b"", *shards[::-1], shards[3], shards[5]], prior)
    assert again.to_bytes() == merged.to_bytes()
    begin = distributed.to_send(prior)
    groups = [distributed.merge_some([*shards[i : i + 4], b""], begin) for i in (0, 4, 8)]
    assert max(map(len, groups)) < 5 * max(map(len, shards))
    grouped = distributed.merge([*groups, groups[1], b""], prior)
    assert grouped.n_samples_seen_ == len(rows)
    assert grouped.score(rows) == pytest.approx(merged.score(rows), abs=1e-3)
    overlapping = distributed.merge_some(shards[3:6], begin)
    with pytest.raises(ValueError, match="shard 3 is in two groups of shards"):
        distributed.merge([overlapping, *groups], prior)
    with pytest.raises(ValueError, match="no shard has any rows"):
        distributed.merge([b""], prior)


def test_equal_rows_are_refused_unless_the_shards_have_names(rows):
    prior = prior_of(rows, 4)
    unnamed = [distributed.learn_shard([rows[:500]], prior) for _ in range(2)]
    with pytest.raises(ValueError, match="same rows"):
        distributed.merge(unnamed, prior)
    named = [distributed.learn_shard([rows[:500]], prior, name=name) for name in "ab"]
    assert distributed.merge(named, prior).n_samples_seen_ == 1000


def test_gaps(rows):
    gappy = rows.copy()
    gappy[::5, 2] = np.nan
    prior = prior_of(gappy, 4, missing="marginal")
    mixture = distributed.merge(learn(gappy, prior), prior)
    assert mixture.missing == "marginal" and mixture.score(gappy) > mixture.score(gappy + 0.3)


def test_what_cannot_be_a_prior_is_refused_before_any_work_is_sent(rows):
    with pytest.raises(ValueError, match="obmm"):
        prior_of(rows, 4, algorithm="oem")


def test_shards_of_weighted_rows_that_keep_few_have_the_means_of_all_rows():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows = np.concatenate([rng.normal(0, 1, (6000, 3)), rng.normal([5, 5, 0], 1, (6000, 3))])
        weights = np.repeat([3.0, 1.0], 6000)
        sample = rng.random(12_000) < 1 / 6
        prior = distributed.prior(rows[sample], 2, sample_weight=weights[sample], start_rows=1000, random_state=1)
        begin = distributed.to_send(prior)
        shards = [distributed.learn_shard([(rows[i::3], weights[i::3])], begin, name=i) for i in range(3)]
        mixture = distributed.merge(shards, prior)
        means = mixture.means_[np.argsort(mixture.means_[:, 0])]
        np.testing.assert_allclose(means, rows.reshape(2, -1, 3).mean(axis=1), atol=0.01)
