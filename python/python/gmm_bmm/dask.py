"""Gaussian mixtures of Dask data frames and arrays. Importing this module needs Dask.

    from gmm_bmm import dask as gmm_dask

    mixture = gmm_dask.fit(frame, n_components=5, random_state=0)     # an OnlineGaussianMixture
    clusters = gmm_dask.predict(mixture, frame)                       # lazy

``fit`` runs on the present client, or on the default scheduler without one. It computes the partitions twice, once for the sample
of the prior, so ``persist`` what is expensive to compute and fits in memory.
"""

from __future__ import annotations

import math

import numpy as np

try:
    import dask
    import dask.array
except ImportError as missing:
    raise ImportError("gmm_bmm.dask needs Dask: pip install 'dask[dataframe,distributed]'") from missing

from gmm_bmm import distributed
from gmm_bmm._estimator import OnlineGaussianMixture


def fit(X, n_components="auto", *, sample_rows: int = distributed.SAMPLE_ROWS, **parameters) -> OnlineGaussianMixture:
    """Learns a mixture: each partition is a shard. See :mod:`gmm_bmm.distributed`.

    Parameters
    ----------
    X : dask.dataframe.DataFrame or dask.array.Array
    n_components, **parameters
        As for :class:`gmm_bmm.OnlineGaussianMixture`.
    sample_rows : int, default=20,000
        Rows of the sample for the prior. So few rows, or fewer, are learned where ``fit`` is called.
    """
    parts = _partitions(X)
    most = math.ceil(2 * sample_rows / len(parts))
    seed = parameters.get("random_state")
    seed = seed if isinstance(seed, (int, np.integer)) else 0
    samples = dask.compute(*[dask.delayed(_sample)(part, most, seed, i) for i, part in enumerate(parts)])
    rows = sum(count for count, _ in samples)
    if rows <= sample_rows and all(len(sample) == count for count, sample in samples):
        whole = _joined([sample for count, sample in samples if count])
        return OnlineGaussianMixture(n_components, **parameters).fit(whole)
    # Each partition gives the same share of its rows.
    share = min([sample_rows / rows] + [len(sample) / count for count, sample in samples if count])
    sample = _joined([sample[: math.ceil(share * count)] for count, sample in samples if count])
    prior = distributed.prior(sample, n_components, **parameters)
    begin = dask.delayed(distributed.to_send(prior, len(parts)))
    shards = [dask.delayed(_learn)(part, begin, i) for i, part in enumerate(parts)]
    merged = [dask.delayed(distributed.merge_some)(group, begin) for group in distributed.groups(shards)]
    return distributed.merge(dask.compute(*(merged or shards)), prior)


def score_samples(mixture: OnlineGaussianMixture, X):
    """The log-density of each row, as a lazy series or array."""
    return _lazily(mixture.score_samples, X, "log_density", np.float64)


def predict(mixture: OnlineGaussianMixture, X):
    """The most probable component of each row, as a lazy series or array."""
    return _lazily(mixture.predict, X, "component", np.int64)


def rank_samples(mixture: OnlineGaussianMixture, X):
    """The fraction of the learned rows with a lower log-density than each row, as a lazy series or array."""
    return _lazily(mixture.rank_samples, X, "rank", np.float64)


def score(mixture: OnlineGaussianMixture, X):
    """The mean log-density of the rows, as a lazy number."""
    return score_samples(mixture, X).mean()


def _partitions(X) -> list:
    """The partitions as delayed objects."""
    if isinstance(X, dask.array.Array):
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions, and rows of columns have 2")
        return list(X.rechunk({1: -1}).to_delayed().ravel())
    if hasattr(X, "to_delayed") and hasattr(X, "columns"):
        return list(X.to_delayed())
    raise TypeError(f"X is a {type(X).__name__}, not a Dask DataFrame or Array: OnlineGaussianMixture().fit(X) learns it")


def _sample(part, most: int, seed: int, index: int) -> tuple:
    """The number of rows of a partition, and at most so many of them, at random and in random order."""
    drawn = np.random.default_rng([seed, index]).permutation(len(part))[:most]
    if len(drawn) == len(part):
        drawn.sort()
    return len(part), part.iloc[drawn] if hasattr(part, "iloc") else part[drawn]


def _joined(samples: list):
    if samples and hasattr(samples[0], "iloc"):
        import pandas

        return pandas.concat(samples)
    return np.concatenate(samples) if samples else np.empty((0, 1))


def _learn(part, begin: OnlineGaussianMixture, index: int) -> bytes:
    return distributed.learn_shard([part], begin, name=index)


def _lazily(method, X, name: str, dtype):
    if isinstance(X, dask.array.Array):
        return X.rechunk({1: -1}).map_blocks(_of_block, method, dtype, drop_axis=1, dtype=dtype, meta=np.empty(0, dtype))
    import pandas

    return X.map_partitions(_of_partition, method, name, dtype, meta=pandas.Series(name=name, dtype=dtype))


def _of_block(block, method, dtype):
    return method(block) if len(block) else np.empty(0, dtype)


def _of_partition(part, method, name: str, dtype):
    import pandas

    return pandas.Series(_of_block(part, method, dtype), index=part.index, name=name)
