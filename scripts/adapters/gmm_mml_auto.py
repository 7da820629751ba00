"""gmm-mml (PyPI): Figueiredo and Jain's EM, which removes components and so chooses K, from 25 components.

Its installation asks for the withdrawn package 'sklearn': use `pip install --no-deps gmm-mml`.
"""

import numpy
from adapter import main
from gmm_mml import GmmMml
from scipy.special import logsumexp
from scipy.stats import multivariate_normal


def fit(rows, k, seed):
    numpy.random.seed(seed)
    # It is not invariant to units.
    centre, unit = rows.mean(axis=0), rows.std(axis=0)
    unit[unit == 0] = 1
    learner = GmmMml(kmin=1, kmax=min(25, len(rows) // (2 * rows.shape[1] + 2)), plots=False)
    learner.fit((rows - centre) / unit)
    weights = numpy.ravel(learner.bestpp)
    return {
        "k": int(learner.bestk),
        "centre": centre,
        "unit": unit,
        "weights": weights / weights.sum(),
        "means": numpy.array(learner.bestmu),
        "covariances": numpy.moveaxis(numpy.array(learner.bestcov), 2, 0),
    }


def log_density(model, rows):
    scaled = (rows - model["centre"]) / model["unit"]
    parts = [
        numpy.log(weight) + multivariate_normal(mean, covariance, allow_singular=True).logpdf(scaled)
        for weight, mean, covariance in zip(model["weights"], model["means"], model["covariances"])
    ]
    return logsumexp(numpy.array(parts), axis=0) - numpy.log(model["unit"]).sum()


if __name__ == "__main__":
    main(fit, log_density)
