"""Moments before and after a projection."""

import math
from fractions import Fraction

import numpy as np
import scipy.stats
from mpmath import mp

from makers.helpers import column, dyadic_simplex, outer, plain, random_covariance, square, trace, write


def updated(m, kappa, psi, nu, x):
    """The state after one row counts in full."""
    gap = x - m
    return m + gap / (kappa + 1), kappa + 1, psi + outer(gap) * (kappa / (kappa + 1)), nu + 1


def mixture_moments(parts):
    """Moments of a mixture of normal-Wishart states [(share, m, kappa, psi, nu)]."""
    d = parts[0][1].rows
    mean, mean_precision = mp.zeros(d, 1), mp.zeros(d, d)
    for share, m, _, psi, nu in parts:
        mean += share * m
        mean_precision += share * nu * psi ** -1
    mean_precision = (mean_precision + mean_precision.T) / 2
    inverse = mean_precision ** -1
    spread = whitened_variance = mp.mpf(0)
    for share, m, kappa, psi, nu in parts:
        w = psi ** -1
        gap = m - mean
        spread += share * (d / kappa + nu * (gap.T * w * gap)[0])
        # For W' = S W S with S S = E^-1, sum_ij W'_ij^2 = tr((E^-1 W)^2) and
        # sum_ij W'_ii W'_jj = tr(E^-1 W)^2, so no matrix root is needed.
        white = inverse * w
        within = nu * (trace(white * white) + trace(white) ** 2)
        off = nu * white - mp.eye(d)
        whitened_variance += share * (within + trace(off * off))
    return list(mean), mean_precision, spread, whitened_variance


def matching_states():
    """Random states (as doubles) with a row near and far from the centre."""
    rng = np.random.default_rng(501)
    for d in (1, 2, 4, 8):
        for kappa, excess, reach in ((0.5, 2.5, 1.0), (3.25, 6.0, 4.0), (200.0, 197.5, 2.0)):
            nu = d - 1 + excess
            m = np.round(rng.normal(size=d), 4)
            psi = random_covariance(rng, d, strength=nu)
            x = np.round(m + reach * rng.normal(size=d), 4)
            yield d, m, kappa, nu, psi, x


def check_by_draws(case, seed):
    """Monte Carlo: all four closed forms within five standard errors."""
    rng = np.random.default_rng(seed)
    d, r, kappa, nu = case["d"], case["r"], case["kappa"], case["nu"]
    m, x, psi = case["m"], case["x"], case["psi"]
    total = 200_000
    second = rng.binomial(total, r)
    gap = x - m
    parts = [(total - second, m, kappa, psi, nu),
             (second, m + gap / (kappa + 1), kappa + 1, psi + kappa / (kappa + 1) * np.outer(gap, gap), nu + 1)]
    mus, precisions = [], []
    for count, centre, k, p, df in parts:
        draws = scipy.stats.wishart(df=df, scale=np.linalg.inv(p)).rvs(count, random_state=rng)
        draws = draws.reshape(count, d, d)
        factors = np.linalg.cholesky(draws)
        noise = rng.normal(size=(count, d, 1)) / math.sqrt(k)
        mus.append(centre + np.linalg.solve(factors.transpose(0, 2, 1), noise)[:, :, 0])
        precisions.append(draws)
    mus, precisions = np.concatenate(mus), np.concatenate(precisions)
    mean, expected = np.array(plain(case["mean"])), np.array(plain(case["mean_precision"]))
    values, vectors = np.linalg.eigh(expected)
    root = (vectors / np.sqrt(values)) @ vectors.T
    off = root @ precisions @ root - np.eye(d)
    gaps = mus - mean
    samples = {"mean": (mus, mean), "mean_precision": (precisions, expected),
               "spread": (np.einsum("ni,nij,nj->n", gaps, precisions, gaps), float(case["spread"])),
               "whitened_variance": (np.sum(off ** 2, axis=(1, 2)), float(case["whitened_variance"]))}
    for what, (drawn, truth) in samples.items():
        errors = (drawn.mean(axis=0) - truth) / (drawn.std(axis=0) / math.sqrt(total))
        worst = float(np.max(np.abs(errors)))
        print(f"  {total} draws, d={d} r={r}: {what} is off by {worst:.2f} standard errors at most")
        assert worst < 5, (what, errors)


def normal_wishart_matching():
    cases = []
    for d, m, kappa, nu, psi, x in matching_states():
        for r in (0.0, 1e-6, 0.1, 0.5, 0.9, 1.0):
            state = column(m), mp.mpf(kappa), square(psi), mp.mpf(nu)
            after = updated(*state, column(x))
            mean, precision, spread, whitened = mixture_moments(
                [(1 - mp.mpf(r), *state), (mp.mpf(r), *after)])
            cases.append({"d": d, "m": m, "kappa": kappa, "nu": nu, "psi": psi, "x": x, "r": r,
                          "mean": mean, "mean_precision": precision, "spread": spread,
                          "whitened_variance": whitened})
    check_by_draws(next(c for c in cases if c["d"] == 2 and c["r"] == 0.5 and c["kappa"] == 3.25), 502)
    check_by_draws(next(c for c in cases if c["d"] == 4 and c["r"] == 0.1 and c["kappa"] == 3.25), 503)
    return cases


def dirichlet_mixture_moments(a, r):
    """Mean and variance per coordinate of sum_j r_j Dir(a + e_j), in fractions."""
    a, r = [Fraction(v) for v in a], [Fraction(v) for v in r]
    total = sum(a) + 1
    mean = [(v + p) / total for v, p in zip(a, r)]
    square_mean = [(p * (v + 1) * (v + 2) + (1 - p) * v * (v + 1)) / (total * (total + 1))
                   for v, p in zip(a, r)]
    return mean, [s - m * m for s, m in zip(square_mean, mean)]


def check_dirichlet_mixture(a, r, mean, variance):
    parts = [scipy.stats.dirichlet(np.array(a) + np.eye(len(a))[j]) for j in range(len(a))]
    means = np.array([p.mean() for p in parts])
    within = np.array([p.var() for p in parts])
    r = np.array(r)
    np.testing.assert_allclose(plain(mean), r @ means, rtol=1e-12)
    np.testing.assert_allclose(plain(variance), r @ (within + (means - r @ means) ** 2), rtol=1e-8)


def dirichlet_matching():
    rng = np.random.default_rng(504)
    cases = []
    for k in (2, 3, 6):
        for scale in (0.05, 1.0, 30.0, 1e6):
            a = [float(v) for v in np.round(scale * (0.1 + rng.gamma(1.5, 1.0, k)), 4)]
            certain = [1.0] + [0.0] * (k - 1)
            nearly = [1.0 - (k - 1) * 2.0 ** -30] + [2.0 ** -30] * (k - 1)
            for r in (dyadic_simplex(rng, k), dyadic_simplex(rng, k, concentration=0.2), certain, nearly):
                r = [float(v) for v in r]
                assert sum(Fraction(v) for v in r) == 1
                mean, variance = dirichlet_mixture_moments(a, r)
                check_dirichlet_mixture(a, r, mean, variance)
                cases.append({"k": k, "a": a, "r": r, "mean": mean, "variance": variance})
    return cases


def make_matching():
    write("matching.json",
          "normal_wishart: exact moments of (1-r) NW(m,kappa,psi,nu) + r NW(after one row x), psi being "
          "the inverse of the Wishart scale; mean = E[mu], mean_precision = E[lambda], spread = "
          "E[(mu-mean)^T lambda (mu-mean)], whitened_variance = sum_ij Var[(S lambda S)_ij] with "
          "S = mean_precision^(-1/2). mpmath with 50 digits. dirichlet: mean and variance per coordinate of "
          "sum_j r_j Dir(a + e_j), from exact fractions.",
          {"normal_wishart": normal_wishart_matching(), "dirichlet": dirichlet_matching()})
