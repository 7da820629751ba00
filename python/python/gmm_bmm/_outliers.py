"""Detection of anomalies, for scikit-learn."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin, _fit_context, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from gmm_bmm._estimator import OnlineGaussianMixture
from gmm_bmm._input import as_weights, count_rows
from gmm_bmm._learner import MixtureLearner

_COMPONENTS = 16
"""More than most data have clusters: a component that a few anomalies occupy does not count."""


class MixtureOutlierDetector(MixtureLearner, OutlierMixin, BaseEstimator):
    """Detection of anomalies by a Gaussian mixture that learns from batches of rows.

    The rows to learn from may contain anomalies. The score of a row is not its log-density, which is high wherever a few anomalies
    lie together: light components do not count, narrow components are widened, components have the tails of their posterior
    predictive, and a row far from all others is more unusual than one in a gap between clusters.

    Parameters
    ----------
    contamination : 'auto' or float, default='auto'
        The share of anomalies among the learned rows, at most 0.5. Components that are lighter do not count. A small share, such as 0.001, says
        that nearly all learned rows are normal. With ``'auto'``, that share is 0.1, and
        a row is an anomaly if it is more unusual than 99 of 100 rows that the mixture generates. With fewer rows than a few for each column,
        new rows are less usual than those, and may all count as anomalies.
    n_components : 'auto', 'auto:LOW..HIGH', int or (int, int), default='auto'
        As in ``OnlineGaussianMixture``, except that ``'auto'`` means 16 components, and fewer where ``fit`` gets fewer than 32 rows for
        each column. That finds more anomalies than the number of components that describes the data best.
    effort : {'fast', 'default', 'thorough'}, default='fast'
        As in ``OnlineGaussianMixture``.
    half_life : int, default=None
        As in ``OnlineGaussianMixture``.
    missing : {'error', 'marginal'}, default='error'
        As in ``OnlineGaussianMixture``.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices. An integer makes results repeatable bit for bit.

    Attributes
    ----------
    mixture_ : OnlineGaussianMixture
        The mixture that was learned.
    offset_ : float
        The score below which a row is an anomaly: ``decision_function`` is ``score_samples`` minus this.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from gmm_bmm import MixtureOutlierDetector
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (990, 2)), rng.normal(8, 0.5, (10, 2))])
    >>> detector = MixtureOutlierDetector(contamination=0.02, random_state=0).fit(X)
    >>> bool((detector.predict(X[990:]) == -1).all())
    True
    """

    _parameter_constraints: dict = {
        **MixtureLearner._parameter_constraints,
        "contamination": [StrOptions({"auto"}), Interval(Real, 0.0, 0.5, closed="right")],
        "n_components": [str, Interval(Integral, 1, None, closed="left"), tuple, list],
    }

    def __init__(
        self,
        contamination="auto",
        *,
        n_components="auto",
        effort="fast",
        half_life=None,
        missing="error",
        random_state=None,
    ):
        self.contamination = contamination
        self.n_components = n_components
        self.effort = effort
        self.half_life = half_life
        self.missing = missing
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Learns a mixture from X, in one pass.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            As in ``OnlineGaussianMixture``: a row of weight ``w`` counts as ``w`` rows.

        Returns
        -------
        self
        """
        rows = self._rows(X, reset=True, ensure_min_samples=2)
        weights = as_weights(sample_weight, rows)
        self.mixture_ = self._begin(count_rows(rows, weights)).fit(rows, sample_weight=weights)
        self._first = None
        self._sample = _Sample().add(rows, weights, self.half_life)
        if self._share() is None:
            self._offset = self.mixture_._fit.anomaly_offset()
        else:
            self._offset = _quantile(self._scores(rows), weights, self._share())
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Learns further rows. How the rows are cut into batches changes nothing.

        Before ``mixture_`` has the rows of its start, scores are those of a mixture of the first rows, which is fitted again when
        there are a quarter more.

        Returns
        -------
        self
        """
        first = not hasattr(self, "mixture_")
        rows = self._rows(X, reset=first)
        weights = as_weights(sample_weight, rows)
        if first:
            self.mixture_, self._first = self._begin(), _FirstRows()
            self._sample = _Sample()
        self._learn_further(rows, weights)
        if self.mixture_._fit.has_started:
            self._first = None
        elif self._first is not None:
            self._first.add(rows, weights)
        self._sample.add(rows, weights, self.half_life)
        self._offset = None
        return self

    def finish(self):
        """Computes the mixture at the end of the stream, as ``OnlineGaussianMixture.finish`` does.

        Returns
        -------
        self
        """
        super().finish()
        self._first = self._offset = None
        return self

    @property
    def offset_(self) -> float:
        check_is_fitted(self)
        if self._offset is None:
            if self._share() is None:
                self._offset = self._current()._fit.anomaly_offset()
            else:
                self._offset = _quantile(self._scores(self._sample.rows), self._sample.weights, self._share())
        return self._offset

    def score_samples(self, X):
        """The score of each row: the lower, the more unusual. Its unit is that of a log-density.

        Missing values count as if they were as probable as usual.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._scores(self._rows(X))

    def decision_function(self, X):
        """``score_samples`` minus ``offset_``: negative for anomalies."""
        return self.score_samples(X) - self.offset_

    def predict(self, X):
        """-1 for each anomaly and 1 for each other row."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def _begin(self, rows: int | None = None) -> OnlineGaussianMixture:
        """A mixture to learn with. `rows` is the number of the rows, if these are all."""
        n_components = self.n_components
        if isinstance(n_components, str) and n_components == "auto":
            n_components = _COMPONENTS if rows is None else max(1, min(_COMPONENTS, rows // (2 * self.n_features_in_)))
        return self._new_mixture(n_components, self._seed())

    def _scores(self, rows: np.ndarray) -> np.ndarray:
        return self._current()._fit.anomaly_scores(rows, self._share())

    def _current(self) -> OnlineGaussianMixture:
        """The mixture to score with."""
        return self.mixture_ if self._first is None else self._first.mixture(self.mixture_)

    def _share(self) -> float | None:
        """The share of anomalies, if it is known."""
        return None if self.contamination == "auto" else float(self.contamination)


class _Sample:
    """A sample of the learned rows, in which heavy rows are more probable. It does not depend on how rows are cut into batches."""

    MAX_ROWS = 1000

    def __init__(self):
        self.rows = self.weights = None
        self._keys = np.empty(0)
        self._random = np.random.default_rng(0)
        self.seen = 0

    def add(self, rows: np.ndarray, weights: np.ndarray | None, half_life: int | None) -> _Sample:
        """Offers further rows, of which older ones lose weight with a half-life."""
        log_weights = np.zeros(len(rows)) if weights is None else np.log(weights, where=weights > 0, out=np.full(len(rows), -np.inf))
        counted = np.isfinite(log_weights)
        rows, log_weights = rows[counted], log_weights[counted]
        if half_life is not None:
            log_weights += (self.seen + np.arange(len(rows))) * (np.log(2) / half_life)
        self.seen += len(rows)
        if self.rows is not None:
            rows, log_weights = np.concatenate([self.rows, rows]), np.concatenate([self._log_weights, log_weights])
        new = len(rows) - len(self._keys)
        self._keys = np.concatenate([self._keys, np.log(self._random.exponential(size=new)) - log_weights[len(rows) - new :]])
        order = np.argsort(self._keys, kind="stable")[: self.MAX_ROWS]
        order.sort()
        self.rows, self._log_weights, self._keys = rows[order], log_weights[order], self._keys[order]
        # A sample that has left rows out has drawn them by their weights.
        complete = self.seen == len(self.rows)
        self.weights = np.exp(self._log_weights - self._log_weights.max(initial=-np.inf)) if complete else None
        return self


class _FirstRows:
    """The rows before the start of a mixture, and a mixture of most of them.

    It is that of the first 1, 2, ..., 8, 10, 12, 15, ... rows, so scores do not depend on how rows are cut into batches.
    """

    def __init__(self):
        self._parts: list[tuple[np.ndarray, np.ndarray]] = []
        self._fitted, self._mixture = 0, None

    def add(self, rows: np.ndarray, weights: np.ndarray | None) -> None:
        weights = np.ones(len(rows)) if weights is None else weights
        counted = weights > 0
        self._parts.append((rows[counted], weights[counted]))

    def mixture(self, like: OnlineGaussianMixture) -> OnlineGaussianMixture:
        """The mixture, with the parameters of another one."""
        rows, weights = (np.concatenate(parts) for parts in zip(*self._parts))
        self._parts = [(rows, weights)]
        fitted = min(1, len(rows))
        while (more := fitted + max(1, fitted // 4)) <= len(rows):
            fitted = more
        if fitted == 0:
            return like
        if fitted != self._fitted:
            self._mixture = clone(like).partial_fit(rows[:fitted], sample_weight=weights[:fitted])
            self._fitted = fitted
        return self._mixture


def _quantile(scores: np.ndarray, weights: np.ndarray | None, share: float) -> float:
    """The score below which this share of the rows is."""
    order = np.argsort(scores)
    below = np.arange(1, len(scores) + 1) if weights is None else np.cumsum(weights[order])
    return float(scores[order[np.searchsorted(below, share * below[-1], side="right")]])
