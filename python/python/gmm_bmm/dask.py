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


def fit(
    X, n_components="auto", *, sample_weight=None, sample_rows: int = distributed.SAMPLE_ROWS, **parameters
) -> OnlineGaussianMixture:
    """Learns a mixture: each partition is a shard. See ``gmm_bmm.distributed``.

    Parameters
    ----------
    X : dask.dataframe.DataFrame or dask.array.Array
    n_components, **parameters
        As for ``gmm_bmm.OnlineGaussianMixture``.
    sample_weight : str, dask.dataframe.Series or dask.array.Array, default=None
        The weights of the rows: a column of the data frame, which is then not learned, or a collection with the partitions of ``X``.
    sample_rows : int, default=20,000
        Rows of the sample for the prior. So few rows, or fewer, are learned where ``fit`` is called.
    """
    parts = _partitions(X, sample_weight)
    most = math.ceil(2 * sample_rows / len(parts))
    seed = parameters.get("random_state")
    seed = seed if isinstance(seed, (int, np.integer)) else 0
    samples = _samples(parts, [most] * len(parts), seed)
    rows = sum(count for count, _ in samples)
    if rows <= sample_rows and all(len(sample[0]) == count for count, sample in samples):
        whole, weights = _joined([sample for count, sample in samples if count])
        return OnlineGaussianMixture(n_components, **parameters).fit(whole, sample_weight=weights)
    # Each partition gives the same share of its rows, so a partition with most of the rows is sampled once more.
    if any(len(sample[0]) < 0.5 * count * sample_rows / rows for count, sample in samples):
        samples = _samples(parts, [math.ceil(count * sample_rows / rows) for count, _ in samples], seed)
    share = min([sample_rows / rows] + [len(sample[0]) / count for count, sample in samples if count])
    sample, weights = _joined([_first(sample, math.ceil(share * count)) for count, sample in samples if count])
    prior = distributed.prior(sample, n_components, sample_weight=weights, **parameters)
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


def score(mixture: OnlineGaussianMixture, X, sample_weight=None):
    """The mean log-density of the rows, as a lazy number. ``sample_weight`` is a series or array like the scores."""
    scores = score_samples(mixture, X)
    if sample_weight is None:
        return scores.mean()
    return (scores * sample_weight).sum() / sample_weight.sum()


def _partitions(X, sample_weight) -> list:
    """The partitions as delayed pairs of rows and weights."""
    if sample_weight is None:
        return [dask.delayed(_pair)(part, None) for part in _parts_of(X)]
    if isinstance(sample_weight, str):
        if sample_weight not in getattr(X, "columns", ()):
            raise ValueError(f"X has no column {sample_weight!r}")
        X, sample_weight = X.drop(columns=[sample_weight]), X[sample_weight]
    if isinstance(sample_weight, dask.array.Array) and isinstance(X, dask.array.Array):
        weights = list(sample_weight.rechunk((X.chunks[0],)).to_delayed().ravel())
    elif hasattr(sample_weight, "to_delayed"):
        weights = sample_weight.to_delayed()
        weights = list(weights.ravel() if isinstance(weights, np.ndarray) else weights)
    else:
        raise TypeError(f"sample_weight is a {type(sample_weight).__name__}, not a column or a Dask Series or Array")
    rows = _parts_of(X)
    if len(rows) != len(weights):
        raise ValueError(f"X has {len(rows)} partitions and sample_weight {len(weights)}")
    return [dask.delayed(_pair)(part, weight) for part, weight in zip(rows, weights)]


def _pair(rows, weights) -> tuple:
    if weights is None:
        return rows, None
    weights = np.asarray(weights, dtype=float)
    if len(weights) != len(rows):
        raise ValueError(f"a partition has {len(rows)} rows and {len(weights)} weights")
    return rows, weights


def _parts_of(X) -> list:
    """The partitions as delayed objects."""
    if isinstance(X, dask.array.Array):
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions, and rows of columns have 2")
        return list(X.rechunk({1: -1}).to_delayed().ravel())
    if hasattr(X, "to_delayed") and hasattr(X, "columns"):
        return list(X.to_delayed())
    raise TypeError(f"X is a {type(X).__name__}, not a Dask DataFrame or Array: OnlineGaussianMixture().fit(X) learns it")


def _samples(parts: list, most: list[int], seed: int) -> tuple:
    """What ``_sample`` returns for each partition."""
    return dask.compute(*[dask.delayed(_sample)(part, own, seed, i) for i, (part, own) in enumerate(zip(parts, most))])


def _sample(part: tuple, most: int, seed: int, index: int) -> tuple:
    """The number of rows of a partition, and at most so many of them with their weights, at random and in random order."""
    rows, weights = part
    drawn = np.random.default_rng([seed, index]).permutation(len(rows))[:most]
    if len(drawn) == len(rows):
        drawn.sort()
    own = rows.iloc[drawn] if hasattr(rows, "iloc") else rows[drawn]
    return len(rows), (own, None if weights is None else weights[drawn])


def _first(sample: tuple, count: int) -> tuple:
    rows, weights = sample
    return rows[:count], None if weights is None else weights[:count]


def _joined(samples: list) -> tuple:
    """The rows and weights of some samples as one."""
    if not samples:
        return np.empty((0, 1)), None
    rows = [rows for rows, _ in samples]
    if hasattr(rows[0], "iloc"):
        import pandas

        whole = pandas.concat(rows)
    else:
        whole = np.concatenate(rows)
    return whole, None if samples[0][1] is None else np.concatenate([weights for _, weights in samples])


def _learn(part: tuple, begin: OnlineGaussianMixture, index: int) -> bytes:
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
