"""Differences of log-gamma."""

import math

import numpy as np
import scipy.special
from mpmath import mp

from makers.helpers import assert_close, write


def check_ratio(x, d, value):
    top, bottom = scipy.special.gammaln(x + d / 2), scipy.special.gammaln(x)
    # The difference of two large logarithms is only as good as their last bits.
    assert_close(value, top - bottom, (x, d), atol=1e-8 + 1e-15 * (abs(top) + abs(bottom)))
    if d % 2 == 0:
        # For a whole step the ratio is the product x (x+1) ... (x+d/2-1).
        product = math.fsum(math.log(x + i) for i in range(d // 2))
        assert_close(value, product, (x, d, "product"), rtol=1e-12, atol=1e-12)


def make_log_gamma_ratio():
    rng = np.random.default_rng(201)
    dense = np.round(0.5 + 49.5 * np.sort(rng.random(50)) ** 1.5, 3)
    chosen = [0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 7.5, 10.0, 15.5, 25.25, 50.0]
    spaced = np.geomspace(50.0, 1e12, 32)[1:]
    xs = sorted({float(x) for x in [*chosen, *dense, *spaced]})
    cases = []
    for d in (1, 2, 3, 8, 10, 22, 50, 91, 200):
        for x in xs:
            exact = mp.mpf(x)
            value = mp.loggamma(exact + mp.mpf(d) / 2) - mp.loggamma(exact)
            check_ratio(x, d, value)
            cases.append({"x": x, "d": d, "value": value})
    write("log_gamma_ratio.json",
          "value = lgamma(x + d/2) - lgamma(x), by mpmath with 50 digits at exactly the stored x.",
          {"cases": cases}, per_line=2)
