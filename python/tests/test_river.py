"""The adaptor for river."""

import random

import pytest

river = pytest.importorskip("river")

from gmm_bmm.river import MixtureAnomalyDetector, OnlineGaussianMixtureClusterer  # noqa: E402


class Transactions:
    """Rows of five columns, one in fifty of them an anomaly."""

    def take(self, rows):
        draw = random.Random(7)
        for i in range(rows):
            spread = 4 if i % 50 == 49 else 1
            yield {name: draw.gauss(0, spread) for name in "abcde"}, int(spread > 1)


@pytest.mark.parametrize("kind", [OnlineGaussianMixtureClusterer, MixtureAnomalyDetector])
def test_rivers_own_checks_pass(kind, monkeypatch):
    from river import checks, datasets

    # The checks of detectors would download a large set of transactions.
    monkeypatch.setattr(datasets, "CreditCard", Transactions)
    model = kind(n_components=2, start_rows=50)
    ran = [check for check in checks.yield_checks(model) if check.__name__ not in model._unit_test_skips()]
    assert ran
    checks.check_estimator(model)


def test_it_learns_scores_and_predicts_row_by_row():
    draw = random.Random(1)
    model = OnlineGaussianMixtureClusterer(n_components=2, start_rows=200)
    assert (model.predict_one({"x": 1.0}), model.score_one({"x": 1.0})) == (0, 0.0)
    for i in range(1000):
        model.learn_one({"y": draw.gauss(0, 1), "x": draw.gauss(10 * (i % 2), 1)})
    low, high = model.predict_one({"x": 0.0, "y": 0.0}), model.predict_one({"x": 10.0, "y": 0.0})
    assert low != high
    assert model.score_one({"x": 5.0, "y": 9.0}) > model.score_one({"x": 0.0, "y": 0.0}) + 10


@pytest.mark.parametrize("missing", ["error", "marginal"])
def test_single_rows_learn_and_score_as_arrays_do(missing):
    import numpy as np

    draw = random.Random(5)
    rows = [{"x": draw.gauss(10 * (i % 3), 1), "y": draw.gauss(0, 1 + i % 2)} for i in range(2500)]
    if missing == "marginal":
        for i in range(0, 2500, 50):
            rows[i]["y"] = None
    model = OnlineGaussianMixtureClusterer(start_rows=500, missing=missing)
    mixture = OnlineGaussianMixtureClusterer(start_rows=500, missing=missing)._mixture
    array = np.array([[row["x"], row["y"]] for row in rows], dtype=float)
    for i, row in enumerate(rows):
        model.learn_one(row)
        mixture.partial_fit(array[i : i + 1])
        if i % 200 == 0 and i > 600 or i > 2490:
            assert model.score_one(row) == pytest.approx(-mixture.score_samples(array[i : i + 1])[0], abs=1e-9)
            assert model.predict_one(row) == mixture.identifiers_[mixture.predict(array[i : i + 1])[0]]
    assert model._mixture.means_.tobytes() == mixture.means_.tobytes()
    model._mixture.finish()
    mixture.finish()
    assert model.score_one(rows[1]) == pytest.approx(-mixture.score_samples(array[1:2])[0], abs=1e-9)


@pytest.mark.parametrize("value", ["text", 1e300, float("inf")])
def test_a_value_that_cannot_be_learned_is_refused_and_changes_nothing(value):
    model = OnlineGaussianMixtureClusterer(1, start_rows=50)
    for i in range(100):
        model.learn_one({"a": i % 7})
    before = model.score_one({"a": 3})
    for method in (model.learn_one, model.score_one, model.predict_one):
        with pytest.raises(ValueError):
            method({"a": value})
    assert (model._mixture.n_samples_seen_, model.score_one({"a": 3})) == (100, before)


def test_frames_give_the_same_mixture_as_rows():
    pandas = pytest.importorskip("pandas")
    draw = random.Random(2)
    rows = [{"a": draw.gauss(0, 1), "b": draw.gauss(i % 2 * 8, 1)} for i in range(600)]
    one, many = (OnlineGaussianMixtureClusterer(2, start_rows=100) for _ in range(2))
    for row in rows:
        one.learn_one(row)
    many.learn_many(pandas.DataFrame(rows))
    assert one.score_one(rows[0]) == many.score_one(rows[0])


def test_it_works_in_a_river_pipeline():
    from river import compose, preprocessing

    model = compose.Pipeline(preprocessing.StandardScaler(), OnlineGaussianMixtureClusterer(1, start_rows=50))
    draw = random.Random(3)
    for _ in range(200):
        model.learn_one({"a": draw.gauss(100, 5)})
    assert model.predict_one({"a": 100.0}) > 0


def test_missing_features_are_gaps_if_that_is_asked_for():
    pandas = pytest.importorskip("pandas")
    draw = random.Random(4)
    rows = [{"a": draw.gauss(5, 1), "b": draw.gauss(7, 1)} for _ in range(600)]
    model, frames = (OnlineGaussianMixtureClusterer(1, start_rows=100, missing="marginal") for _ in range(2))
    rows[3]["b"], rows[5]["a"] = float("nan"), None
    for row in rows:
        model.learn_one(row)
    frames.learn_many(pandas.DataFrame(rows))
    known = {"a": 5.0}
    assert model.score_one(known) == model.score_one({"a": 5.0, "b": None}) == frames.score_one(known) < 2.0
    with pytest.raises(ValueError, match="missing='marginal'"):
        OnlineGaussianMixtureClusterer(1).learn_one({"a": float("nan")})


def test_the_detector_scores_as_the_estimator_does():
    numpy = pytest.importorskip("numpy")
    from gmm_bmm import MixtureOutlierDetector

    rows = numpy.random.default_rng(5).normal(size=(900, 3))
    rows[::3] += 9
    rows[::97] *= 4
    detector = MixtureAnomalyDetector(0.01, n_components=3, start_rows=300, half_life=500)
    assert detector.score_one({"a": 0.0}) == 0.0
    for row in rows:
        detector.learn_one(dict(zip("abc", row.tolist())))
    estimator = MixtureOutlierDetector(0.01, n_components=3, half_life=500)
    estimator.mixture_ = detector._mixture
    estimator.n_features_in_, estimator._first = 3, None
    scores = [detector.score_one(dict(zip("abc", row.tolist()))) for row in rows[:20]]
    numpy.testing.assert_array_equal(scores, -estimator.score_samples(rows[:20]))
    assert detector.score_one({"a": 90.0, "b": 0.0, "c": 0.0}) > max(scores) + 10


def test_the_detector_finds_anomalies_before_its_start_and_without_features():
    draw = random.Random(6)
    detector = MixtureAnomalyDetector(n_components=2, start_rows=1000, missing="marginal")
    for _ in range(200):
        detector.learn_one({"x": draw.gauss(0, 1), "y": draw.gauss(0, 1)})
    usual = detector.score_one({"x": 0.0, "y": 0.0})
    assert detector.score_one({"x": 9.0}) > usual + 10
    assert abs(detector.score_one({"y": 0.0}) - usual) < 2
