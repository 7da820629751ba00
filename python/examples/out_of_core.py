"""Cluster a CSV file that does not fit in memory, chunk by chunk.

    python out_of_core.py FILE.csv

Without a file it writes one of 200,000 rows to a temporary folder first.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from gmm_bmm import OnlineGaussianMixture

CHUNK = 20_000


def write_example(path: Path, rows: int = 200_000) -> None:
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0, 0], [8, 0, 3], [0, 9, -3], [7, 8, 0]])
    labels = rng.choice(4, p=[0.4, 0.3, 0.2, 0.1], size=rows)
    frame = pd.DataFrame(centres[labels] + rng.standard_normal((rows, 3)), columns=["x", "y", "z"])
    frame.to_csv(path, index=False)


def main(path: Path) -> OnlineGaussianMixture:
    mixture = OnlineGaussianMixture(random_state=0)
    for chunk in pd.read_csv(path, chunksize=CHUNK):
        mixture.partial_fit(chunk)
    mixture.finish()
    print(f"{mixture.n_samples_seen_} rows, {mixture.n_components_} components, {len(set(mixture.clusters_))} clusters")
    sizes = np.zeros(mixture.n_components_, dtype=int)
    for chunk in pd.read_csv(path, chunksize=CHUNK):
        sizes += np.bincount(mixture.predict(chunk), minlength=sizes.size)
    for component in np.argsort(-sizes):
        print(f"component {mixture.identifiers_[component]}: {sizes[component]} rows, mean {mixture.means_[component].round(2)}")
    return mixture


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            write_example(Path(folder) / "rows.csv")
            main(Path(folder) / "rows.csv")
