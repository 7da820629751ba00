"""What is accepted as rows, and what is refused."""

import numpy as np
import pytest

from gmm_bmm import OnlineGaussianMixture
from gmm_bmm._core import MAX_VALUE

NAMES = list("abcd")
METHODS = (
    "partial_fit", "score_samples", "score", "predict", "predict_proba", "rank_samples", "explain", "impute", "sample_missing",
    "bic", "aic",
)


class Interchanged:
    """A frame of an unknown library, which offers the interchange protocol."""

    def __init__(self, frame):
        self.frame = frame

    def __dataframe__(self, *args, **kwargs):
        return self.frame.__dataframe__(*args, **kwargs)

    def __array__(self, *args, **kwargs):
        return np.asarray(self.frame)


def arrow_table(rows, names):
    return pytest.importorskip("pyarrow").table({name: rows[:, j] for j, name in enumerate(names)})


def record_batch(rows, names):
    return arrow_table(rows, names).to_batches()[0]


def pandas_frame(rows, names):
    return pytest.importorskip("pandas").DataFrame(rows, columns=names)


def polars_frame(rows, names):
    return pytest.importorskip("polars").DataFrame(rows, schema=names)


def other_frame(rows, names):
    return Interchanged(arrow_table(rows, names))


FRAMES = [arrow_table, record_batch, pandas_frame, polars_frame, other_frame]


@pytest.mark.parametrize("frame", FRAMES)
def test_names_of_columns_are_kept_and_checked(rows, frame):
    rows = rows[:2_000]
    expected = OnlineGaussianMixture(1, random_state=0).partial_fit(rows)
    for learn in ("fit", "partial_fit"):
        mixture = getattr(OnlineGaussianMixture(1, random_state=0), learn)(frame(rows, NAMES))
        assert list(mixture.feature_names_in_) == NAMES
        np.testing.assert_array_equal(mixture.means_, expected.means_)
        np.testing.assert_array_equal(mixture.score_samples(frame(rows, NAMES)), expected.score_samples(rows))
        for method in METHODS:
            for names in (["b", "a", "c", "d"], ["a", "b", "c", "e"]):
                with pytest.raises(ValueError, match="feature names"):
                    getattr(mixture, method)(frame(rows, names))
        assert mixture.n_samples_seen_ == 2_000


@pytest.mark.parametrize("frame", [arrow_table, record_batch, polars_frame])
def test_nulls_are_missing_values(frame):
    pyarrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    columns = {"a": [1.0, None, 3.0, 2.0], "b": [1, 2, None, 5]}
    holes = pyarrow.table(columns) if frame is arrow_table else pyarrow.record_batch(columns)
    holes = polars.DataFrame(columns) if frame is polars_frame else holes
    mixture = OnlineGaussianMixture(1, missing="marginal", random_state=0).fit(holes)
    array = np.array([[1, 1], [np.nan, 2], [3, np.nan], [2, 5]])
    expected = OnlineGaussianMixture(1, missing="marginal", random_state=0).fit(array)
    np.testing.assert_array_equal(mixture.means_, expected.means_)
    np.testing.assert_array_equal(mixture.impute(holes), expected.impute(array))
    with pytest.raises(ValueError, match="NaN in row 1, column 'a'.*missing='marginal'"):
        OnlineGaussianMixture(1).fit(holes)


def test_masked_values_are_missing(rows):
    mask = np.random.default_rng(2).random(rows.shape) < 0.1
    masked = np.ma.masked_array(np.where(mask, 1e6, rows), mask=mask)
    holes = np.where(mask, np.nan, rows)
    learn = lambda X: OnlineGaussianMixture(3, missing="marginal", random_state=0).fit(X)
    mixture = learn(masked)
    assert mixture.to_bytes() == learn(holes).to_bytes()
    for method in METHODS[1:]:
        np.testing.assert_array_equal(getattr(mixture, method)(masked), getattr(mixture, method)(holes))
    strict = OnlineGaussianMixture(3, random_state=0).fit(rows)
    for method in set(METHODS) - {"impute", "sample_missing"}:
        with pytest.raises(ValueError, match="masked value.*missing='marginal'"):
            getattr(strict, method)(masked)
    np.testing.assert_array_equal(strict.impute(masked), strict.impute(holes))
    whole = np.ma.masked_array(rows)
    np.testing.assert_array_equal(strict.score_samples(whole), strict.score_samples(rows))
    whole_numbers = np.ma.masked_array([[1, 2, 3, 4]], mask=[[0, 1, 0, 0]])
    np.testing.assert_array_equal(strict.impute(whole_numbers), strict.impute([[1, np.nan, 3, 4]]))
    np.testing.assert_array_equal(mixture.predict_proba(list(masked[:9])), mixture.predict_proba(holes[:9]))


@pytest.mark.parametrize("missing", ["error", "marginal"])
def test_values_that_the_command_refuses_are_refused(rows, missing):
    assert MAX_VALUE == 1e150
    mixture = OnlineGaussianMixture(3, missing=missing, random_state=0).partial_fit(rows)
    before = mixture.to_bytes()
    for value, word in [(1.1e150, "1.1e.150"), (-1e300, "-1e.300"), (np.inf, "infinity"), (-np.inf, "infinity")]:
        large = rows.copy()
        large[-1, 2] = value
        for method in METHODS:
            for X in (large, np.asfortranarray(large), pandas_frame(large, NAMES).to_numpy()):
                with pytest.raises(ValueError, match=f"{word} in row 19999, column 2"):
                    getattr(mixture, method)(X)
        with pytest.raises(ValueError, match=word):
            OnlineGaussianMixture(3, missing=missing).fit(large)
    assert mixture.to_bytes() == before
    large[-1, 2] = MAX_VALUE
    fitted = OnlineGaussianMixture(1, random_state=0).fit(large)
    assert np.isfinite(fitted.covariances_).all()


def test_nan_names_the_parameter_that_allows_it(rows):
    mixture = OnlineGaussianMixture(3, random_state=0).fit(rows)
    holes = rows[:20].copy()
    holes[7, 3] = np.nan
    for method in set(METHODS) - {"impute", "sample_missing"}:
        for X in (holes, holes.astype(np.float32), holes.tolist()):
            with pytest.raises(ValueError, match="contains NaN in row 7, column 3.*missing='marginal'"):
                getattr(mixture, method)(X)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_text_in_a_frame_is_named_with_its_column_and_row(library):
    frame = pytest.importorskip(library).DataFrame({"a": [1.0, 2.0], "b": ["3", "four"]})
    with pytest.raises(ValueError, match=r"'?four'?.*\(column 'b', row 1, rows count from 0\): leave out columns of text"):
        OnlineGaussianMixture(1).fit(frame)


def test_a_lazy_frame_is_named(rows):
    polars = pytest.importorskip("polars")
    lazy = polars.DataFrame(rows, schema=NAMES).lazy()
    mixture = OnlineGaussianMixture(1, random_state=0).fit(lazy.collect())
    for method in ("fit", *METHODS):
        with pytest.raises(TypeError, match=r"LazyFrame.*\.collect\(\)"):
            getattr(mixture, method)(lazy)


def test_masked_arrays_without_numbers_are_refused(rows):
    mixture = OnlineGaussianMixture(3, random_state=0).fit(rows)
    for array in (rows[:5].astype(complex), rows[:5, 0], np.full((5, 4), "word")):
        with pytest.raises(ValueError):
            mixture.score(np.ma.masked_array(array))


def test_rows_that_begin_at_any_byte_are_learned():
    rows = np.random.default_rng(0).normal(size=(400, 2))
    unaligned = np.frombuffer(b"x" + rows.tobytes(), dtype=np.float64, offset=1).reshape(rows.shape)
    assert not unaligned.flags.aligned
    mixture = OnlineGaussianMixture(1, random_state=0).fit(unaligned).partial_fit(unaligned)
    assert mixture.score(unaligned) == mixture.score(rows)
