"""Regression with the distribution of the target, for scikit-learn."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from gmm_bmm._estimator import OnlineGaussianMixture
from gmm_bmm._input import as_weights, count_rows
from gmm_bmm._learner import MixtureLearner

_HELD_OUT = 0.15
"""The fraction of the rows that decides on the number of components."""
_MAX_HELD_OUT = 4000
_MIN_ROWS = 100
"""With fewer rows, held-out rows cannot decide."""
_LADDER = (1, 2, 4, 8, 16, 32, 50)
"""The numbers of components that are tried."""
_FACTORS = (1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
"""What the variance of y given X is multiplied by: the factors that are tried."""


class MixtureRegressor(MixtureLearner, RegressorMixin, BaseEstimator):
    """Regression by a Gaussian mixture over the columns of X and y.

    Given a row of X, the mixture is a mixture over y. So a prediction is a whole distribution: its mean, standard deviation,
    quantiles, density and draws. Rows can arrive in batches, several targets are learned together, and values of X may be
    missing.

    Parameters
    ----------
    n_components : 'auto' or int, default='auto'
        The number of components. With ``'auto'``, ``fit`` tries 1, 2, 4, ... up to 50 and takes the number whose predictions have
        the highest log-density on held-out rows. The same rows then choose ``variance_factor_``. ``partial_fit`` sees each row
        once, so it learns the number from the density of X and y together.
    effort : {'fast', 'default', 'thorough'}, default='default'
        As in ``OnlineGaussianMixture``.
    half_life : int, default=None
        As in ``OnlineGaussianMixture``.
    missing : {'error', 'marginal'}, default='error'
        As in ``OnlineGaussianMixture``. ``'marginal'`` takes NaN in X.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices. An integer makes results repeatable bit for bit.

    Attributes
    ----------
    mixture_ : OnlineGaussianMixture
        The mixture over the columns of X, followed by those of y.
    n_components_ : int
        The number of components.
    variance_factor_ : float
        What the variance of y given X is multiplied by within each component, so that intervals are wide enough for new rows. ``fit``
        chooses it from 1 to 4 with held-out rows if it also chooses the number of components. Otherwise it is 1.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from gmm_bmm import MixtureRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (4000, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(4000)
    >>> regressor = MixtureRegressor(random_state=0).fit(X, y)
    >>> mean, deviation = regressor.predict([[1.5]], return_std=True)
    >>> bool(abs(mean[0] - 1.0) < 0.1), bool(0.05 < deviation[0] < 0.2)
    (True, True)
    """

    _parameter_constraints: dict = {
        **MixtureLearner._parameter_constraints,
        "n_components": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components="auto",
        *,
        effort="default",
        half_life=None,
        missing="error",
        random_state=None,
    ):
        self.n_components = n_components
        self.effort = effort
        self.half_life = half_life
        self.missing = missing
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Learns from X and y, in one pass for each number of components that is tried.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
            As in ``OnlineGaussianMixture``: a row of weight ``w`` counts as ``w`` rows.

        Returns
        -------
        self
        """
        rows = self._joined(X, y, reset=True, ensure_min_samples=2)
        weights = as_weights(sample_weight, rows)
        count_rows(rows, weights)
        if weights is not None and not weights.all():
            rows, weights = np.ascontiguousarray(rows[weights > 0]), weights[weights > 0]
        seed = self._seed()
        chosen, self.variance_factor_ = self.n_components, 1.0
        if chosen == "auto" and len(rows) >= _MIN_ROWS:
            chosen, self.variance_factor_ = self._chosen(rows, weights, seed)
        self.mixture_ = self._new_mixture(chosen, seed).fit(rows, sample_weight=weights)
        self._predicting = self._widen(self.mixture_, self.variance_factor_)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, sample_weight=None):
        """Learns further rows. How the rows are cut into batches changes nothing.

        Returns
        -------
        self
        """
        first = not hasattr(self, "mixture_")
        rows = self._joined(X, y, reset=first)
        weights = as_weights(sample_weight, rows)
        if first:
            self.mixture_, self.variance_factor_ = self._new_mixture(self.n_components, self._seed()), 1.0
        self._learn_further(rows, weights)
        self._predicting = self._widen(self.mixture_, self.variance_factor_)
        return self

    def finish(self):
        """Computes the mixture at the end of the stream, as ``OnlineGaussianMixture.finish`` does.

        Returns
        -------
        self
        """
        super().finish()
        self._predicting = self._widen(self.mixture_, self.variance_factor_)
        return self

    def predict(self, X, return_std=False):
        """The mean of y given each row of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return the standard deviation of y too. It is that of a new value, not of the mean.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape, if ``return_std``
        """
        means, deviations, _ = self._predict(X, [])
        return (self._shaped(means), self._shaped(deviations)) if return_std else self._shaped(means)

    def predict_quantiles(self, X, quantiles=(0.05, 0.5, 0.95)):
        """Quantiles of y given each row of X, from the exact distribution function of the mixture.

        Returns
        -------
        y : ndarray of shape (n_samples, n_quantiles) or (n_samples, n_targets, n_quantiles)
        """
        levels = np.atleast_1d(np.asarray(quantiles, dtype=float))
        if levels.ndim != 1 or not np.all((levels > 0) & (levels < 1)):
            raise ValueError(f"quantiles must be between 0 and 1, not {quantiles!r}")
        return self._shaped(self._predict(X, levels.tolist())[2])

    def log_density(self, X, y):
        """The log-density of each y given its row of X.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._density(self._predicting, self._joined(X, y))

    def sample(self, X, n_samples=1, random_state=None):
        """Draws y given each row of X.

        Returns
        -------
        y : ndarray of shape (n_samples, n_rows) or (n_samples, n_rows, n_targets)
        """
        rows = np.tile(self._hidden(X), (n_samples, 1))
        rng = check_random_state(self.random_state if random_state is None else random_state)
        drawn = self._predicting.sample_missing(rows, random_state=rng)[:, self.n_features_in_ :]
        drawn = drawn.reshape(n_samples, -1, self.n_targets_)
        return drawn[..., 0] if self._is_flat else drawn

    def _chosen(self, rows: np.ndarray, weights: np.ndarray | None, seed: int) -> tuple[int, float]:
        """The number of components, and then the factor of the variance, with the highest log-density of held-out rows."""
        order = np.random.default_rng(seed).permutation(len(rows))
        held = min(int(_HELD_OUT * len(rows)), _MAX_HELD_OUT)
        of_held, of_learned = np.sort(order[:held]), np.sort(order[held:])
        held_out, learned = rows[of_held], rows[of_learned]
        by = [None, None] if weights is None else [weights[of_held], weights[of_learned]]
        best, chosen, worse = -np.inf, None, 0
        for k in _LADDER:
            if k * 2 > len(learned):
                break
            mixture = self._new_mixture(k, seed).fit(learned, sample_weight=by[1])
            level = _level(self._density(mixture, held_out), by[0])
            if level > best:
                best, chosen, worse = level, mixture, 0
            else:
                worse += 1
            if worse == 2:
                break
        levels = [_level(self._density(self._widen(chosen, factor), held_out), by[0]) for factor in _FACTORS]
        return chosen.n_components_, _FACTORS[int(np.argmax(levels))]

    def _widen(self, mixture: OnlineGaussianMixture, factor: float) -> OnlineGaussianMixture:
        """The mixture with this factor of the variance of y given X within each component."""
        if factor == 1.0:
            return mixture
        d = self.n_features_in_
        covariances = mixture.covariances_.copy()
        inputs, both, targets = covariances[:, :d, :d], covariances[:, :d, d:], covariances[:, d:, d:]
        given = targets - np.swapaxes(both, 1, 2) @ np.linalg.solve(inputs, both)
        covariances[:, d:, d:] += (factor - 1.0) * (given + np.swapaxes(given, 1, 2)) / 2
        arrays = (mixture.weights_, mixture.means_, covariances)
        return OnlineGaussianMixture._from_arrays(arrays, "full", mixture.n_samples_seen_, random_state=0)

    def _joined(self, X, y, *, reset=False, **checks) -> np.ndarray:
        """X and y as the rows of one table."""
        X = self._rows(X, reset=reset, **checks)
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None."
            )
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        check_consistent_length(X, y)
        if y.ndim > 2:
            raise ValueError(f"y must have one or two dimensions, not {y.ndim}")
        targets = 1 if y.ndim == 1 else y.shape[1]
        if reset:
            self.n_targets_, self._is_flat = targets, y.ndim == 1
        elif targets != self.n_targets_:
            raise ValueError(f"y has {targets} targets, but {type(self).__name__} was fitted to {self.n_targets_}")
        return np.ascontiguousarray(np.column_stack([X, y]))

    def _hidden(self, X) -> np.ndarray:
        """X with empty columns for the targets."""
        check_is_fitted(self)
        X = self._rows(X)
        return np.ascontiguousarray(np.column_stack([X, np.full((len(X), self.n_targets_), np.nan)]))

    def _targets(self) -> list[int]:
        return list(range(self.n_features_in_, self.n_features_in_ + self.n_targets_))

    def _predict(self, X, levels: list[float]):
        rows = self._hidden(X)
        return self._predicting._mixture().predict_columns(rows, self._targets(), levels)

    def _density(self, mixture: OnlineGaussianMixture, rows: np.ndarray) -> np.ndarray:
        return mixture._mixture().conditional_log_density(rows, self._targets())

    def _shaped(self, predicted: np.ndarray) -> np.ndarray:
        return predicted[:, 0] if self._is_flat else predicted

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _level(log_densities: np.ndarray, weights: np.ndarray | None) -> float:
    """The mean log-density, to which no row contributes less than 30 below the median: a few odd rows do not decide."""
    return float(np.average(np.maximum(log_densities, np.median(log_densities) - 30.0), weights=weights))
