"""Rows of any kind as arrays, with every check."""

from __future__ import annotations

import sys
from numbers import Real

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from gmm_bmm import _core

_KNOWN_FRAMES = {"pandas", "polars", "pyarrow"}
"""Libraries whose frames every version of scikit-learn reads with the names of their columns."""


_ENGINES = {
    "dask": "gmm_bmm.dask.fit",
    "dask_expr": "gmm_bmm.dask.fit",
    "pyspark": "gmm_bmm.spark.OnlineGaussianMixture",
    "ray": "gmm_bmm.ray.fit",
}
"""Libraries whose collections are not collected silently, and what learns them."""


def as_rows(estimator, X, *, reset: bool, gaps: bool, **checks) -> np.ndarray:
    """X as an array of doubles, where a missing value is NaN.

    Names of columns are kept and checked as scikit-learn does. Missing values are refused unless ``gaps`` allows them, and so
    are values beyond the range that the command ``gmm-bmm`` reads.
    """
    if not (reset or checks) and is_plain(estimator, X) and _core.first_unusable(X, gaps) is None:
        return X
    if isinstance(X, list | tuple) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        X = np.ma.stack(X)  # NumPy would ignore the masks.
    masked = isinstance(X, np.ma.MaskedArray) and bool(np.ma.getmaskarray(X).any())
    X = _readable(X)
    try:
        array = validate_data(estimator, X, reset=reset, dtype=np.float64, order="C", ensure_all_finite=False, **checks)
    except ValueError as error:
        word = _first_word(X) if "could not convert" in str(error) else None
        if word is None:
            raise
        name, row = word
        raise ValueError(
            f"{error} (column {name!r}, row {row}, rows count from 0): leave out columns of text, or make them numbers"
        ) from error
    # Arrays in messages of Dask begin at any byte, which scikit-learn leaves as it is.
    array = np.require(array, requirements="A")
    place = _core.first_unusable(array, gaps)
    if place is not None:
        raise ValueError(refusal(estimator, array, place, masked))
    return array


def is_plain(estimator, X) -> bool:
    """Whether X needs no conversion and passes every check but that of its values."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.flags.c_contiguous
        and X.flags.aligned
        and X.shape[0] > 0
        and X.shape[1] == getattr(estimator, "n_features_in_", None)
        and not hasattr(estimator, "feature_names_in_")
    )


def _readable(X):
    """X in a form that scikit-learn reads with the names of its columns and without its masked values."""
    if isinstance(X, np.ma.MaskedArray):
        if X.dtype.kind == "c":
            return np.asarray(X)  # scikit-learn refuses it.
        return X.astype(np.float64 if X.dtype.kind in "biuf" else object).filled(np.nan)
    package = type(X).__module__.partition(".")[0]
    if package in _ENGINES:
        learns = _ENGINES[package]
        raise TypeError(f"X is a {type(X).__name__} of {package}, whose rows are in many places: {learns} learns it")
    if not hasattr(X, "__array__") and callable(getattr(X, "collect", None)):
        raise TypeError(f"X is a {type(X).__name__}, whose rows are not computed yet: pass X.collect()")
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([X])
    if hasattr(X, "__dataframe__") and type(X).__module__.partition(".")[0] not in _KNOWN_FRAMES:
        try:
            from pyarrow.interchange import from_dataframe
        except ImportError:
            return X
        return from_dataframe(X)
    return X


def _first_word(X) -> tuple[str, int] | None:
    """The first column of a data frame of pandas or polars that has a value other than a number, and the row of that value."""
    if type(X).__module__.partition(".")[0] not in ("pandas", "polars"):
        return None
    for name in X.columns:
        for row, value in enumerate(X[name].to_numpy()):
            try:
                float(value)
            except ValueError:
                return name, row
            except TypeError:
                continue
    return None


def as_weights(sample_weight, X: np.ndarray) -> np.ndarray | None:
    """One weight for each row of X, or ``None`` without weights. Weights that no row can have are refused with their row."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(len(X), float(sample_weight))
    weights = check_array(
        sample_weight, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, ensure_min_samples=0, input_name="sample_weight"
    )
    if weights.shape != (len(X),):
        raise ValueError(f"sample_weight has the shape {weights.shape}, and X has {len(X)} rows: one weight for each row is needed")
    wrong = np.flatnonzero(~((weights >= 0) & (weights <= _MAX_WEIGHT)))
    if wrong.size:
        raise ValueError(
            f"sample_weight has {weights[wrong[0]]:g} in row {wrong[0]} (rows count from 0): a weight must be 0 or above, and at "
            f"most {_MAX_WEIGHT:g}. Negative values, NaN and infinity are no weights."
        )
    return np.require(weights, requirements=["A", "C"])


_MAX_WEIGHT = 1e10


def count_rows(X: np.ndarray, weights: np.ndarray | None) -> int:
    """The number of rows that count, of which there must be one."""
    count = len(X) if weights is None else int(np.count_nonzero(weights))
    if not count:
        raise ValueError("each sample_weight is zero, so there is no row to learn: at least one weight must be above zero")
    return count


def refusal(estimator, array: np.ndarray, place: tuple[int, int], masked: bool = False) -> str:
    """What is wrong with the value at a place."""
    row, column = place
    names = getattr(estimator, "feature_names_in_", None)
    where = f"in row {row}, column {column if names is None else repr(names[column])} (rows count from 0)"
    value = array[row, column]
    if np.isnan(value):
        what = "a masked value" if masked else "NaN"
        return (
            f"Input X contains {what} {where}. {type(estimator).__name__}(missing='marginal') takes it as a missing value, "
            "and learns and scores a row by the values that it has."
        )
    what = "infinity" if np.isinf(value) else f"the value {value:g}"
    return (
        f"Input X contains {what} {where}. Values beyond {_core.MAX_VALUE:g} are refused, since sums of their squares "
        "overflow."
    )
