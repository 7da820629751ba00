"""Log densities and their moments."""

import math

import numpy as np
import scipy.special
import scipy.stats
from mpmath import mp

from makers.helpers import (
    assert_close, column, condition, dyadic_simplex, log_det, plain, quadratic,
    random_covariance, square, trace, write,
)


def log_gaussian(x, mean, covariance):
    d = x.rows
    return -(d * mp.log(2 * mp.pi) + log_det(covariance) + quadratic(covariance, x - mean)) / 2


def log_student(x, location, scale, dof):
    d = x.rows
    dof = mp.mpf(dof)
    return (
        mp.loggamma((dof + d) / 2) - mp.loggamma(dof / 2)
        - mp.mpf(d) / 2 * mp.log(dof * mp.pi) - log_det(scale) / 2
        - (dof + d) / 2 * mp.log1p(quadratic(scale, x - location) / dof)
    )


def log_wishart_from_psi(precision, psi, nu):
    """Wishart density with scale matrix psi^-1."""
    d = psi.rows
    nu = mp.mpf(nu)
    log_multigamma = mp.mpf(d * (d - 1)) / 4 * mp.log(mp.pi) + mp.fsum(
        mp.loggamma((nu - j) / 2) for j in range(d))
    return (
        (nu - d - 1) / 2 * log_det(precision) - trace(psi * precision) / 2
        + nu / 2 * log_det(psi) - nu * d / 2 * mp.log(2) - log_multigamma
    )


def log_normal_wishart(mu, precision, m, kappa, psi, nu):
    d = mu.rows
    kappa = mp.mpf(kappa)
    delta = mu - m
    log_normal = (
        d * mp.log(kappa / (2 * mp.pi)) + log_det(precision)
        - kappa * (delta.T * precision * delta)[0]
    ) / 2
    return log_normal + log_wishart_from_psi(precision, psi, nu)


def gaussian_case(name, mean, covariance, x):
    value = log_gaussian(column(x), column(mean), square(covariance))
    cond = condition(covariance)
    assert_close(value, scipy.stats.multivariate_normal(mean, covariance).logpdf(x),
                 name, rtol=max(1e-8, 1e-15 * cond))
    return {"name": name, "d": len(x), "mean": mean, "covariance": covariance, "x": x,
            "log_density": value, "condition": cond, "source": "mpmath"}


def ill_conditioned(rng, d, ratio):
    """Rotated, so that no rescaling of the axes makes the matrix harmless."""
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    a = (rotation * np.geomspace(1.0, 1.0 / ratio, d)) @ rotation.T
    return (a + a.T) / 2


def gaussian_cases():
    rng = np.random.default_rng(101)
    cases = []
    for d in (1, 2, 3, 5, 10, 20):
        for kind, strength, reach in (("plain", 1.0, 1.0), ("tight", 0.01, 0.3), ("far", 3.0, 30.0)):
            mean = np.round(rng.normal(size=d) * 2, 4)
            x = np.round(mean + reach * rng.normal(size=d), 4)
            cases.append(gaussian_case(f"{kind} d={d}", mean, random_covariance(rng, d, strength), x))
    for d in (2, 5, 10):
        covariance = ill_conditioned(rng, d, 1e8)
        mean = np.round(rng.normal(size=d), 4)
        # A row drawn from the distribution itself keeps the squared distance
        # near d; an arbitrary row would make the density astronomically small.
        x = mean + np.linalg.cholesky(covariance) @ rng.normal(size=d)
        cases.append(gaussian_case(f"ill-conditioned d={d}", mean, covariance, x))
    # Condition 1e8 only through the units of the columns: harmless for Cholesky.
    units = np.array([1e4, 1.0, 1.0])
    covariance = random_covariance(rng, 3) * np.outer(units, units)
    cases.append(gaussian_case("badly scaled d=3", np.zeros(3), covariance, np.array([1234.5, -0.75, 1.5])))
    return cases


def student_cases():
    rng = np.random.default_rng(102)
    cases = []
    dofs = (0.7, 1.0, 2.5, 7.0, 33.3, 1e3, 1e6)
    for d in (1, 2, 3, 5, 10, 20):
        for i, dof in enumerate(dofs):
            if d == 20 and i % 3:
                continue  # three large matrices are enough
            location = np.round(rng.normal(size=d) * 2, 4)
            reach = 1.0 if i % 2 == 0 else 20.0
            x = np.round(location + reach * rng.normal(size=d), 4)
            scale = random_covariance(rng, d)
            value = log_student(column(x), column(location), square(scale), dof)
            assert_close(value, scipy.stats.multivariate_t(location, scale, df=dof).logpdf(x), (d, dof))
            cases.append({"d": d, "location": location, "scale": scale, "dof": dof, "x": x,
                          "log_density": value, "condition": condition(scale), "source": "mpmath"})
    return cases


def dirichlet_cases():
    rng = np.random.default_rng(103)
    alphas = [[1.0, 1.0], [0.5, 0.5], [0.05, 3.0], [2.0, 3.0, 4.0], [0.1, 0.2, 0.3],
              [12345.0, 54321.0, 100000.5], [1.0] * 6,
              list(np.round(rng.gamma(2.0, 2.0, size=6) + 0.1, 3)),
              list(np.round(rng.gamma(2.0, 20.0, size=10) + 0.1, 3))]
    cases = []
    for alpha in alphas:
        for concentration in (0.4, 8.0):
            w = dyadic_simplex(rng, len(alpha), concentration=concentration)
            a, total = column(alpha), mp.fsum(column(alpha))
            value = (mp.loggamma(total) - mp.fsum(mp.loggamma(v) for v in a)
                     + mp.fsum((v - 1) * mp.log(p) for v, p in zip(a, column(w))))
            dist = scipy.stats.dirichlet(alpha)
            assert_close(value, dist.logpdf(w), alpha)
            mean = [v / total for v in a]
            variance = [v * (total - v) / (total ** 2 * (total + 1)) for v in a]
            np.testing.assert_allclose(plain(mean), dist.mean(), rtol=1e-12)
            np.testing.assert_allclose(plain(variance), dist.var(), rtol=1e-10)
            cases.append({"alpha": alpha, "w": w, "log_density": value, "mean": mean,
                          "variance": variance, "source": "mpmath"})
    return cases


def normal_wishart_cases():
    rng = np.random.default_rng(104)
    cases = []
    for d in (1, 2, 3, 5, 10):
        for kappa, excess in ((0.01, 0.25), (1.0, 2.0), (17.5, 30.5), (1e4, 1e4)):
            nu = d - 1 + excess
            m = np.round(rng.normal(size=d), 4)
            mu = np.round(m + rng.normal(size=d) / math.sqrt(kappa), 4)
            precision = random_covariance(rng, d)
            psi = random_covariance(rng, d, strength=nu)
            value = log_normal_wishart(column(mu), square(precision), column(m), kappa, square(psi), nu)
            w = np.linalg.inv(psi)
            normal = scipy.stats.multivariate_normal(m, np.linalg.inv(kappa * precision)).logpdf(mu)
            # The inverse is symmetric only up to rounding; even it out.
            wishart = scipy.stats.wishart(df=nu, scale=(w + w.T) / 2).logpdf(precision)
            assert_close(value, normal + wishart, ("normal-wishart", d, kappa))
            cases.append({"d": d, "m": m, "kappa": kappa, "nu": nu, "psi": psi, "mu": mu,
                          "lambda": precision, "log_density": value, "source": "mpmath"})
    return cases


def mixture_cases():
    rng = np.random.default_rng(105)
    cases = []
    for d, k in ((1, 2), (2, 1), (2, 3), (3, 4), (5, 3), (10, 2)):
        weights = dyadic_simplex(rng, k)
        means = np.round(rng.normal(size=(k, d)) * 2, 4)
        covariances = [random_covariance(rng, d) for _ in range(k)]
        # The last reach makes every component's density underflow in linear
        # space, so only a log-sum-exp gets it right.
        for reach in (1.0, 5.0, 200.0):
            x = np.round(means[0] + reach * (0.5 + rng.random(d)), 4)
            terms = [mp.log(mp.mpf(float(w))) + log_gaussian(column(x), column(m), square(c))
                     for w, m, c in zip(weights, means, covariances)]
            value = mp.log(mp.fsum(mp.exp(t) for t in terms))
            check = scipy.special.logsumexp(
                [math.log(w) + scipy.stats.multivariate_normal(m, c).logpdf(x)
                 for w, m, c in zip(weights, means, covariances)])
            assert_close(value, check, ("mixture", d, k))
            cases.append({"weights": weights, "means": means, "covariances": covariances, "x": x,
                          "log_density": value, "source": "mpmath"})
    return cases


def make_densities():
    write("densities.json",
          "Log densities and moments at exactly the stored doubles. condition is the ratio of the "
          "extreme eigenvalues of the matrix: a double evaluation may lose about that factor times "
          "1e-16 of the squared distance. student_t.scale is the shape matrix, not the covariance. "
          "normal_wishart: log N(mu | m, (kappa lambda)^-1) + log Wishart(lambda | psi^-1, nu).",
          {"gaussian": gaussian_cases(), "student_t": student_cases(), "dirichlet": dirichlet_cases(),
           "normal_wishart": normal_wishart_cases(), "mixture": mixture_cases()})
