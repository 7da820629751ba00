"""Covariances in the shapes of scikit-learn, and mixtures that a pass begins from."""

from __future__ import annotations

import numpy as np

from gmm_bmm._components import bounds


def counted_rows(k: int, d: int) -> int:
    """Rows that a given mixture counts for: those of the prior of each component."""
    return k * max(8, d // 4)


def roots(mixture):
    """What multiplies standard normal rows for each component: a triangle, standard deviations, or one of them."""
    covariances = mixture.covariances
    match mixture.covariance_type:
        case "full":
            return np.linalg.cholesky(covariances)
        case "tied":
            return [np.linalg.cholesky(covariances)] * mixture.weights.size
        case _:
            return np.sqrt(covariances)


def correlated(rows, root):
    return rows @ root.T if root.ndim == 2 else rows * root


def beginning(weights, means, covariances):
    """Arrays as the extension module takes them."""
    weights = np.asarray(weights, dtype=np.float64)
    arrays = (weights / weights.sum(), means, covariances)
    return tuple(np.ascontiguousarray(array, dtype=np.float64) for array in arrays)


def initial(estimator, X):
    """The mixture of ``weights_init``, ``means_init`` and ``precisions_init``."""
    means = np.asarray(estimator.means_init, dtype=np.float64)
    if means.ndim != 2 or means.shape[1] != X.shape[1]:
        raise ValueError(f"means_init must have the shape (n_components, {X.shape[1]}), not {means.shape}")
    k = means.shape[0]
    low, high, learned = bounds(estimator.n_components)
    if not low <= k <= high or low != high and not learned:
        raise ValueError(f"means_init has {k} rows, and n_components={estimator.n_components!r} does not allow for them")
    weights = np.full(k, 1.0 / k) if estimator.weights_init is None else np.asarray(estimator.weights_init, dtype=np.float64)
    if weights.shape != (k,):
        raise ValueError(f"weights_init must have the shape ({k},), like the rows of means_init, not {weights.shape}")
    if not (np.all(weights >= 0) and np.isclose(weights.sum(), 1.0)):
        raise ValueError(f"weights_init must not be negative, and must sum to 1; they sum to {weights.sum():g}")
    if estimator.precisions_init is not None:
        precisions = np.asarray(estimator.precisions_init, dtype=np.float64)
        return beginning(weights, means, inverted(precisions, estimator.covariance_type))
    return beginning(weights, means, around(X, means, estimator.covariance_type))


def inverted(precisions, kind):
    if kind in ("diag", "spherical"):
        if not np.all(precisions > 0):
            raise ValueError("precisions_init must be positive")
        return 1.0 / precisions
    try:
        np.linalg.cholesky(precisions)
        return np.linalg.inv(precisions)
    except np.linalg.LinAlgError:
        raise ValueError("precisions_init must be positive definite") from None


def around(X, means, kind):
    """The covariances of rows with the nearest mean. Each has as many rows of the covariance of all again."""
    d = X.shape[1]
    units = np.nanstd(X, axis=0)
    units = np.where(units > 0, units, 1.0)
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    nearest = np.argmin([(((filled - mean) / units) ** 2).sum(axis=1) for mean in means], axis=0)
    away = filled - means[nearest]
    if kind == "tied":
        return away.T @ away / len(X) + 1e-6 * np.diag(units**2)
    pooled = away.T @ away / len(X) if kind == "full" else (away**2).mean(axis=0)
    found = []
    for j in range(len(means)):
        own = away[nearest == j]
        square = own.T @ own if kind == "full" else (own**2).sum(axis=0)
        found.append((square + d * pooled) / (len(own) + d))
    ridge = 1e-6 * (np.diag(units**2) if kind == "full" else units**2)
    covariances = np.array(found) + ridge
    return covariances.mean(axis=1) if kind == "spherical" else covariances
