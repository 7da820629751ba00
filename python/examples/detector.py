"""Detection of anomalies

A detector learns from rows that contain anomalies, and finds them. The data are a power plant, with two faults: for a while the sensors of two measurements
were exchanged, and a few rows were sent again and again with the same wrong values. Each value of an exchanged row is usual, only together they are not. The
repeated rows lie close together, so their density is high.
"""

from pathlib import Path

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from gmm_bmm import MixtureOutlierDetector

CCPP = Path(__file__).parents[2] / "datasets" / "ccpp.csv"


def faulty(rows: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The rows with faults, and the kind of each row: 0 is usual, 1 exchanged, 2 repeated."""
    rows, kind = rows.copy(), np.zeros(len(rows), dtype=int)
    kind[rng.choice(len(rows), 200, replace=False)] = np.repeat([1, 2], 100)
    # The temperature of one row with the other values of another row.
    rows[kind == 1, 0] = rng.permutation(rows[kind == 1, 0])
    rows[kind == 2] = rows.mean(axis=0) + [12, -8, 9, 20, 5] + 0.05 * rng.standard_normal((100, 5))
    return rows, kind


def main() -> tuple[float, float]:
    rows, kind = faulty(np.loadtxt(CCPP, delimiter=",", skiprows=1), np.random.default_rng(0))
    detector = MixtureOutlierDetector(contamination=0.02, random_state=0).fit(rows)
    forest = IsolationForest(random_state=0).fit(rows)
    areas = []
    for number, name in enumerate(["exchanged", "repeated"], start=1):
        shown = (kind == 0) | (kind == number)
        areas += [roc_auc_score(kind[shown] > 0, -model.score_samples(rows[shown])) for model in (detector, forest)]
        print(f"{name}: area under the ROC curve {areas[-2]:.3f}, isolation forest {areas[-1]:.3f}")
    found = detector.predict(rows) == -1
    print(f"{found.sum()} rows reported, {np.mean(kind[found] > 0):.0%} of them faulty")
    worst = np.argmin(np.where(kind == 1, detector.score_samples(rows), np.inf))
    print("the most unusual exchanged row deviates most in column", np.abs(detector.mixture_.explain(rows[[worst]])).argmax())
    return areas[0], areas[2]


if __name__ == "__main__":
    main()
