"""What the estimators that learn a mixture for a purpose have in common."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from gmm_bmm._estimator import OnlineGaussianMixture
from gmm_bmm._input import as_rows


class MixtureLearner:
    """An estimator with the parameters ``effort``, ``half_life``, ``missing`` and ``random_state``, whose ``mixture_`` learns."""

    _parameter_constraints: dict = {
        "effort": [StrOptions({"fast", "default", "thorough"})],
        "half_life": [Interval(Integral, 1, None, closed="left"), None],
        "missing": [StrOptions({"error", "marginal"})],
        "random_state": ["random_state"],
    }

    def finish(self):
        """Computes the mixture at the end of the stream, as ``OnlineGaussianMixture.finish`` does.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.mixture_.finish()
        return self

    @property
    def n_components_(self) -> int:
        check_is_fitted(self)
        return self.mixture_.n_components_

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _new_mixture(self, n_components, seed: int) -> OnlineGaussianMixture:
        return OnlineGaussianMixture(
            n_components, effort=self.effort, half_life=self.half_life, missing=self.missing, random_state=seed
        )

    def _learn_further(self, rows: np.ndarray, weights: np.ndarray | None) -> None:
        """Learns further rows with the present parameters."""
        self.mixture_.set_params(half_life=self.half_life, missing=self.missing)
        self.mixture_.partial_fit(rows, sample_weight=weights)

    def _rows(self, X, *, reset=False, **checks) -> np.ndarray:
        return as_rows(self, X, reset=reset, gaps=self.missing == "marginal", **checks)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "mixture_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "marginal"
        return tags
