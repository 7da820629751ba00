"""Gaussian mixtures with full covariances, learned online from batches of rows."""

from gmm_bmm._core import __version__
from gmm_bmm._estimator import OnlineGaussianMixture
from gmm_bmm._outliers import MixtureOutlierDetector
from gmm_bmm._regressor import MixtureRegressor
from gmm_bmm._shards import merge

__all__ = ["MixtureOutlierDetector", "MixtureRegressor", "OnlineGaussianMixture", "__version__", "merge"]
