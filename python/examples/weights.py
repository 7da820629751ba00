"""Rows with weights

An aggregated table has each different row once, with the number of times that it occurs. Learned with these numbers as weights, it gives the mixture of
the whole table, from fewer rows. A weight of 0 leaves a row out.
"""

from pathlib import Path

import numpy as np

from gmm_bmm import OnlineGaussianMixture

CCPP = Path(__file__).parents[2] / "datasets" / "ccpp.csv"


def main() -> float:
    rows = np.loadtxt(CCPP, delimiter=",", skiprows=1)[:, :2]
    rows = np.random.default_rng(0).permutation(np.round(rows))
    aggregated, counts = np.unique(rows, axis=0, return_counts=True)
    order = np.random.default_rng(1).permutation(len(aggregated))
    aggregated, counts = aggregated[order], counts[order]
    whole = OnlineGaussianMixture(4, random_state=0).fit(rows)
    weighted = OnlineGaussianMixture(4, random_state=0).fit(aggregated, sample_weight=counts)
    unweighted = OnlineGaussianMixture(4, random_state=0).fit(aggregated)
    print(f"{len(rows)} rows, {len(aggregated)} of them different")
    scores = [mixture.score(rows) for mixture in (whole, weighted, unweighted)]
    print("mean log-density: {:.3f} from all rows, {:.3f} from weighted rows, {:.3f} without their weights".format(*scores))
    print(f"the same with weights: {weighted.score(aggregated, sample_weight=counts):.3f}")
    without = np.where(aggregated[:, 0] > 20, 0, counts)
    cold = OnlineGaussianMixture(2, random_state=0).fit(aggregated, sample_weight=without)
    print(f"learned from rows up to 20 °C: mean temperature {cold.weights_ @ cold.means_[:, 0]:.1f} °C")
    return scores[0] - scores[1]


if __name__ == "__main__":
    main()
