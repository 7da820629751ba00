"""Gaussian mixtures of Ray datasets. Importing this module needs Ray.

    from gmm_bmm import ray as gmm_ray

    mixture = gmm_ray.fit(dataset, n_components=5, random_state=0)    # an OnlineGaussianMixture
    scored = gmm_ray.transform(mixture, dataset)                      # lazy

``fit`` reads the dataset up to three times: to count its rows, for the sample of the prior, and to learn it. ``materialize`` what
is expensive to compute and fits in memory.
"""

from __future__ import annotations

import uuid

try:
    import pyarrow
    import ray.data
except ImportError as missing:
    raise ImportError("gmm_bmm.ray needs Ray: pip install 'ray[data]'") from missing

from gmm_bmm import distributed
from gmm_bmm._estimator import OnlineGaussianMixture


def fit(
    dataset: ray.data.Dataset,
    n_components="auto",
    *,
    columns: list[str] | None = None,
    sample_weight: str | None = None,
    sample_rows: int = distributed.SAMPLE_ROWS,
    **parameters,
) -> OnlineGaussianMixture:
    """Learns a mixture: each block is a shard. See ``gmm_bmm.distributed``.

    Parameters
    ----------
    dataset : ray.data.Dataset
    n_components, **parameters
        As for ``gmm_bmm.OnlineGaussianMixture``.
    columns : list of str, default=None
        The columns to learn. By default all but that of the weights.
    sample_weight : str, default=None
        A column of weights: a row of weight 2 counts as two rows.
    sample_rows : int, default=20,000
        Rows of the sample for the prior. So few rows, or fewer, are learned where ``fit`` is called.
    """
    rows = dataset
    if columns is not None:
        rows = dataset.select_columns(columns if sample_weight in (None, *columns) else [*columns, sample_weight])
    count = rows.count()
    if count <= sample_rows:
        whole, weights = _weighed(_table(rows), sample_weight)
        return OnlineGaussianMixture(n_components, **parameters).fit(whole, sample_weight=weights)
    seed = parameters.get("random_state")
    drawn = rows.random_sample(sample_rows / count, seed=seed if isinstance(seed, int) else 0)
    sample, weights = _weighed(_table(drawn), sample_weight)
    prior = distributed.prior(sample, n_components, sample_weight=weights, **parameters)
    begin = ray.put(distributed.to_send(prior))

    def learn(block: pyarrow.Table) -> pyarrow.Table:
        # Ray keeps one result of each block, so a name of its own is enough.
        pairs = [_weighed(block, sample_weight)]
        return _shard(distributed.learn_shard(pairs, ray.get(begin), name=uuid.uuid4().hex))

    def merge_group(group: pyarrow.Table) -> pyarrow.Table:
        return _shard(distributed.merge_some(group["shard"].to_pylist(), ray.get(begin)))

    shards = rows.map_batches(learn, batch_size=None, batch_format="pyarrow")
    shards = shards.map_batches(merge_group, batch_size=distributed.GROUP, batch_format="pyarrow")
    return distributed.merge((row["shard"] for row in shards.iter_rows()), prior)


def transform(mixture: OnlineGaussianMixture, dataset: ray.data.Dataset) -> ray.data.Dataset:
    """The dataset with the columns ``prediction``, ``log_density`` and ``rank``, lazily."""
    names = list(getattr(mixture, "feature_names_in_", [])) or None
    model = ray.put(mixture)

    def score(block: pyarrow.Table) -> pyarrow.Table:
        own = ray.get(model)
        rows = block if names is None else block.select(names)
        methods = {"prediction": own.predict, "log_density": own.score_samples, "rank": own.rank_samples}
        for name, method in methods.items():
            block = block.append_column(name, pyarrow.array(method(rows)))
        return block

    return dataset.map_batches(score, batch_format="pyarrow")


def _table(rows: ray.data.Dataset) -> pyarrow.Table:
    """All rows, here."""
    tables = [ray.get(reference) for reference in rows.to_arrow_refs()]
    return pyarrow.concat_tables([table for table in tables if table.num_rows])


def _weighed(block: pyarrow.Table, column: str | None) -> tuple:
    """The rows of a table without the column of weights, and the weights or ``None``."""
    if column is None:
        return block, None
    weights = block.column(column)
    if weights.null_count:
        raise ValueError(f"the column of weights, {column!r}, contains null")
    return block.drop_columns([column]), weights.to_numpy()


def _shard(data: bytes) -> pyarrow.Table:
    return pyarrow.table({"shard": pyarrow.array([data], pyarrow.binary())})
