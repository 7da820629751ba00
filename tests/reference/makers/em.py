"""Batch EM by scikit-learn and in extended precision."""

import warnings

import numpy as np
from mpmath import mp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from makers.helpers import dyadic_simplex, random_covariance, write


def standardised_rows(rng, n, d, k, distance):
    """Overlapping clusters; columns of mean 0 and sd 1, then 6 decimals."""
    weights = rng.dirichlet(np.full(k, 5.0))
    centres = rng.normal(size=(k, d)) * distance
    factors = rng.normal(size=(k, d, d)) * 0.5 + np.eye(d)
    labels = rng.choice(k, size=n, p=weights)
    noise = rng.normal(size=(n, d))
    rows = centres[labels] + np.einsum("nij,nj->ni", factors[labels], noise)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    return np.round(rows, 6)


def em_start(rng, rows, k):
    picked = rng.choice(len(rows), size=k, replace=False)
    return {"weights": dyadic_simplex(rng, k, bits=6, concentration=20.0),
            "means": rows[picked],
            "covariances": [random_covariance(rng, rows.shape[1], decimals=3) for _ in range(k)]}


def sklearn_em(rows, start, iterations, reg_covar):
    """Model after this many E-then-M passes from the start.

    With tol=0 scikit-learn never stops early (it asks for a change below tol),
    so max_iter is the number of M steps done, and the parameters kept are those
    of the last M step. score() evaluates those; lower_bound_ would lag behind
    by one M step.
    """
    model = GaussianMixture(
        n_components=len(start["weights"]), covariance_type="full", tol=0.0, reg_covar=reg_covar,
        max_iter=iterations, weights_init=start["weights"], means_init=start["means"],
        precisions_init=np.array([np.linalg.inv(c) for c in start["covariances"]]), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows)
    assert model.n_iter_ == iterations
    return model


def extended_log_joint(rows, weights, means, covariances):
    """log(weight) + log density of each row under each component, in long double."""
    n, d = rows.shape
    out = np.empty((n, len(weights)), dtype=np.longdouble)
    for k, (mean, cov) in enumerate(zip(means, covariances)):
        factor = np.zeros((d, d), dtype=np.longdouble)
        for i in range(d):
            for j in range(i + 1):
                rest = cov[i, j] - np.sum(factor[i, :j] * factor[j, :j])
                factor[i, j] = np.sqrt(rest) if i == j else rest / factor[j, j]
        white = np.zeros((n, d), dtype=np.longdouble)
        for i in range(d):
            white[:, i] = (rows[:, i] - mean[i] - white[:, :i] @ factor[i, :i]) / factor[i, i]
        log_norm = d * np.log(2 * np.longdouble(mp.nstr(mp.pi, 30))) / 2 + np.sum(np.log(np.diag(factor)))
        out[:, k] = np.log(weights[k]) - log_norm - np.sum(white ** 2, axis=1) / 2
    return out


def extended_em(rows, start, iterations, reg_covar):
    """The same EM written independently; yields the score after 0, 1, 2, ... passes."""
    rows = rows.astype(np.longdouble)
    weights, means, covariances = (np.asarray(start[key], dtype=np.longdouble)
                                   for key in ("weights", "means", "covariances"))
    scores = []
    for step in range(iterations + 1):
        joint = extended_log_joint(rows, weights, means, covariances)
        top = joint.max(axis=1, keepdims=True)
        log_rows = top[:, 0] + np.log(np.sum(np.exp(joint - top), axis=1))
        scores.append(np.mean(log_rows))
        if step == iterations:
            return scores, weights, means, covariances
        resp = np.exp(joint - log_rows[:, None])
        counts = resp.sum(axis=0)
        weights = counts / len(rows)
        means = (resp.T @ rows) / counts[:, None]
        covariances = np.array([
            ((rows - m).T * resp[:, k]) @ (rows - m) / counts[k] + np.longdouble(reg_covar) * np.eye(len(m))
            for k, m in enumerate(means)])


def em_case(name, seed, n, d, k, distance):
    rng = np.random.default_rng(seed)
    rows = standardised_rows(rng, n, d, k, distance)
    start = em_start(rng, rows, k)
    iterations, reg_covar = [1, 2, 5, 20], 1e-6
    models = [sklearn_em(rows, start, count, reg_covar) for count in iterations]
    scores = [model.score(rows) for model in models]
    last = models[-1]
    ours, weights, means, covariances = extended_em(rows, start, iterations[-1], reg_covar)
    np.testing.assert_allclose(scores, [float(ours[c]) for c in iterations], rtol=1e-12)
    for theirs, mine in ((last.weights_, weights), (last.means_, means), (last.covariances_, covariances)):
        np.testing.assert_allclose(theirs, mine.astype(float), rtol=1e-11, atol=1e-11)
    # Nothing is gained from a run that has already settled or collapsed.
    assert min(last.weights_) > 0.05 and scores[-1] - scores[0] > 1e-3
    return {"name": name, "n": n, "d": d, "k": k, "rows": rows, "start": start, "reg_covar": reg_covar,
            "start_mean_log_likelihood": float(ours[0]), "iterations": iterations,
            "mean_log_likelihood": scores,
            "final": {"weights": last.weights_, "means": last.means_, "covariances": last.covariances_}}


def make_em():
    cases = [em_case("n=300 d=2 k=2", 301, 300, 2, 2, 1.5),
             em_case("n=500 d=5 k=3", 302, 500, 5, 3, 1.2),
             em_case("n=200 d=1 k=2", 306, 200, 1, 2, 1.0)]
    write("em.json",
          "Batch EM by scikit-learn from the given start. One iteration is an E step then an M step; "
          "reg_covar is added as it is to every covariance diagonal in every M step. "
          "mean_log_likelihood[i] is the mean over rows under the parameters after iterations[i] "
          "iterations; final holds the parameters after the last of them. Rows are rounded after "
          "standardising, so the column sd is 1 only to about 1e-6.",
          {"cases": cases})
