"""One mixture from rows in many places, on any engine.

A prior is learned from a sample of the rows, a shard from each partition, and the shards are merged::

    prior = distributed.prior(sample, n_components=5, random_state=0)
    begin = distributed.to_send(prior)                                 # the prior without its rows
    shards = [distributed.learn_shard(part, begin, name=i) for i, part in enumerate(partitions)]     # anywhere
    mixture = distributed.merge(shards, prior)

The shards learn all rows, those of the sample too. These count once: the prior is where the shards begin, and the merged mixture
counts it as one row for each component. If the rows of the prior are not among those of the shards, use ``gmm_bmm.merge``.

``gmm_bmm.spark``, ``gmm_bmm.dask`` and ``gmm_bmm.ray`` do this for data frames of their engines.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable

from gmm_bmm import _core
from gmm_bmm._estimator import OnlineGaussianMixture

SAMPLE_ROWS = 20_000
"""Rows of the sample that engines draw for the prior."""

KEEP_ROWS = 500
"""Rows that a shard keeps for the revision of the merged mixture. They are most of its bytes."""

GROUP = 64
"""Engines merge this many shards at once where there are many."""


def prior(sample, n_components="auto", *, sample_weight=None, **parameters) -> OnlineGaussianMixture:
    """The common prior of all shards, and where needed their number of components.

    Parameters
    ----------
    sample : array-like of shape (n_samples, n_features)
        Rows drawn at random from all rows: some 20,000, and no fewer than a few hundred for each component.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights of these rows, if rows have weights.
    n_components, **parameters
        As for ``gmm_bmm.OnlineGaussianMixture``. Shards have no ``half_life`` and no ``algorithm='oem'``.
    """
    mixture = OnlineGaussianMixture(n_components, **parameters).fit(sample, sample_weight=sample_weight)
    mixture.shard()  # Raises an error, before any work is sent out, if shards cannot begin from it.
    return mixture


def to_send(prior: OnlineGaussianMixture, shards: int | None = None) -> OnlineGaussianMixture:
    """The prior without its rows, which is small, to be sent to workers: ``learn_shard`` and ``merge_some`` take it.

    Parameters
    ----------
    prior : OnlineGaussianMixture
    shards : int, default=None
        How many shards there are, if that is known: few shards keep more rows each, so that the rows of all are enough for the
        revision of the merged mixture.
    """
    most = prior.keep_rows
    if most is None:
        most = min(80_000, 2**21 // prior.n_features_in_)
    keep_rows = min(most, max(KEEP_ROWS, most // (shards or most + 1)))
    return OnlineGaussianMixture._of(prior._fit.without_rows(), **{**prior.get_params(), "keep_rows": keep_rows})


def learn_shard(batches: Iterable, prior: OnlineGaussianMixture, *, name=None) -> bytes:
    """Learns one shard from batches of rows, and returns it as bytes. Without rows it is empty.

    Parameters
    ----------
    batches : iterable of array-like of shape (n_samples, n_features), or of pairs of rows and weights
        How the rows are cut into batches changes nothing. A row of weight ``w`` counts as ``w`` rows.
    prior : OnlineGaussianMixture
        What ``prior`` or ``to_send`` returned.
    name : int or str, default=None
        What identifies the rows, such as the number of the partition. A task that is retried gives the same name, and shards
        of one name count once. Shards without a name are told apart by their rows, and equal ones are refused.
    """
    shard = prior.shard(keep_rows=KEEP_ROWS if prior.keep_rows is None else prior.keep_rows)
    for batch in batches:
        rows, weights = batch if isinstance(batch, tuple) else (batch, None)
        if len(rows):
            shard.partial_fit(rows, sample_weight=weights)
    return _to_bytes(shard._fit, [] if name is None else [name]) if shard.n_samples_seen_ else b""


def merge(shards: Iterable[bytes], prior: OnlineGaussianMixture) -> OnlineGaussianMixture:
    """The mixture of all shards. The order of the shards changes nothing, and empty shards add nothing.

    Parameters
    ----------
    shards : iterable of bytes
        What ``learn_shard`` and ``merge_some`` returned.
    prior : OnlineGaussianMixture
        What ``prior`` returned. The result has its parameters.
    """
    return _merged(shards, prior, prior_is_a_sample=True)


def update(shards: Iterable[bytes], mixture: OnlineGaussianMixture) -> OnlineGaussianMixture:
    """The mixture with the further rows of shards that began from it: it is their prior, and keeps its full weight."""
    return _merged(shards, mixture, prior_is_a_sample=False)


def _merged(shards: Iterable[bytes], prior: OnlineGaussianMixture, prior_is_a_sample: bool) -> OnlineGaussianMixture:
    fits, named = _read(shards)
    if not fits:
        raise ValueError("no shard has any rows")
    merged = _core.merge(prior._fit, fits, prior_is_a_sample=prior_is_a_sample, distinct=named is not None)
    return OnlineGaussianMixture._of(merged, **prior.get_params())


def merge_some(shards: Iterable[bytes], prior: OnlineGaussianMixture) -> bytes:
    """Merges some of the shards into one, as a step on the way to ``merge``: with thousands of shards, workers merge groups.

    The result is as large as a few shards. ``prior`` may be what ``to_send`` returned.
    """
    fits, named = _read(shards)
    if not fits:
        return b""
    return _to_bytes(_core.merge(prior._fit, fits, intermediate=True, distinct=named is not None), named or [])


def groups(shards: list) -> list[list]:
    """The shards in groups to be merged by workers, where there are too many for one process."""
    if len(shards) <= 8 * GROUP:
        return []
    return [shards[start : start + GROUP] for start in range(0, len(shards), GROUP)]


def _to_bytes(fit: _core.Fit, names: list) -> bytes:
    return zlib.compress(fit.to_bytes(json.dumps({"shards": names})), 1)


def _read(shards: Iterable[bytes]) -> tuple[list[_core.Fit], list | None]:
    """The shards, each once, and their names. ``None`` if some have no name."""
    fits, known, all_named = [], set(), True
    for data in shards:
        if not data:
            continue
        try:
            fit = _core.Fit.from_bytes(zlib.decompress(data))
        except zlib.error as damaged:
            raise ValueError("a shard is damaged: it is not what learn_shard or merge_some returned") from damaged
        names = json.loads(fit.parameters_json() or "{}").get("shards", [])
        again = known.intersection(names)
        if again and len(again) == len(names):
            continue
        if again:
            raise ValueError(f"shard {sorted(again, key=str)[0]!r} is in two groups of shards")
        known.update(names)
        all_named &= bool(names)
        fits.append(fit)
    return fits, sorted(known, key=str) if all_named else None
