"""The protocol of `gmm-bmm compare` for a learner in Python; docs/LEARNERS.md describes it.

An adapter defines `fit(rows, k, seed)`, which returns a model that can be pickled, and `log_density(model, rows)`, which
returns one number for each row, and calls `main(fit, log_density)`. Its commands are then

    adapter.py learn TRAIN MODEL K SEED [CHOSEN_K]
    adapter.py score MODEL TEST SCORES

K is 0 for a learner that chooses the number of components. If its model has an attribute or key `k`, that number is
written to CHOSEN_K.
"""

import csv
import pickle
import sys

import numpy


def read(path):
    """Returns the rows of a CSV file with a header."""
    with open(path, newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        next(lines)
        return numpy.array([[float(value) for value in line] for line in lines])


def learn(fit, train, model, k, seed, chosen_k=None):
    fitted = fit(read(train), int(k), int(seed))
    with open(model, "wb") as file:
        pickle.dump(fitted, file)
    if chosen_k is not None:
        with open(chosen_k, "w", encoding="utf-8") as file:
            print(fitted["k"] if isinstance(fitted, dict) else fitted.k, file=file)


def score(log_density, model, test, scores):
    with open(model, "rb") as file:
        fitted = pickle.load(file)
    with open(scores, "w", encoding="utf-8") as file:
        for value in log_density(fitted, read(test)):
            print(repr(float(value)), file=file)


def main(fit, log_density):
    job, *paths = sys.argv[1:]
    if job == "learn":
        learn(fit, *paths)
    elif job == "score":
        score(log_density, *paths)
    else:
        sys.exit(f"the first argument is 'learn' or 'score', not '{job}'")
