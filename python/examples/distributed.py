"""Learn one mixture from parts that separate processes read, and merge the results."""

import joblib
import numpy as np

from gmm_bmm import OnlineGaussianMixture, merge

PARTS = 4


def rows_of_part(part: int, rows: int = 20_000, seed: int = 0) -> np.ndarray:
    """Stands for a file of its own. The shares of the clusters differ from part to part."""
    rng = np.random.default_rng([part, seed])
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    shares = np.roll([0.6, 0.3, 0.1], part)
    return centres[rng.choice(3, p=shares, size=rows)] + rng.standard_normal((rows, 2))


def learn(prior: OnlineGaussianMixture, part: int) -> OnlineGaussianMixture:
    shard = prior.shard()
    for batch in np.array_split(rows_of_part(part), 10):
        shard.partial_fit(batch)
    return shard


def main() -> OnlineGaussianMixture:
    # The prior needs rows of all kinds: some first rows of every part.
    first = np.concatenate([rows_of_part(part, 2_000, seed=1) for part in range(PARTS)])
    prior = OnlineGaussianMixture(3, random_state=0).fit(first)
    shards = joblib.Parallel(n_jobs=2)(joblib.delayed(learn)(prior, part) for part in range(PARTS))
    mixture = merge(shards, prior=prior)
    for weight, mean in zip(mixture.weights_, mixture.means_):
        print(f"{weight:.3f} of the rows around {mean.round(2)}")
    return mixture


if __name__ == "__main__":
    main()
