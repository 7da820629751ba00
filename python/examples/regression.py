"""Regression with intervals

A mixture over inputs and target gives the whole distribution of the target for each input: a mean, error bars that depend on the input, and quantiles.
The data are a power plant: the electrical output and four measurements of the weather.
"""

from pathlib import Path

import numpy as np

from gmm_bmm import MixtureRegressor

CCPP = Path(__file__).parents[2] / "datasets" / "ccpp.csv"


def main() -> tuple[float, float]:
    rows = np.loadtxt(CCPP, delimiter=",", skiprows=1)
    rows = np.random.default_rng(0).permutation(rows)
    X, y = rows[:, :-1], rows[:, -1]
    train, test = slice(0, 7500), slice(7500, None)
    regressor = MixtureRegressor(n_components=8, random_state=0).fit(X[train], y[train])
    mean, deviation = regressor.predict(X[test], return_std=True)
    low, high = regressor.predict_quantiles(X[test], (0.05, 0.95)).T
    error = float(np.sqrt(np.mean((mean - y[test]) ** 2)))
    covered = float(np.mean((low <= y[test]) & (y[test] <= high)))
    print(f"root mean squared error {error:.2f}, standard deviation of the target {y[test].std():.2f}")
    print(f"{covered:.1%} of the targets lie within the 90 % intervals")
    for i in np.argsort(deviation)[[0, -1]]:
        print(f"predicted {mean[i]:.1f} ± {deviation[i]:.1f}, was {y[test][i]:.1f}")
    return error, covered


if __name__ == "__main__":
    main()
