"""Adaptors for river. Importing this module needs river."""

from __future__ import annotations

import numpy as np

try:
    from river import base

    try:
        from river.base import AnomalyDetector
    except ImportError:  # earlier versions of river
        from river.anomaly.base import AnomalyDetector
except ImportError as missing:
    raise ImportError("gmm_bmm.river needs river: pip install river") from missing

from gmm_bmm._estimator import OnlineGaussianMixture


class _Stream:
    """A mixture that learns river's rows."""

    missing: str

    def _begin(self, mixture: OnlineGaussianMixture) -> None:
        self._features: list = []
        self._mixture = mixture
        self._early: tuple | None = None

    @property
    def _lacking(self) -> float:
        """The value of a feature that a row lacks."""
        return np.nan if self.missing == "marginal" else 0.0

    def _row(self, x: dict) -> np.ndarray:
        return np.array([[x.get(feature, self._lacking) for feature in self._features]], dtype=np.float64)

    def learn_one(self, x: dict, w: float = 1.0) -> None:
        """Learns one row. It counts as ``w`` rows."""
        fit = self._mixture.__dict__.get("_fit")
        if w == 1.0 and fit is not None and fit.observe_one(x, self._features, self._lacking):
            return
        if not self._features:
            self._features = sorted(x, key=str)
        if self._features:
            self._mixture.partial_fit(self._row(x), sample_weight=None if w == 1.0 else [w])

    def learn_many(self, X, w=None) -> None:
        """Learns the rows of a pandas DataFrame. Each counts as often as its weight in ``w`` says."""
        if not self._features:
            self._features = sorted(X.columns, key=str)
        rows = X.reindex(columns=self._features, fill_value=self._lacking)
        self._mixture.partial_fit(rows.to_numpy(dtype=np.float64), sample_weight=w)

    def _current(self) -> OnlineGaussianMixture:
        """The mixture to predict with."""
        fit = self._mixture._fit
        if fit.has_started:
            self._early = None
            return self._mixture
        if self._early is None or fit.rows > 1.25 * self._early[0]:
            self._early = (fit.rows, OnlineGaussianMixture._of(type(fit).from_bytes(fit.to_bytes()), missing=self.missing))
        return self._early[1]


class OnlineGaussianMixtureClusterer(_Stream, base.Clusterer):
    """Online Gaussian mixture for river's streams of dictionaries.

    The first row sets the features. A feature that a later row lacks counts as 0, or as missing with ``missing='marginal'``.
    Features that appear later are ignored.

    Parameters
    ----------
    n_components
        As in ``gmm_bmm.OnlineGaussianMixture``.
    start_rows
        Rows that are buffered to fit the first mixture. Until then, predictions use a mixture of the rows so far, which is
        refitted when their number has grown by a quarter.
    seed
        Seed of all random choices.
    missing
        ``'error'`` refuses NaN and None; ``'marginal'`` takes them as missing, and learns and scores a row by the values that it
        has.

    Examples
    --------
    >>> from gmm_bmm.river import OnlineGaussianMixtureClusterer
    >>> model = OnlineGaussianMixtureClusterer(n_components=2, start_rows=100)
    >>> for i in range(500):
    ...     model.learn_one({"x": i % 2 * 10 + (i * 37 % 101) / 100})
    >>> model.predict_one({"x": 0.5}) != model.predict_one({"x": 10.5})
    True
    """

    def __init__(self, n_components="auto", start_rows: int = 1000, seed: int = 1, missing: str = "error"):
        self.n_components = n_components
        self.start_rows = start_rows
        self.seed = seed
        self.missing = missing
        self._begin(OnlineGaussianMixture(n_components, start_rows=start_rows, missing=missing, random_state=seed))

    def score_one(self, x: dict) -> float:
        """The negative log-density of a row under the present mixture: larger is more unusual."""
        if not self._features:
            return 0.0
        log_density = self._mixture._fit.score_one(x, self._features, self._lacking)
        if log_density is not None:
            return -log_density
        return -float(self._current().score_samples(self._row(x))[0])

    def predict_one(self, x: dict) -> int:
        """The lasting identifier of the most probable component, or 0 before the first row."""
        if not self._features:
            return 0
        identifier = self._mixture._fit.predict_one(x, self._features, self._lacking)
        if identifier is not None:
            return identifier
        mixture = self._current()
        return int(mixture.identifiers_[mixture.predict(self._row(x))[0]])


class MixtureAnomalyDetector(_Stream, AnomalyDetector):
    """Detection of anomalies for river's streams of dictionaries, with the score of ``gmm_bmm.MixtureOutlierDetector``.

    Features are those of ``OnlineGaussianMixtureClusterer``.

    Parameters
    ----------
    contamination, n_components, effort, half_life
        As in ``gmm_bmm.MixtureOutlierDetector``, except that ``n_components`` is a number. The contamination decides which components
        count.
    start_rows
        Rows that are buffered to fit the first mixture. Until then, scores are those of a mixture of the rows so far, which is
        refitted when their number has grown by a quarter, and 0 while there are fewer than two rows for each component.
    seed
        Seed of all random choices.
    missing
        As in ``OnlineGaussianMixtureClusterer``.

    Examples
    --------
    >>> from gmm_bmm.river import MixtureAnomalyDetector
    >>> detector = MixtureAnomalyDetector(n_components=2, start_rows=100)
    >>> for i in range(500):
    ...     detector.learn_one({"x": i % 2 * 10 + (i * 37 % 101) / 100})
    >>> detector.score_one({"x": 50.0}) > detector.score_one({"x": 10.5})
    True
    """

    def __init__(
        self,
        contamination="auto",
        n_components: int = 16,
        start_rows: int = 1000,
        effort: str = "fast",
        half_life: int | None = None,
        seed: int = 1,
        missing: str = "error",
    ):
        self.contamination = contamination
        self.n_components = n_components
        self.start_rows = start_rows
        self.effort = effort
        self.half_life = half_life
        self.seed = seed
        self.missing = missing
        self._begin(
            OnlineGaussianMixture(
                n_components,
                start_rows=start_rows,
                effort=effort,
                half_life=half_life,
                missing=missing,
                random_state=seed,
            )
        )

    def score_one(self, x: dict) -> float:
        """The score of a row: larger is more unusual. Its unit is that of a negative log-density."""
        if not self._features or self._mixture._fit.rows < 2 * self.n_components:
            return 0.0
        share = None if self.contamination == "auto" else float(self.contamination)
        return -float(self._current()._fit.anomaly_scores(self._row(x), share)[0])
