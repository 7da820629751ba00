"""scikit-learn's BayesianGaussianMixture: variational inference in batches, with at most K components.

Its score is the expected log-likelihood under the posterior, which is not a normalised density. The adapter scores rows
with the mixture of the posterior's means instead.
"""

import numpy
from adapter import main
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.mixture import BayesianGaussianMixture


def fit(rows, k, seed):
    return BayesianGaussianMixture(n_components=k, random_state=seed, max_iter=500).fit(rows)


def log_density(model, rows):
    parts = [
        numpy.log(weight) + multivariate_normal(mean, covariance, allow_singular=True).logpdf(rows)
        for weight, mean, covariance in zip(model.weights_, model.means_, model.covariances_)
    ]
    return logsumexp(numpy.atleast_2d(numpy.array(parts).T.reshape(len(rows), -1)), axis=1)


if __name__ == "__main__":
    main(fit, log_density)
