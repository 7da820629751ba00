"""Parameters of an estimator: what keeps them, and when they may change."""

import copy
import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.mixture import GaussianMixture

from gmm_bmm import OnlineGaussianMixture, merge

OTHERS = dict(
    n_components=(2, 5),
    covariance_type="tied",
    algorithm="obmm",
    effort="fast",
    start_rows=700,
    keep_rows=900,
    half_life=None,
    prior_strength=2.5,
    dequantize=True,
    missing="marginal",
    cluster_overlap=0.1 + 0.2,
    n_clusters=2,
    warm_start=True,
    verbose=1,
    random_state=17,
)
INITIAL = {"weights_init", "means_init", "precisions_init"}
"""They have an effect on the start alone. tests/test_covariances.py tests them."""
SETTINGS = [
    {},
    OTHERS,
    OTHERS | dict(algorithm="oem", half_life=800, random_state=None),
    OTHERS | dict(n_components="auto:1..50", random_state=0),
    OTHERS | dict(n_components="auto:2..4", random_state=0),
    OTHERS | dict(n_components=np.int64(3), cluster_overlap=np.float32(0.25), random_state=np.int64(3)),
]


def saved_and_loaded(mixture, folder):
    mixture.save(folder / "model.json")
    return OnlineGaussianMixture.load(folder / "model.json")


def test_the_settings_differ_from_the_defaults():
    defaults = OnlineGaussianMixture().get_params()
    assert OTHERS.keys() | INITIAL == defaults.keys()
    given = [{name: settings[name] for name in settings} for settings in SETTINGS]
    for name in OTHERS:
        default = defaults[name]
        assert any(name in settings and settings[name] != default for settings in given), name


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_copies_files_and_pickles_keep_every_parameter(rows, tmp_path, settings, learn):
    mixture = getattr(OnlineGaussianMixture(**settings), learn)(rows[:3_000])
    others = {
        "file": saved_and_loaded(mixture, tmp_path),
        "file of a file": saved_and_loaded(saved_and_loaded(mixture, tmp_path), tmp_path),
        "pickle": pickle.loads(pickle.dumps(mixture)),
        "copy": copy.copy(mixture),
        "deep copy": copy.deepcopy(mixture),
        "clone": clone(mixture),
    }
    if mixture.algorithm == "obmm":
        others["shard"] = mixture.shard()
        others["merged"] = merge([mixture.shard().partial_fit(rows[3_000:4_000])], prior=mixture)
        others["file of a shard"] = saved_and_loaded(mixture.shard().partial_fit(rows[:10]), tmp_path)
    for kind, other in others.items():
        for name, value in mixture.get_params().items():
            assert getattr(other, name) == value, (kind, name)
        other.partial_fit(rows[4_000:4_100])
    for kind in ("file", "pickle", "copy"):
        np.testing.assert_array_equal(others[kind].clusters_, others["deep copy"].clusters_)
        assert others[kind].to_bytes() == others["deep copy"].to_bytes()
        if mixture.random_state is not None:
            np.testing.assert_array_equal(others[kind].sample(5)[0], others["deep copy"].sample(5)[0])


def test_a_random_state_instance_is_saved_as_its_seed(rows, tmp_path):
    mixture = OnlineGaussianMixture(2, random_state=np.random.RandomState(3)).fit(rows)
    loaded = saved_and_loaded(mixture, tmp_path)
    assert isinstance(loaded.random_state, int)
    np.testing.assert_array_equal(loaded.means_, mixture.means_)
    assert merge([mixture.shard().partial_fit(rows)], prior=mixture).random_state is mixture.random_state


def test_what_scikit_learn_fitted_has_the_random_state_that_was_given(rows):
    other = GaussianMixture(2, random_state=0).fit(rows)
    for state in (None, 5):
        assert OnlineGaussianMixture.from_sklearn(other, n_samples=100, random_state=state).random_state == state


def test_parameters_in_a_file_are_checked(rows, tmp_path):
    path = tmp_path / "model.json"
    OnlineGaussianMixture(2, cluster_overlap=0.5, random_state=0).fit(rows).save(path)
    model = json.loads(path.read_text())
    assert model["estimator"] == {"cluster_overlap": 0.5, "random_state": 0}
    del model["checksum"]
    for wrong in ({"cluster_overlap": 7}, {"missing": "drop"}, {"n_components": {}}, 5):
        path.write_text(json.dumps(model | {"estimator": wrong}))
        with pytest.raises(ValueError):
            OnlineGaussianMixture.load(path)
    path.write_text(json.dumps(model | {"estimator": {"of_a_later_version": 1}}))
    assert OnlineGaussianMixture.load(path).cluster_overlap == 0.01


CHANGES = dict(
    n_components=5,
    covariance_type="tied",
    algorithm="oem",
    effort="fast",
    start_rows=100,
    keep_rows=100,
    prior_strength=3.0,
    dequantize=True,
)


@pytest.mark.parametrize("name, value", CHANGES.items())
@pytest.mark.parametrize("kind", ["same", "file", "pickle", "shard", "buffering"])
def test_a_change_without_effect_is_refused(rows, tmp_path, name, value, kind):
    mixture = OnlineGaussianMixture(2, random_state=0).partial_fit(rows[: 100 if kind == "buffering" else 6_000])
    if kind == "file":
        mixture = saved_and_loaded(mixture, tmp_path)
    elif kind == "pickle":
        mixture = pickle.loads(pickle.dumps(mixture))
    elif kind == "shard":
        mixture = mixture.shard()
    before, seen = getattr(mixture, name), mixture.n_samples_seen_
    mixture.set_params(**{name: value})
    with pytest.raises(ValueError, match=f"^{name} was changed from {before!r} to {value!r}"):
        mixture.partial_fit(rows[:100])
    assert mixture.n_samples_seen_ == seen
    # A file has the parameters that the pass began with.
    assert kind == "shard" or getattr(saved_and_loaded(mixture, tmp_path), name) == before
    assert clone(mixture).partial_fit(rows[:100]).n_samples_seen_ == 100
    mixture.set_params(**{name: before}).partial_fit(rows[:100])
    assert mixture.n_samples_seen_ == seen + 100
    assert mixture.set_params(**{name: value}).fit(rows[:1_000]).partial_fit(rows[:5]).n_samples_seen_ == 1_005


def test_every_parameter_takes_effect_or_is_refused():
    with_effect = {"half_life", "missing", "cluster_overlap", "n_clusters", "warm_start", "verbose", "random_state"}
    assert with_effect | CHANGES.keys() | INITIAL == OnlineGaussianMixture().get_params().keys()


def test_parameters_with_effect_may_change(rows):
    mixture = OnlineGaussianMixture("auto", random_state=0).partial_fit(rows[:6_000])
    holes = rows[6_000:6_100].copy()
    holes[3, 1] = np.nan
    mixture.set_params(missing="marginal", half_life=500, cluster_overlap=0.9, random_state=4, n_components="auto:1..50")
    assert mixture.partial_fit(holes).n_samples_seen_ == 6_100
    assert mixture.set_params(n_components="auto").partial_fit(holes).n_samples_seen_ == 6_200


def test_numbers_of_components_mean_what_they_mean_in_the_command(rows):
    bounded, several = {"learned": {"least": 2, "most": 4}}, {"given": [2, 3, 4]}
    for given, components in [("auto:2..4", bounded), ((2, 4), several), (3, {"given": [3]})]:
        model = json.loads(OnlineGaussianMixture(given, random_state=0).fit(rows[:3_000]).to_bytes())
        assert model["settings"]["online"]["components"] == components
    for given in ("auto:2..4", (2, 4), 3, "auto"):
        mixture = OnlineGaussianMixture(given, random_state=0).fit(rows[:3_000])
        assert OnlineGaussianMixture._of(mixture._fit).n_components == given


def test_a_shard_cannot_get_a_half_life(rows):
    prior = OnlineGaussianMixture(2, random_state=0).fit(rows[:2_000])
    shard = prior.shard().set_params(half_life=50)
    with pytest.raises(ValueError, match="shards cannot have a half-life"):
        shard.partial_fit(rows[2_000:])
