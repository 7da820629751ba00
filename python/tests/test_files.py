"""Model files, shards, and exchange with scikit-learn."""

import errno
import os
import shutil
import subprocess

import joblib
import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from gmm_bmm import OnlineGaussianMixture, merge

COMMAND = os.environ.get("GMM_BMM") or shutil.which("gmm-bmm")
needs_command = pytest.mark.skipif(COMMAND is None, reason="the command gmm-bmm is not installed; GMM_BMM can name it")


def test_saved_and_loaded_it_resumes_to_the_same_bits(rows, tmp_path):
    path = tmp_path / "model.json"
    whole = OnlineGaussianMixture(random_state=0).partial_fit(rows[:9_000]).partial_fit(rows[9_000:])
    OnlineGaussianMixture(random_state=0).partial_fit(rows[:9_000]).save(path)
    resumed = OnlineGaussianMixture.load(path).partial_fit(rows[9_000:])
    assert resumed.to_bytes() == whole.to_bytes()


@needs_command
def test_the_command_and_the_estimator_read_each_others_files(rows, tmp_path):
    csv, model, other = (tmp_path / name for name in ("rows.csv", "model.json", "other.json"))
    np.savetxt(csv, rows, delimiter=",", header="a,b,c,d", comments="", fmt="%.17g")
    run = lambda *words: subprocess.run([COMMAND, *map(str, words)], check=True, capture_output=True, text=True).stdout
    run("fit", "--data", csv, "--seed", 7, "--out", model)
    loaded = OnlineGaussianMixture.load(model)
    assert list(loaded.feature_names_in_) == list("abcd") and loaded.n_components_ == 3
    loaded.save(other)
    assert other.read_bytes() == model.read_bytes()
    pandas = pytest.importorskip("pandas")
    fitted = OnlineGaussianMixture.load(model).partial_fit(pandas.DataFrame(rows[:100], columns=list("abcd")))
    fitted.save(other)
    assert "3 components" in run("show", other)


def test_a_file_that_cannot_be_read_or_written_is_an_os_error(tmp_path):
    mixture = OnlineGaussianMixture(1).fit(np.arange(30.0)[:, None])
    for use in (OnlineGaussianMixture.load, mixture.save):
        with pytest.raises(IsADirectoryError) as raised:
            use(tmp_path)
        assert raised.value.filename == str(tmp_path) and raised.value.errno == errno.EISDIR
    missing = tmp_path / "no" / "model.json"
    for use in (OnlineGaussianMixture.load, mixture.save):
        for path in (missing, str(missing)):
            with pytest.raises(FileNotFoundError, match="No such file") as raised:
                use(path)
            assert raised.value.filename == str(missing)
    locked = tmp_path / "locked.json"
    mixture.save(locked)
    locked.chmod(0)
    if not os.access(locked, os.R_OK):
        with pytest.raises(PermissionError, match="locked.json"):
            OnlineGaussianMixture.load(locked)


@pytest.mark.parametrize(
    "text, says",
    [
        ("{}", "not a model file"),
        ('{"a": 1}\n', "not a model file"),
        ("", "empty"),
        ("a,b\n1,2\n", "CSV"),
        ('{"format": "other", "version": 1}', "'other'"),
        ('{"format": 1', "damaged or not a model file"),
        ('{"format": "gmm-bmm model", "version": 5, "rows": 1', "cut short"),
        ('{"format": "gmm-bmm model"}', "version"),
    ],
)
def test_a_file_with_the_wrong_content_is_a_value_error(tmp_path, text, says):
    broken = tmp_path / "broken.json"
    broken.write_text(text)
    with pytest.raises(ValueError, match="broken.json.*" + says):
        OnlineGaussianMixture.load(broken)


def learn_shard(prior, rows):
    return prior.shard().partial_fit(rows)


def test_shards_of_other_processes_merge(rows):
    prior = OnlineGaussianMixture(3, random_state=0).fit(rows[:6_000])
    parts = np.array_split(rows[6_000:], 3)
    shards = joblib.Parallel(n_jobs=2)(joblib.delayed(learn_shard)(prior, part) for part in parts)
    merged = merge(shards, prior=prior)
    assert merged.n_samples_seen_ == 14_000
    whole = OnlineGaussianMixture(3, random_state=0).fit(rows)
    assert abs(merged.score(rows) - whole.score(rows)) < 1e-3
    assert merge(shards[::-1], prior=prior).to_bytes() == merged.to_bytes()
    with pytest.raises(ValueError, match="same rows"):
        merge([shards[0], shards[0]], prior=prior)
    with pytest.raises(ValueError, match="prior"):
        merge([whole], prior=prior)


def test_with_one_component_merging_is_exact(rows):
    prior = OnlineGaussianMixture(1, random_state=0).fit(rows[:1_000])
    shards = [prior.shard().partial_fit(part) for part in np.array_split(rows[1_000:], 5)]
    merged, whole = merge(shards, prior=prior), prior.shard().partial_fit(rows[1_000:])
    np.testing.assert_allclose(merged.means_, whole.means_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(merged.covariances_, whole.covariances_, rtol=1e-9, atol=1e-12)


def test_dask_learns_shards(rows):
    dask = pytest.importorskip("dask")
    prior = OnlineGaussianMixture(3, random_state=0).fit(rows[:6_000])
    parts = np.array_split(rows[6_000:], 2)
    shards = dask.compute(*[dask.delayed(learn_shard)(prior, part) for part in parts], scheduler="threads")
    assert merge(list(shards), prior=prior).n_samples_seen_ == 14_000


def test_scikit_learn_continues_what_was_learned_here(rows):
    mixture = OnlineGaussianMixture(3, random_state=0).fit(rows)
    other = mixture.to_sklearn()
    np.testing.assert_allclose(other.score_samples(rows), mixture.score_samples(rows), rtol=1e-9)
    np.testing.assert_array_equal(other.predict(rows), mixture.predict(rows))
    assert other.fit(rows).score(rows) >= mixture.score(rows) - 1e-6


def test_what_scikit_learn_fitted_is_continued_here(rows):
    other = GaussianMixture(3, random_state=0).fit(rows[:5_000])
    mixture = OnlineGaussianMixture.from_sklearn(other, n_samples=5_000, random_state=0)
    np.testing.assert_allclose(mixture.means_, other.means_, atol=1e-9)
    np.testing.assert_allclose(mixture.weights_, other.weights_, atol=1e-3)
    np.testing.assert_allclose(mixture.covariances_, other.covariances_, rtol=1e-2, atol=1e-2)
    mixture.partial_fit(rows[5_000:])
    assert mixture.n_samples_seen_ == 20_000
    assert abs(mixture.score(rows) - GaussianMixture(3, random_state=0).fit(rows).score(rows)) < 2e-3
