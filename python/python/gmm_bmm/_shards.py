"""Shards that are learned apart and merged."""

from __future__ import annotations

from collections.abc import Sequence

from gmm_bmm import _core
from gmm_bmm._estimator import OnlineGaussianMixture


def merge(shards: Sequence[OnlineGaussianMixture], *, prior: OnlineGaussianMixture) -> OnlineGaussianMixture:
    """Merges shards that were learned from one common prior.

    The result is the product of the shards' posteriors over their common prior. With one component it is exactly the
    posterior of all rows. The order of the shards changes nothing, and two shards of the same rows are refused. The result
    has the parameters of the prior.

    Parameters
    ----------
    shards : sequence of OnlineGaussianMixture
        Each made by ``prior.shard()``, in any process, and fitted with ``partial_fit`` to rows of its own.
    prior : OnlineGaussianMixture
        What all shards began from.

    Examples
    --------
    >>> import numpy as np
    >>> from gmm_bmm import OnlineGaussianMixture, merge
    >>> X = np.random.default_rng(0).normal(size=(9000, 2))
    >>> prior = OnlineGaussianMixture(1, random_state=0).fit(X[:1000])
    >>> parts = [prior.shard().partial_fit(X[1000:5000]), prior.shard().partial_fit(X[5000:])]
    >>> merge(parts, prior=prior).n_samples_seen_
    8000
    """
    for estimator in [prior, *shards]:
        estimator._require_fit()
    merged = _core.merge(prior._fit, [shard._fit for shard in shards])
    return OnlineGaussianMixture._of(merged, **prior.get_params())
