#!/usr/bin/env python3
"""Score rows under a model file with SciPy alone, to hold `gmm-bmm synth` and `gmm-bmm eval` against it.

    gmm-bmm synth --k 4 --d 10 --n 1000 --out train.csv --test-rows 30000 --test-out test.csv --truth truth.json --json
    python3 tests/reference/check_truth.py truth.json test.csv

prints the rows and their mean log-likelihood as JSON. The figure in truth_small_scipy.json came from

    gmm-bmm synth --k 2 --d 3 --n 1000 --seed 42 --separation 3 --out train.csv \
        --test-rows 80 --test-out truth_small_test.csv --truth truth_small.json
    python3 tests/reference/check_truth.py truth_small.json truth_small_test.csv > truth_small_scipy.json
"""

import argparse
import json

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal


def covariance(factor):
    """`c LLᵀ` from the rows of the lower triangle."""
    rows = factor["lower"]
    lower = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        lower[i, : i + 1] = row
    return factor["scale"] * lower @ lower.T


def log_density(rows, component):
    """In units of the component's standard deviations: SciPy takes columns in very different units for singular."""
    matrix = covariance(component["covariance"])
    units = np.sqrt(np.diag(matrix))
    scaled = (rows - component["mean"]) / units
    return multivariate_normal.logpdf(scaled, cov=matrix / np.outer(units, units)) - np.log(units).sum()


def mean_log_likelihood(model, rows):
    mixture = model["state"]["candidates"][0]["learned"]["point"]["mixture"]
    parts = zip(mixture["weights"], mixture["components"])
    terms = [np.log(weight) + np.atleast_1d(log_density(rows, component)) for weight, component in parts]
    return float(np.mean(logsumexp(terms, axis=0)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="model file of a point estimate, such as the truth of synth")
    parser.add_argument("rows", help="CSV file with a header, in the model's order of columns")
    options = parser.parse_args()
    with open(options.model, encoding="utf-8") as stream:
        model = json.load(stream)
    rows = np.loadtxt(options.rows, delimiter=",", skiprows=1, ndmin=2)
    print(json.dumps({"rows": len(rows), "mean_log_likelihood": mean_log_likelihood(model, rows)}))


if __name__ == "__main__":
    main()
