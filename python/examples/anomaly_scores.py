"""Score each batch of a stream before it is learned, and report unusual rows.

A row is unusual if its log-density is well below that of all but one in a hundred of the rows so far, or if it belongs to a
component of outliers: once there are some spikes, a component of their own may hold them.
"""

import numpy as np

from gmm_bmm import OnlineGaussianMixture

BATCH = 1_000


def stream(batches: int, seed: int = 0):
    """Rows of two operating modes, with a spike now and then. Yields the rows and the places of the spikes."""
    rng = np.random.default_rng(seed)
    for number in range(batches):
        mode = number // 20 % 2
        rows = rng.normal([20 + 30 * mode, 1.0, 5 - 3 * mode], [2.0, 0.1, 0.5], size=(BATCH, 3))
        spikes = np.flatnonzero(rng.random(BATCH) < 0.001)
        rows[spikes, 1] += rng.choice([-4, 4], size=spikes.size)
        yield rows, spikes


def main(batches: int = 60) -> tuple[int, int, int]:
    mixture = OnlineGaussianMixture(random_state=0)
    levels: list[np.ndarray] = []
    found = missed = false = 0
    for rows, spikes in stream(batches):
        if levels:
            scores = mixture.score_samples(rows)
            limit = np.quantile(np.concatenate(levels[-10:]), 0.01)
            outlier = mixture.clusters_[mixture.predict(rows)] == -1
            unusual = np.flatnonzero((scores < limit - 3.5) | outlier)
            # A new mode is not an anomaly: most of the batch is unusual then.
            if unusual.size < BATCH / 10:
                found += np.isin(spikes, unusual).sum()
                missed += (~np.isin(spikes, unusual)).sum()
                false += (~np.isin(unusual, spikes)).sum()
        mixture.partial_fit(rows)
        levels.append(mixture.score_samples(rows))
    print(f"{found} spikes found, {missed} missed, {false} other rows reported, in {batches * BATCH} rows")
    return int(found), int(missed), int(false)


if __name__ == "__main__":
    main()
