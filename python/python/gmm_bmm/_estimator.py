"""The estimator for scikit-learn."""

from __future__ import annotations

import json
import os
import threading
import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin, _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from gmm_bmm import _core
from gmm_bmm._components import bounds
from gmm_bmm._covariances import beginning, correlated, counted_rows, initial, roots
from gmm_bmm._exchange import ScikitLearnExchange
from gmm_bmm._files import Resumable
from gmm_bmm._input import as_rows, as_weights, count_rows, is_plain, refusal

_BEGINNING = threading.Lock()


def _after_fork() -> None:
    # In a forked child, the lock may be held by a thread that the child does not have.
    global _BEGINNING
    _BEGINNING = threading.Lock()
    _core.count_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class OnlineGaussianMixture(Resumable, ScikitLearnExchange, DensityMixin, BaseEstimator):
    """Gaussian mixture that learns from batches of rows.

    Each row is learned once, by Bayesian Moment Matching or by online EM. Memory does not grow with the number of rows. A
    bounded sample of the rows is kept to revise the structure of the mixture: components are split and merged where held
    back rows gain by it, and with ``n_components='auto'`` their number is learned.

    Parameters
    ----------
    n_components : 'auto', 'auto:LOW..HIGH', int or (int, int), default='auto'
        The number of components. ``'auto'`` learns it, up to 50, and ``'auto:2..10'`` learns it within bounds. ``(2, 10)`` learns
        a mixture for each number from 2 to 10, both included, and uses the one with the highest prequential score; that takes
        as long as learning nine mixtures. These are ``--k auto:2..10`` and ``--k 2..10`` of the command.
    covariance_type : {'full', 'tied', 'diag', 'spherical'}, default='full'
        The covariances of the components, as in ``sklearn.mixture.GaussianMixture``. ``'full'`` is the best choice for nearly
        all data, because its prior is learned. The others have fewer parameters and take less time with many columns.
    algorithm : {'obmm', 'oem'}, default='obmm'
        Online Bayesian Moment Matching, or online EM.
    effort : {'fast', 'default', 'thorough'}, default='default'
        How much work goes into the structure. ``'fast'`` fits the first rows once and does not revise.
    start_rows : int, default=None
        Rows that are buffered to fit the first mixture. By default max(5000, 5 * n_components * n_features).
    keep_rows : int, default=None
        Rows that are kept to revise the structure. By default at most 80,000 rows and 64 MB; 0 turns revisions off.
    half_life : int, default=None
        The number of further rows after which a row has half its weight, for data that drift. By default all rows have the
        same weight.
    prior_strength : 'auto' or float, default='auto'
        How many rows the prior of a component's covariance is worth. The prior says that all components have about the same
        correlations, which helps where rows are few for the number of columns. ``'auto'`` learns its strength from the data.
    dequantize : bool, default=False
        Whether columns with few distinct values get uniform noise of one quantum, so that their likelihood is that of a density. The
        first rows decide which columns these are. The noise of a value follows from the seed and from its place in X.
    missing : {'error', 'marginal'}, default='error'
        What to do about missing values, which are NaN. ``'error'`` refuses them. ``'marginal'`` learns and scores a row by the
        values that it has.
    cluster_overlap : float, default=0.01
        Components are united into a cluster while the probability that a row of one is assigned to the other is larger.
    n_clusters : int, default=None
        Components are united until so many clusters are left. By default ``cluster_overlap`` decides.
    weights_init, means_init, precisions_init : array-like, default=None
        A mixture that the pass begins from instead of a fit to the first rows, in the shapes of ``weights_``, ``means_`` and
        ``precisions_``. Only ``means_init`` is necessary, and ``n_components`` must allow for its number of rows. Weights are equal by default.
        Covariances are by default those of the first batch (the rows of ``fit``), each row with the nearest mean. The mixture
        counts for as many rows as the prior of a component, max(8, n_features / 4) each, so that the rows decide.
    warm_start : bool, default=False
        Whether ``fit`` begins from the mixture of the fit before, as with ``means_init``. ``partial_fit`` continues a pass instead.
    verbose : int, default=0
        1 prints each revision of the structure that is kept.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices. An integer makes results repeatable bit for bit.

    ``half_life``, ``missing``, ``cluster_overlap`` and ``n_clusters`` can be changed between calls of ``partial_fit``. A new ``random_state``
    changes only what ``sample`` and ``sample_missing`` draw. Of the other parameters a pass keeps those that it began with, and
    ``partial_fit`` raises an error if one has changed.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components_,)
    means_ : ndarray of shape (n_components_, n_features)
    covariances_, precisions_, precisions_cholesky_ : ndarray
        As in ``sklearn.mixture.GaussianMixture``, in its shapes: (n_components_, n_features, n_features) for
        ``covariance_type='full'``, (n_features, n_features) for ``'tied'``, (n_components_, n_features) for ``'diag'`` and
        (n_components_,) for ``'spherical'``.
    n_components_ : int
        The number of components.
    identifiers_ : ndarray of shape (n_components_,)
        Identifiers that last: the same identifier means the same component after further calls of ``partial_fit``.
    clusters_ : ndarray of shape (n_components_,)
        The cluster of each component; -1 for a component of outliers.
    weight_concentration_, mean_precision_, degrees_of_freedom_ : ndarray of shape (n_components_,)
        The posterior of the weights, means and covariances. Not available with ``algorithm='oem'``.
    n_samples_seen_ : int
        Rows learned so far.
    prequential_score_ : float
        Mean log-density of rows before they were learned. NaN while no row was scored.
    lower_bound_ : float
        The same number, under the name that GaussianMixture has for its training score.
    converged_ : bool
        Always True: one pass has no convergence criterion.
    n_iter_ : int
        Always 1: each row is learned once.
    history_ : list of dict
        The revisions of the structure, with their moves.
    findings_ : list of dict
        What is worth knowing about the data, such as constant or discrete columns, rows that were learned before, or the row near
        which the data change. ``load`` and unpickling keep the changes of the data; other findings are about rows learned since.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from gmm_bmm import OnlineGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (3000, 2)), rng.normal(8, 1, (3000, 2))])
    >>> rng.shuffle(X)
    >>> mixture = OnlineGaussianMixture(random_state=0)
    >>> for batch in np.array_split(X, 10):
    ...     mixture = mixture.partial_fit(batch)
    >>> mixture.n_components_
    2
    """

    _parameter_constraints: dict = {
        "n_components": [str, Interval(Integral, 1, None, closed="left"), tuple, list],
        "covariance_type": [StrOptions({"full", "tied", "diag", "spherical"})],
        "algorithm": [StrOptions({"obmm", "oem"})],
        "effort": [StrOptions({"fast", "default", "thorough"})],
        "start_rows": [Interval(Integral, 1, None, closed="left"), None],
        "keep_rows": [Interval(Integral, 0, None, closed="left"), None],
        "half_life": [Interval(Integral, 1, None, closed="left"), None],
        "prior_strength": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
        "dequantize": ["boolean"],
        "missing": [StrOptions({"error", "marginal"})],
        "cluster_overlap": [Interval(Real, 0.0, 1.0, closed="neither")],
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "precisions_init": ["array-like", None],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components="auto",
        *,
        covariance_type="full",
        algorithm="obmm",
        effort="default",
        start_rows=None,
        keep_rows=None,
        half_life=None,
        prior_strength="auto",
        dequantize=False,
        missing="error",
        cluster_overlap=0.01,
        n_clusters=None,
        weights_init=None,
        means_init=None,
        precisions_init=None,
        warm_start=False,
        verbose=0,
        random_state=None,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.algorithm = algorithm
        self.effort = effort
        self.start_rows = start_rows
        self.keep_rows = keep_rows
        self.half_life = half_life
        self.prior_strength = prior_strength
        self.dequantize = dequantize
        self.missing = missing
        self.cluster_overlap = cluster_overlap
        self.n_clusters = n_clusters
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    # Learning

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Learns a mixture from X, in one pass.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight ``w`` counts as ``w`` rows, and one of weight 0 as if it were not there. Ten times the weights mean ten times
            as many rows, so the prior counts for less. Weights that only compare rows should have a mean of about 1.

        Returns
        -------
        self
        """
        X = self._rows(X, reset=True, ensure_min_samples=2)
        low, high, learned = bounds(self.n_components)
        least = low if learned else high
        weights = as_weights(sample_weight, X)
        count = count_rows(X, weights)
        if count < least:
            raise ValueError(f"Expected n_samples >= n_components but got n_components = {least}, n_samples = {count}")
        fit = self._new_fit(X)
        self._learn(fit, X, weights)
        fit.finish()
        self._begin(fit)
        self._tell(0)
        return self

    def finish(self):
        """Computes the mixture at the end of the stream.

        A last revision looks at the kept rows, and the rows that were held back to judge revisions are learned. ``fit`` does
        this; call it after the last ``partial_fit``. Further rows can follow: ``partial_fit`` resumes from the state before.

        Returns
        -------
        self
        """
        self._require_fit()
        self._fit.finish()
        return self

    def partial_fit(self, X, y=None, sample_weight=None):
        """Learns further rows.

        How the rows are cut into batches changes nothing. ``predict``, ``score`` and the attributes use the mixture as
        learned so far; ``finish`` makes the most of the rows at the end of the stream.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            As for ``fit``.

        Returns
        -------
        self
        """
        # scikit-learn's checks take longer than learning a small batch.
        if not self.__sklearn_is_fitted__():
            return self._first_partial_fit(X, sample_weight)
        self._refuse_changes()
        X = X if is_plain(self, X) else self._rows(X)
        told = len(self.history_) if self.verbose else 0
        if sample_weight is None and self._fit.weighted:
            warnings.warn("earlier rows had a sample_weight, and each of these rows counts once", UserWarning, stacklevel=2)
        self._learn(self._fit, X, as_weights(sample_weight, X))
        self._tell(told)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def _first_partial_fit(self, X, sample_weight):
        # Threads that begin at the same time share one pass.
        with _BEGINNING:
            first = not self.__sklearn_is_fitted__()
            X = self._rows(X, reset=first)
            weights = as_weights(sample_weight, X)
            if first:
                self._begin(self._new_fit(X))
        self._learn(self._fit, X, weights)
        self._tell(0)
        return self

    def _tell(self, told: int) -> None:
        """Prints the revisions after the first ``told``, with ``verbose``."""
        for revision in self.history_[told:] if self.verbose else []:
            if revision["kept"]:
                moves = len(revision["moves"])
                print(f"row {revision['rows']:,}: revision ({revision['reason']}), {moves} {'move' if moves == 1 else 'moves'}")

    def _learn(self, fit: _core.Fit, X: np.ndarray, weights: np.ndarray | None) -> None:
        place = fit.observe(X, self.half_life, self.missing == "marginal", weights)
        if place is not None:
            raise ValueError(refusal(self, X, place))

    def fit_predict(self, X, y=None, sample_weight=None):
        """Learns a mixture from X and returns the most probable component of each row."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def _start(self, X: np.ndarray):
        """The mixture that a new pass begins from, and the rows that it counts for; None for a fit to the first rows."""
        if self.warm_start and self.__sklearn_is_fitted__() and self._fit.dim == X.shape[1]:
            return (*beginning(self.weights_, self.means_, self.covariances_), counted_rows(*self.means_.shape))
        if self.means_init is None:
            for name in ("weights_init", "precisions_init"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} needs means_init, since components without means have no place")
            return None
        return (*initial(self, X), counted_rows(*np.shape(self.means_init)))

    def _new_fit(self, X: np.ndarray) -> _core.Fit:
        low, high, learned = bounds(self.n_components)
        names = getattr(self, "feature_names_in_", None)
        return _core.Fit(
            self.n_features_in_,
            names=None if names is None else [str(name) for name in names],
            components=(low, high),
            learned=learned,
            covariance_type=self.covariance_type,
            start=self._start(X),
            algorithm=self.algorithm,
            effort=self.effort,
            start_rows=self.start_rows,
            keep_rows=self.keep_rows,
            half_life=self.half_life,
            prior_strength=None if self.prior_strength == "auto" else self.prior_strength,
            dequantize=self.dequantize,
            gaps=self.missing == "marginal",
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
        )

    def _refuse_changes(self) -> None:
        """Raises an error if a parameter has changed that has no effect on a pass under way."""
        for name, before in self._begun_with.items():
            now = getattr(self, name)
            if now == before or name == "n_components" and bounds(now) == bounds(before):
                continue
            raise ValueError(
                f"{name} was changed from {before!r} to {now!r}, and a pass keeps the {name} that it began with. "
                f"set_params({name}={before!r}) continues it; fit, or partial_fit of a clone, begins a new one."
            )

    def _rows(self, X, *, reset=False, gaps=None, **checks) -> np.ndarray:
        gaps = self.missing == "marginal" if gaps is None else gaps
        return as_rows(self, X, reset=reset, gaps=gaps, **checks)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "marginal"
        return tags

    # Scoring

    def score_samples(self, X):
        """The log-density of each row."""
        return self._mixture().score_samples(self._rows(X))

    def score(self, X, y=None, sample_weight=None):
        """The mean log-density of the rows, weighted by ``sample_weight`` if that is given."""
        scores = self.score_samples(X)
        weights = as_weights(sample_weight, scores[:, np.newaxis])
        return float(np.mean(scores) if weights is None else np.average(scores, weights=weights))

    def predict_cluster(self, X):
        """The cluster of the most probable component of each row; -1 for a component of outliers.

        ``clusters_`` has the cluster of each component. ``n_clusters`` or ``cluster_overlap`` decide which components are one.

        Returns
        -------
        clusters : ndarray of shape (n_samples,)
        """
        return self.clusters_[self.predict(X)]

    def rank_samples(self, X):
        """The fraction of the rows learned so far with a lower log-density than each row of X.

        A row with a rank near 0 is unusual. A row with missing values has the rank of a whole row that is as rare, and components of
        outliers do not count. NaN if the learned rows are not known, as after ``from_sklearn``.

        Returns
        -------
        ranks : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._fit.ranks(self._rows(X), self.cluster_overlap, self.n_clusters)

    def explain(self, X):
        """How improbable each column is given the other columns, as a number of standard deviations.

        The largest values of a row name the columns that make it unusual. A value is the deviation at which a normal distribution with
        the column's spread has the density that the mixture gives the column.

        Returns
        -------
        deviations : ndarray of shape (n_samples, n_features)
        """
        return self._mixture().explain(self._rows(X))

    def predict(self, X):
        """The most probable component of each row, as an index into ``means_``."""
        return self._mixture().predict(self._rows(X))

    def predict_proba(self, X):
        """The probability of each component, given the row."""
        return self._mixture().predict_proba(self._rows(X))

    def sample(self, n_samples=1):
        """Draws rows from the mixture.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
            The component of each row.
        """
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, not {n_samples}")
        mixture = self._mixture()
        rng = check_random_state(self.random_state)
        counts = rng.multinomial(n_samples, mixture.weights / mixture.weights.sum())
        drawn = [
            mean + correlated(rng.standard_normal((count, mean.size)), root)
            for count, mean, root in zip(counts, mixture.means, roots(mixture))
        ]
        return np.vstack(drawn), np.repeat(np.arange(counts.size), counts)

    def impute(self, X):
        """X with each missing value, which is NaN, replaced by its mean given the values that the row has.

        A row without any value becomes the mean of the mixture. This works with every value of ``missing``.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        return self._mixture().impute(self._rows(X, gaps=True))

    def sample_missing(self, X, random_state=None):
        """X with the missing values of each row drawn from their distribution given the values that the row has.

        Imputed means are less spread out than the data. Several draws show what is not known about the missing values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        random_state : int, RandomState instance or None, default=None
            Seed of the draws. None uses ``random_state`` of the estimator.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        rng = check_random_state(self.random_state if random_state is None else random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        return self._mixture().sample_missing(self._rows(X, gaps=True), seed)

    def bic(self, X):
        """The Bayesian information criterion on X. Lower is better."""
        X = self._rows(X)
        log_likelihood = self._mixture().score_samples(X).sum()
        return float(-2.0 * log_likelihood + self._n_parameters() * np.log(X.shape[0]))

    def aic(self, X):
        """The Akaike information criterion on X. Lower is better."""
        return float(-2.0 * self.score_samples(X).sum() + 2.0 * self._n_parameters())

    def _n_parameters(self) -> int:
        return self._mixture().parameters

    # What was learned

    def _mixture(self) -> _core.Mixture:
        """The mixture after the latest row."""
        check_is_fitted(self)
        return self._fit.mixture()

    @property
    def weights_(self):
        return self._mixture().weights

    @property
    def means_(self):
        return self._mixture().means

    @property
    def covariances_(self):
        return self._mixture().covariances

    @property
    def precisions_cholesky_(self):
        mixture = self._mixture()
        if mixture.covariance_type in ("diag", "spherical"):
            return 1.0 / np.sqrt(mixture.covariances)
        return np.swapaxes(np.linalg.inv(np.linalg.cholesky(mixture.covariances)), -1, -2)

    @property
    def precisions_(self):
        upper = self.precisions_cholesky_
        if self.covariance_type in ("diag", "spherical"):
            return upper**2
        return upper @ np.swapaxes(upper, -1, -2)

    @property
    def n_components_(self) -> int:
        return self._mixture().weights.size

    @property
    def identifiers_(self):
        self._require_fit()
        return self._fit.identifiers()

    @property
    def clusters_(self):
        self._require_fit()
        return self._fit.clusters(self.cluster_overlap, self.n_clusters)

    @property
    def weight_concentration_(self):
        return self._posterior()[0]

    @property
    def mean_precision_(self):
        return self._posterior()[1]

    @property
    def degrees_of_freedom_(self):
        return self._posterior()[2]

    def _posterior(self):
        self._require_fit()
        posterior = self._fit.posterior()
        if posterior is None:
            raise AttributeError("algorithm='oem' has no posterior")
        return posterior

    @property
    def n_samples_seen_(self) -> int:
        self._require_fit()
        return self._fit.rows

    @property
    def prequential_score_(self) -> float:
        self._require_fit()
        return self._fit.prequential_score

    lower_bound_ = prequential_score_

    @property
    def converged_(self) -> bool:
        self._require_fit()
        return True

    @property
    def n_iter_(self) -> int:
        self._require_fit()
        return 1

    @property
    def history_(self) -> list[dict]:
        self._require_fit()
        return json.loads(self._fit.history_json())

    @property
    def findings_(self) -> list[dict]:
        self._require_fit()
        return json.loads(self._fit.findings_json())

    def _require_fit(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' or 'partial_fit' first."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return "_fit" in self.__dict__
