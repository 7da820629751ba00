"""Draws the pictures of docs/CONCEPTS.md from fits of this program. Needs the Python package and matplotlib.

    python scripts/make_pictures.py
"""

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("svg")
import matplotlib.pyplot as plt
from gmm_bmm import OnlineGaussianMixture
from sklearn.mixture import GaussianMixture

DOCS = Path(__file__).resolve().parents[1] / "docs"
COLOURS = ["#3f51b5", "#e6550d", "#31a354", "#c51b8a", "#756bb1", "#636363"]
plt.rcParams.update({"svg.hashsalt": "gmm-bmm", "svg.fonttype": "none", "font.size": 10, "font.family": "sans-serif",
                     "axes.spines.top": False, "axes.spines.right": False})


def save(figure, name):
    figure.tight_layout()
    figure.savefig(DOCS / f"concepts-{name}.svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)


def ellipses(axes, mixture, colours=COLOURS):
    angles = np.linspace(0, 2 * np.pi, 60)
    circle = np.array([np.cos(angles), np.sin(angles)])
    for mean, covariance, colour in zip(mixture.means_, mixture.covariances_, np.resize(colours, mixture.means_.shape[0])):
        x, y = mean[:, None] + 2 * np.linalg.cholesky(covariance) @ circle
        axes.plot(x, y, color=colour, linewidth=2)


def points(axes, rows, most=350):
    axes.plot(*rows[:most].T, ".", color="#9e9e9e", markersize=3, rasterized=False, zorder=0)
    axes.set(xticks=[], yticks=[])


def clusters(rng, labels):
    centres = np.array([[0, 0], [5, 1], [1, 6], [9, 8], [11.5, 6]])
    shapes = np.array([[[1.5, 0.6], [0.6, 0.8]], [[0.8, -0.5], [-0.5, 1.2]], [[1.2, 0], [0, 0.6]], [[0.6, 0.3], [0.3, 0.6]],
                       [[0.5, -0.2], [-0.2, 0.5]]])
    factors = np.linalg.cholesky(shapes)
    return centres[labels] + np.einsum("nij,nj->ni", factors[labels], rng.standard_normal((labels.size, 2)))


def start(rng):
    rows = clusters(rng, rng.integers(3, size=20_000))
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8))
    points(left, rows)
    left.set_title("the first rows")
    points(right, rows)
    ellipses(right, OnlineGaussianMixture(3, random_state=0).partial_fit(rows[:5000]))
    right.set_title("the start")
    save(figure, "start")


def learning(rng):
    labels = rng.choice(3, size=60_000, p=[0.6, 0.3, 0.1])
    rows, test = clusters(rng, labels)[:, :], clusters(rng, rng.choice(3, size=20_000, p=[0.6, 0.3, 0.1]))
    mixture = OnlineGaussianMixture(3, start_rows=100, effort="fast", random_state=0)
    counts, scores = [], []
    for batch in np.split(rows, np.unique(np.geomspace(100, 60_000, 60).astype(int)))[:-1]:
        mixture.partial_fit(batch)
        counts.append(mixture.n_samples_seen_)
        scores.append(mixture.score(test))
    figure, axes = plt.subplots(figsize=(7, 2.8))
    axes.semilogx(counts, scores, color=COLOURS[0])
    axes.axhline(GaussianMixture(3, random_state=0).fit(rows).score(test), color=COLOURS[1], linestyle="--")
    axes.text(counts[0], GaussianMixture(3, random_state=0).fit(rows).score(test), "batch EM on all rows", va="bottom", color=COLOURS[1])
    axes.set(xlabel="rows learned", ylabel="held-out log-likelihood")
    save(figure, "pass")


def revision(rng):
    rows = clusters(rng, np.concatenate([rng.integers(3, size=20_000), rng.integers(5, size=20_000)]))
    pass_only = OnlineGaussianMixture(3, effort="fast", random_state=0).fit(rows)
    revised = OnlineGaussianMixture(random_state=0)
    for batch in np.split(rows, 40):
        revised.partial_fit(batch)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8))
    for axes, mixture, title in ((left, pass_only, "without revisions"), (right, revised.finish(), "with revisions")):
        points(axes, rows[::-1])
        ellipses(axes, mixture)
        axes.set_title(title)
    save(figure, "revision")


def prior(rng):
    d, k = 40, 4
    factor = np.linalg.cholesky(0.7 * np.ones((d, d)) + 0.3 * np.eye(d))
    centres = rng.standard_normal((k, d)) * 1.5
    draw = lambda n: centres[rng.integers(k, size=n)] + rng.standard_normal((n, d)) @ factor.T  # noqa: E731
    test, sizes = draw(5000), [250, 500, 1000, 2000, 4000, 8000, 16000]
    learned, weak = [], []
    for n in sizes:
        rows = draw(n)
        learned.append(OnlineGaussianMixture(k, random_state=0).fit(rows).score(test))
        weak.append(max(GaussianMixture(k, random_state=0, n_init=3, reg_covar=1e-3).fit(rows).score(test), -90))
    figure, axes = plt.subplots(figsize=(7, 2.8))
    axes.semilogx(sizes, learned, "o-", color=COLOURS[0], label="learned prior")
    axes.semilogx(sizes, weak, "s--", color=COLOURS[1], label="maximum likelihood (scikit-learn)")
    axes.set(xlabel="rows of 40 columns, four clusters", ylabel="held-out log-likelihood")
    axes.legend(frameon=False)
    save(figure, "prior")


if __name__ == "__main__":
    for picture in (start, learning, revision, prior):
        picture(np.random.default_rng(2))
