"""The Python package of this project: oBMM in one pass, with revisions."""

from adapter import main
from gmm_bmm import OnlineGaussianMixture


def fit(rows, k, seed):
    return OnlineGaussianMixture(k, random_state=seed).fit(rows)


if __name__ == "__main__":
    main(fit, lambda model, rows: model.score_samples(rows))
