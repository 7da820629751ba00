"""Writing the files, and matrices of 50 digits."""

import json
import platform
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import scipy
import sklearn
from mpmath import mp

FOLDER = Path(__file__).resolve().parent.parent
mp.dps = 50


def write(name, description, sections, per_line=1):
    """Write one file: one case per line, or a few short ones, keeps it small yet diffs readable."""
    head = {
        "made_by": "tests/reference/make_reference.py",
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "mpmath": mpmath.__version__,
        },
        "description": description,
    }
    parts = [f"{json.dumps(k)}:{compact(v)}" for k, v in head.items()]
    for key, cases in sections.items():
        texts = [compact(c) for c in cases]
        lines = ",\n".join(",".join(texts[i:i + per_line]) for i in range(0, len(texts), per_line))
        parts.append(f"{json.dumps(key)}:[\n{lines}\n]")
    path = FOLDER / name
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    print(f"{name:22s} {path.stat().st_size:8d} bytes  "
          + ", ".join(f"{k}: {len(v)}" for k, v in sections.items()))


def compact(value):
    # json prints floats by repr, which is the shortest text that reads back
    # as the same double.
    return json.dumps(plain(value), separators=(",", ":"), allow_nan=False)


def plain(value):
    """Turn numpy, mpmath and fraction values into what json understands."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(v) for v in value]
    if isinstance(value, mp.matrix):
        # Vectors are turned into lists by their maker: by shape alone a
        # vector of one entry could not be told from a matrix of one.
        return [[plain(value[i, j]) for j in range(value.cols)] for i in range(value.rows)]
    if isinstance(value, mp.mpf):
        # Going by decimal text rounds to nearest whatever mpmath's own
        # conversion does.
        return float(mp.nstr(value, 40))
    if isinstance(value, (np.floating, Fraction)):
        return float(value)
    if isinstance(value, np.integer):
        return int(value)
    return value


def assert_close(ours, scipys, what, rtol=1e-8, atol=1e-8):
    ours, scipys = float(ours), float(scipys)
    assert abs(ours - scipys) <= atol + rtol * abs(ours), (what, ours, scipys)


def column(values):
    return mp.matrix([mp.mpf(float(v)) for v in values])


def square(values):
    return mp.matrix([[mp.mpf(float(v)) for v in row] for row in values])


def outer(v):
    return v * v.T


def trace(a):
    return mp.fsum(a[i, i] for i in range(a.rows))


def log_det(a):
    factor = mp.cholesky(a)  # raises unless positive definite
    return 2 * mp.fsum(mp.log(factor[i, i]) for i in range(a.rows))


def quadratic(a, v):
    """v^T a^-1 v"""
    return (v.T * mp.lu_solve(a, v))[0]


def random_covariance(rng, d, strength=1.0, decimals=4):
    """A random symmetric positive definite matrix of few decimals."""
    factor = rng.normal(size=(d, d + 2))
    a = strength * (factor @ factor.T / (d + 2) + 0.2 * np.eye(d))
    a = np.round(a, decimals)
    return np.triu(a) + np.triu(a, 1).T


def condition(a):
    values = mp.eigsy(square(a), eigvals_only=True)
    return float(max(values) / min(values))


def dyadic_simplex(rng, k, bits=20, concentration=1.0):
    """k positive doubles whose sum is exactly 1 however they are added."""
    whole = 1 << bits
    shares = rng.dirichlet(np.full(k, concentration))
    counts = np.maximum(1, np.floor(shares * whole).astype(int))
    counts[np.argmax(counts)] += whole - counts.sum()
    return counts / whole
