"""The signed-rank test."""

from fractions import Fraction

import numpy as np
import scipy.stats
from mpmath import mp

from makers.helpers import assert_close, plain, write


def from_recipe(n, s, m, c, q):
    return [((i * 7919 + 104729 * s) % m - c) / q for i in range(n)]


def doubled_ranks(magnitudes):
    """Twice the average ranks (whole numbers) and the sizes of the tied groups."""
    order = sorted(range(len(magnitudes)), key=magnitudes.__getitem__)
    ranks, groups, first = [0] * len(magnitudes), [], 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and magnitudes[order[last + 1]] == magnitudes[order[first]]:
            last += 1
        for place in range(first, last + 1):
            ranks[order[place]] = first + last + 2
        groups.append((magnitudes[order[first]], last - first + 1))
        first = last + 1
    return ranks, groups


def signed_rank_sums(used):
    """r_plus, r_minus, null mean and null variance, all exact."""
    ranks, groups = doubled_ranks([abs(v) for v in used])
    plus = Fraction(sum(r for r, v in zip(ranks, used) if v > 0), 2)
    minus = Fraction(sum(r for r, v in zip(ranks, used) if v < 0), 2)
    n = len(used)
    mean = Fraction(n * (n + 1), 4)
    tied = sum(t ** 3 - t for _, t in groups)
    variance = Fraction(2 * n * (n + 1) * (2 * n + 1) - tied, 48)
    return plus, minus, mean, variance


def exact_p(n, smaller):
    """Two-sided: count the sign patterns whose rank sum is at most the smaller one."""
    ways = [1] + [0] * (n * (n + 1) // 2)
    for rank in range(1, n + 1):
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    return min(Fraction(1), Fraction(2 * sum(ways[: int(smaller) + 1]), 2 ** n))


def normal_p(plus, mean, variance):
    """z of r_plus (signed, moved half a step towards 0) and its two-sided p."""
    gap = plus - mean
    if gap != 0:
        gap -= Fraction(1, 2) if gap > 0 else -Fraction(1, 2)
    z = mp.mpf(gap.numerator) / gap.denominator / mp.sqrt(mp.mpf(variance.numerator) / variance.denominator)
    return z, mp.erfc(abs(z) / mp.sqrt(2))


def wilcoxon_case(name, differences, recipe, method):
    used = [v for v in differences if v != 0]
    plus, minus, mean, variance = signed_rank_sums(used)
    if method == "exact":
        z, p = None, exact_p(len(used), min(plus, minus))
    else:
        z, p = normal_p(plus, mean, variance)
    theirs = scipy.stats.wilcoxon(used, zero_method="wilcox", correction=method == "normal",
                                  method="exact" if method == "exact" else "asymptotic")
    assert theirs.statistic == float(min(plus, minus)), name
    assert_close(float(plain(p)), theirs.pvalue, (name, method), atol=1e-300)
    case = {"name": name, "n": len(differences)}
    case["differences" if recipe is None else "recipe"] = differences if recipe is None else recipe
    case.update({"method": method, "statistic": min(plus, minus), "r_plus": plus, "r_minus": minus, "p_value": p,
                 "source": "fractions" if method == "exact" else "mpmath"})
    if z is not None:
        case["z"] = z
    return case


def wilcoxon_of(name, differences, recipe=None):
    """The test that the library makes of the sample: exact for few differences without ties."""
    zeros = any(v == 0 for v in differences)
    magnitudes = [abs(v) for v in differences if v != 0]
    ties = len(set(magnitudes)) < len(magnitudes)
    assert zeros == ("zeros" in name) and ties == ("ties" in name), (name, zeros, ties)
    few = sum(v != 0 for v in differences) <= 50
    return wilcoxon_case(name, differences, recipe, "exact" if few and not ties else "normal")


def small_wilcoxon_samples():
    """Samples short enough to be stored."""
    rng = np.random.default_rng(401)
    samples = [("one positive", [0.25]), ("one negative", [-3.5]), ("two apart", [1.5, -0.5]),
               ("all positive n=5", [0.1, 0.2, 0.3, 0.4, 0.5]),
               ("balanced n=3", [1.0, 2.0, -3.0]),
               ("ties n=2", [1.0, -1.0]), ("ties n=4", [0.5, 0.5, -0.5, 1.5]),
               ("zeros n=3", [0.0, 2.0, -1.0]), ("zeros n=4", [0.0, 0.0, 0.0, 1.25]),
               ("zeros and ties n=6", [0.0, 1.0, -1.0, 1.0, 0.0, 2.0]),
               ("zeros and ties n=9", [0.0, -0.0, 0.25, -0.25, 0.25, 0.5, 0.5, 1.0, -2.0])]
    for n in (6, 8, 10, 13, 20, 25, 26, 35, 50):
        for shift in (0.0, 0.5):
            samples.append((f"random n={n} shift={shift}", [float(v) for v in np.round(rng.normal(shift, 1.0, n), 6)]))
    samples.append(("all positive n=50", [float(i) for i in range(1, 51)]))
    for n in (8, 15, 40):
        values = rng.choice([-3, -2, -1, 1, 2, 3, 4], size=n) / 8
        samples.append((f"ties n={n}", [float(v) for v in values]))
        values = np.append(rng.choice([-3, -2, -1, 0, 1, 2, 3, 4], size=n - 1), 0) / 8
        samples.append((f"zeros and ties n={n}", [float(v) for v in values]))
    return samples


def recipe_wilcoxon_samples():
    """Samples that Rust makes anew from five whole numbers."""
    return [
        ("recipe n=50", dict(n=50, s=1, m=1000003, c=400000, q=1000)),
        ("recipe n=100", dict(n=100, s=2, m=1000003, c=450000, q=1000)),
        ("recipe n=200 shifted", dict(n=200, s=3, m=1000003, c=300000, q=64)),
        ("recipe n=1000", dict(n=1000, s=1, m=1000003, c=495001, q=1000)),
        ("recipe n=1000 tiny p", dict(n=1000, s=1, m=1000003, c=150001, q=7)),
        ("recipe n=10000", dict(n=10000, s=5, m=1000003, c=497501, q=1000)),
        ("recipe n=10000 tiny p", dict(n=10000, s=5, m=1000003, c=400001, q=1000)),
        # Here p is below the smallest double and is stored as 0.
        ("recipe n=10000 p underflows", dict(n=10000, s=5, m=1000003, c=1001, q=1000)),
        # 7919 divides m, so only 20 values occur, none of them c.
        ("recipe ties n=1000", dict(n=1000, s=1, m=158380, c=75000, q=1000)),
        ("recipe ties n=10000", dict(n=10000, s=1, m=158380, c=80000, q=3)),
        ("recipe zeros and ties n=60", dict(n=60, s=1, m=17, c=8, q=4)),
        ("recipe zeros and ties n=1000", dict(n=1000, s=2, m=101, c=48, q=10)),
        ("recipe zeros and ties n=10000", dict(n=10000, s=3, m=101, c=50, q=10)),
        ("recipe zeros and ties n=10000 mostly zero", dict(n=10000, s=3, m=3, c=1, q=1)),
        ("recipe zeros and ties n=10000 tiny p", dict(n=10000, s=3, m=1009, c=380, q=10)),
    ]


def make_wilcoxon():
    cases = [wilcoxon_of(name, differences) for name, differences in small_wilcoxon_samples()]
    cases += [wilcoxon_of(name, from_recipe(**recipe), recipe) for name, recipe in recipe_wilcoxon_samples()]
    write("wilcoxon.json",
          "Two-sided signed-rank tests as in scipy.stats.wilcoxon. A case has either differences or "
          "recipe {n,s,m,c,q}: difference i, for i = 0..n-1, is ((i*7919 + 104729*s) mod m - c) / q, in "
          "whole numbers up to the one final division in doubles. statistic is the smaller rank sum. "
          "z (method normal only) belongs to r_plus, with the half-step correction towards 0; "
          "p_value = erfc(|z|/sqrt 2).",
          {"cases": cases})
