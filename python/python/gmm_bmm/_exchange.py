"""Exchange of mixtures with scikit-learn."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gmm_bmm import _core


class ScikitLearnExchange:
    """The methods of an estimator that take and give a ``sklearn.mixture.GaussianMixture``."""

    @classmethod
    def from_sklearn(cls, mixture, *, n_samples: int, random_state=None):
        """Continues from a fitted ``sklearn.mixture.GaussianMixture``.

        Parameters
        ----------
        mixture : GaussianMixture
            Of any ``covariance_type``.
        n_samples : int
            Rows that the mixture was fitted to: the weight that it has against the rows to come.
        random_state : int, RandomState instance or None
        """
        check_is_fitted(mixture)
        arrays = (mixture.weights_, mixture.means_, mixture.covariances_)
        names = getattr(mixture, "feature_names_in_", None)
        names = None if names is None else [str(name) for name in names]
        return cls._from_arrays(arrays, mixture.covariance_type, n_samples, names=names, random_state=random_state)

    @classmethod
    def _from_arrays(cls, arrays, covariance_type: str, n_samples: int, *, names=None, random_state=None):
        """The mixture with these weights, means and covariances."""
        k, d = arrays[1].shape
        fit = _core.Fit(
            d,
            names=names,
            components=(k, k),
            learned=False,
            covariance_type=covariance_type,
            start=(*(np.ascontiguousarray(array, dtype=np.float64) for array in arrays), n_samples),
            seed=int(check_random_state(random_state).randint(np.iinfo(np.int32).max)),
        )
        return cls._of(fit, random_state=random_state)

    def to_sklearn(self):
        """A fitted ``sklearn.mixture.GaussianMixture`` with the same components.

        It has ``warm_start=True``, so its ``fit`` continues with EM from these components.
        """
        from sklearn.mixture import GaussianMixture

        other = GaussianMixture(
            self.n_components_,
            covariance_type=self.covariance_type,
            weights_init=self.weights_ / self.weights_.sum(),
            means_init=self.means_,
            precisions_init=self.precisions_,
            warm_start=True,
            random_state=self.random_state if isinstance(self.random_state, Integral) else None,
        )
        other.weights_ = other.weights_init
        other.means_ = other.means_init
        other.covariances_ = self.covariances_
        other.precisions_ = other.precisions_init
        other.precisions_cholesky_ = self.precisions_cholesky_
        other.converged_ = True
        other.n_iter_ = 1
        other.lower_bound_ = self.prequential_score_ if np.isfinite(self.prequential_score_) else -np.inf
        other.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            other.feature_names_in_ = self.feature_names_in_
        return other
