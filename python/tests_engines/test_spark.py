"""Spark with two local workers: SPARK_MODE is local, cluster (workers are processes of their own) or connect (a local Connect server)."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import COLUMNS, SAMPLE_ROWS, SETTINGS, check_mixture, check_weighted, die_once, run_blocks, weighted

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.ml import Pipeline, PipelineModel  # noqa: E402
from pyspark.ml.feature import VectorAssembler  # noqa: E402
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

from gmm_bmm import OnlineGaussianMixture as Local  # noqa: E402
from gmm_bmm import distributed  # noqa: E402
from gmm_bmm import spark as gmm_spark  # noqa: E402
from gmm_bmm.spark import LogDensityEvaluator, OnlineGaussianMixture, OnlineGaussianMixtureModel  # noqa: E402

# The frames are small, and their partitions are not combined.
gmm_spark._VALUES_OF_SHARD = 1
MODE = os.environ.get("SPARK_MODE", "local")
CONNECT = MODE == "connect"
# As many tries of a task as a cluster has.
MASTERS = {"local": "local[2,4]", "cluster": "local-cluster[2,1,1024]"}


@pytest.fixture(scope="module")
def spark():
    builder = SparkSession.builder.config("spark.sql.shuffle.partitions", "2").config("spark.ui.enabled", "false")
    session = (builder.remote("local[2]") if CONNECT else builder.master(MASTERS[MODE])).getOrCreate()
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def table(spark, frame, tmp_path_factory):
    """Three files, and one partition without rows."""
    folder = tmp_path_factory.mktemp("table")
    for i, start in enumerate([0, 4000, 8000]):
        frame.iloc[start : start + 4000].to_parquet(folder / f"part-{i}.parquet")
    spark.conf.set("spark.sql.files.openCostInBytes", "1g")
    empty = spark.range(1).where("id < 0").selectExpr("0D AS a", "0D AS b", "0D AS c")
    return spark.read.parquet(str(folder)).union(empty)


def estimator(**parameters):
    return OnlineGaussianMixture(sampleRows=SAMPLE_ROWS, **{**SETTINGS, "inputCols": COLUMNS, **parameters})


@pytest.fixture(scope="module")
def model(table):
    return estimator(rankCol="rank").fit(table)


def test_fit_transform_save_and_load(spark, table, model, frame, tmp_path):
    check_mixture(model.estimator, frame)
    model.save(str(tmp_path / "model"))
    loaded = OnlineGaussianMixtureModel.load(str(tmp_path / "model"))
    assert loaded.estimator.to_bytes() == model.estimator.to_bytes()
    scored = loaded.transform(table).toPandas()
    assert list(scored.columns) == [*COLUMNS, "prediction", "probability", "logDensity", "rank"]
    rows = scored[COLUMNS]
    np.testing.assert_array_equal(scored["prediction"], model.estimator.predict(rows))
    np.testing.assert_array_equal(np.stack(scored["probability"]), model.estimator.predict_proba(rows))
    np.testing.assert_array_equal(scored["logDensity"], model.estimator.score_samples(rows))
    np.testing.assert_array_equal(scored["rank"], model.estimator.rank_samples(rows))


def test_update_learns_further_rows(spark, model, frame):
    further = spark.createDataFrame(frame.iloc[::20] + 0.01)
    mixture = model.update(further).estimator
    assert mixture.n_samples_seen_ == len(frame) // 20
    np.testing.assert_allclose(mixture.means_, model.estimator.means_, atol=0.01)


def test_rows_have_weights(spark, frame):
    rows = spark.createDataFrame(weighted(frame)).repartition(3)
    weights = weighted(frame)["times"]
    found = estimator(weightCol="times").fit(rows)
    check_weighted(found.estimator, frame)
    score = LogDensityEvaluator(weightCol="times").evaluate(found.transform(rows))
    assert score == pytest.approx(found.estimator.score(frame, sample_weight=weights))
    diagonal = estimator(weightCol="times", covariance_type="diag").fit(rows).estimator
    check_weighted(diagonal, frame)
    assert diagonal.covariances_.shape == (2, 3)
    vectors = VectorAssembler(inputCols=COLUMNS, outputCol="features").transform(rows)
    few = OnlineGaussianMixture(weightCol="times", sampleRows=12_000, seed=1, **SETTINGS).fit(vectors.coalesce(1))
    np.testing.assert_allclose(np.sort(few.estimator.weights_), [0.25, 0.75], atol=0.005)


def test_columns_that_do_not_fit_are_refused(spark, frame):
    rows = spark.createDataFrame(frame.iloc[:10])
    with pytest.raises(ValueError, match="no column 'features': set featuresCol, or inputCols"):
        OnlineGaussianMixture().fit(rows)
    with pytest.raises(TypeError, match="column 'a' has the type double, not vector or array"):
        OnlineGaussianMixture(featuresCol="a").fit(rows)


def test_gaps_and_few_rows(spark, frame):
    gappy = frame.iloc[::10].copy()
    gappy.iloc[::7, 1] = np.nan
    local = Local(2, start_rows=1000, missing="marginal", random_state=1).fit(gappy)
    found = estimator(missing="marginal").fit(spark.createDataFrame(gappy).coalesce(1))
    assert found.estimator.n_samples_seen_ == 1200 and found.estimator.means_ == pytest.approx(local.means_)


def test_a_killed_worker_changes_no_bit(table, model, tmp_path):
    flag = str(tmp_path / "killed")

    def killing(batches):
        for i, batch in enumerate(batches):
            if i == 2:
                die_once(flag)
            yield batch

    # The sample of the prior is drawn in this plan too, so both fits have the same one.
    again = estimator(rankCol="rank").fit(table.mapInArrow(killing, table.schema))
    assert os.path.exists(flag) and again.estimator.to_bytes() == model.estimator.to_bytes()


def test_many_partitions_are_merged_in_groups_by_workers(spark, frame, monkeypatch):
    monkeypatch.setattr(distributed, "GROUP", 1)
    merged, merge = [], distributed.merge
    monkeypatch.setattr(distributed, "merge", lambda shards, prior: merged.append(len(shards)) or merge(shards, prior))
    rows = spark.createDataFrame(frame).repartition(12)
    mixture = estimator().fit(rows).estimator
    check_mixture(mixture, frame)
    estimator(numShards=3).fit(rows)
    monkeypatch.setattr(gmm_spark, "_VALUES_OF_SHARD", -(-len(frame) * len(COLUMNS) // 4))
    estimator().fit(rows)
    assert merged == [12, 3, 4], "a group has one shard here, and four shards have enough values"


def test_the_pages_run(spark, frame):
    named = spark.createDataFrame(frame.rename(columns={"a": "x", "b": "y"}).sample(frac=1.0, random_state=0))
    run_blocks("gmm_bmm.spark", df=VectorAssembler(inputCols=["x", "y"], outputCol="features").transform(named))


def test_in_a_pipeline_and_cross_validated(table, frame, tmp_path):
    vectors = VectorAssembler(inputCols=COLUMNS, outputCol="features")
    one = OnlineGaussianMixture(sampleRows=20_000, seed=1, **SETTINGS)
    grid = ParamGridBuilder().addGrid(one.n_components, [1, 2]).build()
    search = CrossValidator(estimator=one, estimatorParamMaps=grid, evaluator=LogDensityEvaluator(), numFolds=2, seed=1)
    fitted = Pipeline(stages=[vectors, search.getEstimator()]).fit(table)
    fitted.save(str(tmp_path / "pipeline"))
    scored = PipelineModel.load(str(tmp_path / "pipeline")).transform(table).toPandas()
    assert scored["logDensity"].mean() == pytest.approx(fitted.stages[1].estimator.score(frame.to_numpy()))
    best = search.fit(vectors.transform(table))
    assert best.avgMetrics[1] > best.avgMetrics[0] + 0.1 and best.bestModel.estimator.n_components_ == 2


def test_a_stream_keeps_the_model_up_to_date_and_counts_a_batch_once(spark, frame, tmp_path):
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples/spark_stream.py"))
    (tmp_path / "rows").mkdir()
    mixed = frame.sample(frac=1.0, random_state=0).rename(columns={"a": "x", "b": "y"})[["x", "y"]]
    for i in range(2):
        mixed.iloc[i * 6000 : (i + 1) * 6000].to_parquet(tmp_path / "rows" / f"{i}.parquet")
    latest = example["main"](str(tmp_path / "rows"), str(tmp_path / "checkpoint"))
    assert latest.rows == 12_000 and latest.last == 1
    np.testing.assert_allclose(np.sort(latest.model.estimator.weights_), [0.5, 0.5], atol=0.02)
    before = latest.model
    latest(spark.createDataFrame(mixed), 1)
    assert latest.model is before


def test_the_example_prints_what_the_site_shows():
    example = Path(__file__).parents[1] / "examples" / "spark_job.py"
    printed = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True).stdout
    output = example.parent / "output" / "spark_job.txt"
    if os.environ.get("UPDATE_EXAMPLES"):
        output.write_text(printed)
    # The share of unusual rows is that of 60,000 draws.
    assert printed.splitlines()[:4] == output.read_text().splitlines()[:4]
