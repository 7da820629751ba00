"""scikit-learn's GaussianMixture: batch EM from one k-means start."""

from adapter import main
from sklearn.mixture import GaussianMixture


def fit(rows, k, seed):
    return GaussianMixture(k, random_state=seed).fit(rows)


if __name__ == "__main__":
    main(fit, lambda model, rows: model.score_samples(rows))
