"""Cluster an unknown CSV file

The number of components is learned. Components that overlap are united into clusters, because a cluster that is not Gaussian takes
several. The file here is Abalone, one of the bundled data sets; give any other file of numbers instead.

    python cluster_csv.py FILE.csv
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from gmm_bmm import OnlineGaussianMixture

ABALONE = Path(__file__).parents[2] / "datasets" / "abalone.csv"


def main(path: Path) -> OnlineGaussianMixture:
    frame = pd.read_csv(path).select_dtypes("number").dropna()
    mixture = OnlineGaussianMixture(random_state=0, dequantize=True).fit(frame)
    for finding in mixture.findings_:
        print("note:", *finding)
    labels = mixture.clusters_[mixture.predict(frame)]
    print(f"{len(frame)} rows, {mixture.n_components_} components, {len(set(mixture.clusters_))} clusters")
    for cluster in np.unique(labels):
        inside = frame[labels == cluster]
        name = "outliers" if cluster == -1 else f"cluster {cluster}"
        print(f"{name}: {len(inside)} rows, medians {inside.median().round(2).to_dict()}")
    return mixture


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ABALONE)
