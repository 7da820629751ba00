"""river's MultivariateGaussian: one Gaussian, learned row by row.

river has no mixture with a density: its clustering algorithms assign rows and give none. This is its only multivariate
density, so it serves as the online baseline with K = 1.
"""

import numpy
from adapter import main
from river import proba
from scipy.stats import multivariate_normal


def fit(rows, k, seed):
    gaussian = proba.MultivariateGaussian()
    # The order of its columns is that of their names.
    names = [f"{column:06}" for column in range(rows.shape[1])]
    for row in rows:
        gaussian.update(dict(zip(names, row)))
    return {"k": 1, "mean": numpy.array([gaussian.mu[name] for name in names]), "covariance": gaussian.var.to_numpy()}


def log_density(model, rows):
    gaussian = multivariate_normal(model["mean"], model["covariance"], allow_singular=True)
    return numpy.atleast_1d(gaussian.logpdf(rows))


if __name__ == "__main__":
    main(fit, log_density)
