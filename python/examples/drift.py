"""A stream that drifts

Two clusters move slowly, and at row 30,000 a sensor jumps. With a half-life, rows lose their weight, so the mixture follows. Without one it
describes the mean of all times. `findings_` reports the change with its row.
"""

import numpy as np

from gmm_bmm import OnlineGaussianMixture

ROWS, BATCH, JUMP = 60_000, 1_000, 30_000


def stream(seed: int = 0):
    rng = np.random.default_rng(seed)
    for first in range(0, ROWS, BATCH):
        time = np.arange(first, first + BATCH)
        rows = rng.standard_normal((BATCH, 2)) + np.outer(rng.integers(2, size=BATCH) * 8, [1, 1])
        rows[:, 0] += time / 10_000
        rows[:, 1] += 5 * (time >= JUMP)
        yield rows


def main() -> dict[str, float]:
    learners = {
        "all rows count the same": OnlineGaussianMixture(2, random_state=0),
        "half-life of 2,000 rows": OnlineGaussianMixture(2, half_life=2_000, random_state=0),
    }
    latest = {}
    for name, mixture in learners.items():
        scores = []
        for rows in stream():
            if scores or mixture.__sklearn_is_fitted__():
                scores.append(mixture.score(rows))
            mixture.partial_fit(rows)
        latest[name] = float(np.mean(scores[-10:]))
        print(f"{name}: mean log-density of the last 10,000 rows before they were learned {latest[name]:.2f}")
    for finding in learners["all rows count the same"].findings_:
        if change := finding.get("data_change"):
            print(f"the data change near row {change['row']:,} ({change['kind']})")
    return latest


if __name__ == "__main__":
    main()
