"""A kernel density estimate with Scott's bandwidth (SciPy): a baseline that is not a mixture of K components."""

from adapter import main
from scipy.stats import gaussian_kde


def fit(rows, k, seed):
    return gaussian_kde(rows.T)


if __name__ == "__main__":
    main(fit, lambda model, rows: model.logpdf(rows.T))
