"""river's MultivariateGaussian: one Gaussian, learned row by row.

river has no mixture with a density: its clustering algorithms assign rows and give none. This is its only multivariate
density, so it serves as the online baseline with K = 1.
"""

import numpy
from adapter import main
from river import proba
from scipy.linalg import solve_triangular


def fit(rows, k, seed):
    gaussian = proba.MultivariateGaussian()
    # The order of its columns is that of their names.
    names = [f"{column:06}" for column in range(rows.shape[1])]
    for row in rows:
        gaussian.update(dict(zip(names, row)))
    return {"k": 1, "mean": numpy.array([gaussian.mu[name] for name in names]), "covariance": gaussian.var.to_numpy()}


def log_density(model, rows):
    # SciPy's own density takes columns of very different units for a singular covariance.
    lower = numpy.linalg.cholesky(model["covariance"])
    whitened = solve_triangular(lower, (rows - model["mean"]).T, lower=True)
    log_det = 2 * numpy.log(numpy.diag(lower)).sum()
    return -0.5 * ((whitened**2).sum(axis=0) + log_det + rows.shape[1] * numpy.log(2 * numpy.pi))


if __name__ == "__main__":
    main(fit, log_density)
