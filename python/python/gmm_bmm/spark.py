"""Gaussian mixtures of Spark data frames. Importing this module needs PySpark.

    from gmm_bmm.spark import OnlineGaussianMixture

    model = OnlineGaussianMixture(n_components=5, inputCols=["x", "y", "z"], seed=1).fit(df)
    model.transform(df).select("prediction", "probability", "logDensity")
    model.estimator.means_                                            # gmm_bmm.OnlineGaussianMixture

The classes are an ``Estimator`` and a ``Model`` of ``pyspark.ml``. They use data frames and Arrow only, so they run on Spark Connect
too. Every worker needs ``gmm_bmm``.
"""

from __future__ import annotations

import numpy as np

try:
    import pandas as pd
    import pyarrow
    from pyspark import TaskContext, keyword_only
    from pyspark.ml import Estimator, Model
    from pyspark.ml.evaluation import Evaluator
    from pyspark.ml.functions import vector_to_array
    from pyspark.ml.linalg import VectorUDT
    from pyspark.ml.param import Param, Params, TypeConverters
    from pyspark.ml.param.shared import (
        HasFeaturesCol,
        HasInputCols,
        HasPredictionCol,
        HasProbabilityCol,
        HasSeed,
        HasWeightCol,
    )
    from pyspark.ml.util import DefaultParamsReadable, DefaultParamsReader, DefaultParamsWritable, DefaultParamsWriter
    from pyspark.ml.util import MLReadable, MLReader, MLWritable, MLWriter
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType
except ImportError as missing:
    raise ImportError("gmm_bmm.spark needs PySpark: pip install 'pyspark[connect]' pandas pyarrow") from missing

from gmm_bmm import _estimator, distributed

_LOCAL = ("n_components", "covariance_type", "effort", "start_rows", "missing", "cluster_overlap")
"""Parameters of the local estimator that are parameters here."""

_VALUES_OF_SHARD = 500_000
"""Partitions of fewer values are combined."""


class _Shared(HasFeaturesCol, HasInputCols, HasPredictionCol, HasProbabilityCol, HasSeed, HasWeightCol):
    """The parameters of the estimator and of the model."""

    n_components = Param(Params._dummy(), "n_components", "'auto', a number, or a pair of bounds")
    covariance_type = Param(
        Params._dummy(), "covariance_type", "'full', 'tied', 'diag' or 'spherical'", TypeConverters.toString
    )
    effort = Param(Params._dummy(), "effort", "'fast', 'default' or 'thorough'", TypeConverters.toString)
    start_rows = Param(Params._dummy(), "start_rows", "rows that the first mixture is fitted to", TypeConverters.toInt)
    missing = Param(
        Params._dummy(), "missing", "'error', or 'marginal' for rows with missing values (null or NaN)", TypeConverters.toString
    )
    cluster_overlap = Param(
        Params._dummy(), "cluster_overlap", "overlap from which components are one cluster", TypeConverters.toFloat
    )
    sampleRows = Param(Params._dummy(), "sampleRows", "rows of the sample for the prior", TypeConverters.toInt)
    numShards = Param(
        Params._dummy(), "numShards", "partitions are combined to this number; 0 combines those of few rows", TypeConverters.toInt
    )
    logDensityCol = Param(Params._dummy(), "logDensityCol", "column of log-densities; '' for none", TypeConverters.toString)
    rankCol = Param(
        Params._dummy(), "rankCol", "column of ranks, the fraction of rows with a lower log-density; '' for none",
        TypeConverters.toString,
    )

    def __init__(self):
        super().__init__()
        self._setDefault(
            n_components="auto", covariance_type="full", effort="default", missing="error", cluster_overlap=0.01, seed=1,
            sampleRows=distributed.SAMPLE_ROWS, numShards=0, logDensityCol="logDensity", rankCol="",
        )

    def _rows(self, dataset):
        """The columns to learn, which are doubles or one array of doubles, and then the weights, if rows have weights."""
        if self.isSet(self.inputCols):
            columns = [self._column(name).cast("double").alias(name) for name in self.getInputCols()]
        else:
            columns = [self._features(dataset).alias("features")]
        if self._weighted():
            columns.append(self._column(self.getWeightCol()).cast("double").alias(self.uid + "_weight"))
        return dataset.select(columns)

    def _weighted(self) -> bool:
        return self.isDefined(self.weightCol) and bool(self.getWeightCol())

    def _features(self, dataset):
        name = self.getFeaturesCol()
        if name not in dataset.columns:
            raise ValueError(f"the data frame has no column {name!r}: set featuresCol, or inputCols to columns of numbers")
        column, kind = self._column(name), dataset.schema[name].dataType
        if isinstance(kind, ArrayType):
            return column.cast("array<double>")
        if not isinstance(kind, VectorUDT):
            raise TypeError(f"column {name!r} has the type {kind.simpleString()}, not vector or array: set inputCols for columns of numbers")
        return vector_to_array(column)

    @staticmethod
    def _column(name: str):
        return F.col("`" + name.replace("`", "``") + "`")


def _values(table, weighted: bool):
    """The rows of an Arrow batch or table, and the weights in its last column or ``None``."""
    if not weighted:
        return _rows_of(table), None
    *names, _ = table.schema.names
    weights = table.column(len(names))
    if weights.null_count:
        raise ValueError("the column of weights contains null")
    return _rows_of(table.select(names)), weights.to_numpy(zero_copy_only=False)


def _rows_of(table):
    """The rows of an Arrow batch or table: itself, or the values of its one array column."""
    if not pyarrow.types.is_list(table.schema.field(0).type):
        return table
    column = table.column(0)
    column = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    if column.null_count:
        raise ValueError("the column of features contains null")
    return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)


def _shard_batch(data: bytes) -> pyarrow.RecordBatch:
    return pyarrow.RecordBatch.from_pydict({"shard": pyarrow.array([data], pyarrow.binary())})


def _learn(rows, prior: _estimator.OnlineGaussianMixture, shards: int, weighted: bool) -> list[bytes]:
    """The shards of all partitions, or of groups of them. ``shards`` says about how many there are, 0 if that is not known."""
    begin = distributed.to_send(prior, shards or None)

    def learn(batches):
        # A task that is tried again has the number of its partition, and Spark keeps one result of each.
        name = TaskContext.get().partitionId()
        values = (_values(batch, weighted) for batch in batches)
        yield _shard_batch(distributed.learn_shard(values, begin, name=name))

    def merge_group(batches):
        yield _shard_batch(distributed.merge_some((one for b in batches for one in b.column(0).to_pylist()), begin))

    learned = rows.mapInArrow(learn, "shard binary")
    if shards > 8 * distributed.GROUP:
        learned = learned.repartition(-(-shards // distributed.GROUP)).mapInArrow(merge_group, "shard binary")
    return [bytes(row["shard"]) for row in learned.collect()]


class OnlineGaussianMixture(Estimator, _Shared, DefaultParamsReadable, DefaultParamsWritable):
    """Gaussian mixture with full covariances, learned in one pass: each partition is a shard.

    Rows are read three times: to count them, for the sample of the prior, and to learn them. Only the last reading passes them to
    Python. The same partitions give the same model, whatever tasks are tried again.

    Parameters
    ----------
    n_components : 'auto', int or (int, int), default='auto'
        The number of components. ``'auto'`` learns it, up to 50; a pair bounds it.
    inputCols : list of str
        Columns of numbers. Otherwise ``featuresCol`` is used.
    featuresCol : str, default='features'
        A column of vectors or arrays.
    weightCol : str, default=None
        A column of weights: a row of weight 2 counts as two rows.
    predictionCol, probabilityCol, logDensityCol, rankCol : str, default='prediction', 'probability', 'logDensity', ''
        What ``transform`` adds: the most probable component, the probabilities of all as an array, the log-density, and the fraction
        of learned rows with a lower log-density. An empty name leaves a column out.
    sampleRows : int, default=20000
        Rows of the sample for the prior. So few rows, or fewer, are learned on the driver.
    numShards : int, default=0
        Partitions are combined to this number. 0 combines partitions of few rows, until a shard learns about half a million values,
        because a task that learns less takes longer to begin than to learn. With more than 512 shards, workers merge groups of them.
    covariance_type, effort, start_rows, missing, cluster_overlap
        As for ``gmm_bmm.OnlineGaussianMixture``.
    seed : int, default=1
    """

    @keyword_only
    def __init__(
        self, *, n_components="auto", inputCols=None, featuresCol="features", weightCol=None,
        predictionCol="prediction", probabilityCol="probability", logDensityCol="logDensity", rankCol="",
        sampleRows=distributed.SAMPLE_ROWS, numShards=0, covariance_type="full", effort="default", start_rows=None, missing="error",
        cluster_overlap=0.01, seed=1,
    ):  # fmt: skip
        super().__init__()
        self.setParams(**self._input_kwargs)

    def setParams(self, **parameters):
        """Sets parameters by name."""
        return self._set(**{name: value for name, value in parameters.items() if value is not None})

    def _local(self) -> dict:
        """The parameters of the local estimator."""
        own = {name: self.getOrDefault(name) for name in _LOCAL if self.isDefined(name)}
        return {**own, "random_state": self.getSeed() % 2**32}

    def _fit(self, dataset) -> OnlineGaussianMixtureModel:
        rows = self._rows(dataset)
        most = self.getOrDefault("sampleRows")
        count, last = rows.select(F.spark_partition_id().alias("part")).agg(F.count("part"), F.max("part")).first()
        sample = rows if count <= most else rows.sample(fraction=most / count, seed=self.getSeed())
        sample, weights = _values(sample.toArrow(), self._weighted())
        if count <= most:
            return self._model(_estimator.OnlineGaussianMixture(**self._local()).fit(sample, sample_weight=weights))
        prior = distributed.prior(sample, sample_weight=weights, **self._local())
        shards = min(last + 1, self.getOrDefault("numShards") or -(-count * prior.n_features_in_ // _VALUES_OF_SHARD))
        if shards <= last:
            rows = rows.coalesce(shards)
        return self._model(distributed.merge(_learn(rows, prior, shards, self._weighted()), prior))

    def _model(self, estimator) -> OnlineGaussianMixtureModel:
        return self._copyValues(OnlineGaussianMixtureModel(estimator))


class OnlineGaussianMixtureModel(Model, _Shared, MLReadable, MLWritable):
    """A mixture that ``OnlineGaussianMixture`` learned."""

    def __init__(self, estimator: _estimator.OnlineGaussianMixture | None = None):
        super().__init__()
        self._estimator = estimator

    @property
    def estimator(self) -> _estimator.OnlineGaussianMixture:
        """The local estimator, with all attributes and methods. ``estimator.save`` writes a file of the command ``gmm-bmm``."""
        return self._estimator

    def update(self, dataset) -> OnlineGaussianMixtureModel:
        """A model that has learned further rows too, such as a micro-batch of a stream. Each partition is a shard.

        ``estimator.n_samples_seen_`` of the result counts the further rows.
        """
        shards = _learn(self._rows(dataset), self.estimator, 0, self._weighted())
        learned = distributed.update(shards, self.estimator)
        return self._copyValues(OnlineGaussianMixtureModel(learned))

    def _transform(self, dataset):
        # Kept rows are not needed to score.
        scorer = distributed.to_send(self.estimator)
        wanted = {
            "prediction": ("int", lambda rows: scorer.predict(rows)),
            "probability": ("array<double>", lambda rows: list(scorer.predict_proba(rows))),
            "logDensity": ("double", lambda rows: scorer.score_samples(rows)),
            "rank": ("double", lambda rows: scorer.rank_samples(rows)),
        }
        names = {of: self.getOrDefault(of + "Col") for of in wanted}
        wanted = {of: what for of, what in wanted.items() if names[of]}
        if not wanted:
            return dataset

        @F.pandas_udf(", ".join(f"{of} {what[0]}" for of, what in wanted.items()))
        def score(rows: pd.DataFrame) -> pd.DataFrame:
            return pd.DataFrame({of: what[1](rows) for of, what in wanted.items()})

        @F.pandas_udf(", ".join(f"{of} {what[0]}" for of, what in wanted.items()))
        def score_features(rows: pd.Series) -> pd.DataFrame:
            values = np.stack(rows.to_numpy()) if len(rows) else np.empty((0, scorer.n_features_in_))
            return pd.DataFrame({of: what[1](values) for of, what in wanted.items()})

        if self.isSet(self.inputCols):
            columns = [self._column(name).cast("double").alias(name) for name in self.getInputCols()]
            scored = score(F.struct(*columns))
        else:
            scored = score_features(self._features(dataset))
        held = self.uid + "_scored"
        return dataset.withColumn(held, scored).select(
            "*", *[F.col(f"{held}.{of}").alias(names[of]) for of in wanted]
        ).drop(held)  # fmt: skip

    def write(self) -> MLWriter:
        return _ModelWriter(self)

    @classmethod
    def read(cls) -> MLReader:
        return _ModelReader(cls)


class _ModelWriter(MLWriter):
    def __init__(self, instance: OnlineGaussianMixtureModel):
        super().__init__()
        self.instance = instance

    def saveImpl(self, path: str) -> None:
        DefaultParamsWriter.saveMetadata(self.instance, path, self.sparkSession)
        data = [(bytearray(self.instance.estimator.to_bytes()),)]
        self.sparkSession.createDataFrame(data, "model binary").coalesce(1).write.parquet(path + "/model")


class _ModelReader(MLReader):
    def __init__(self, cls):
        super().__init__()
        self.cls = cls

    def load(self, path: str) -> OnlineGaussianMixtureModel:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        data = self.sparkSession.read.parquet(path + "/model").first()["model"]
        model = self.cls(_estimator.OnlineGaussianMixture.from_bytes(bytes(data)))
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


class LogDensityEvaluator(Evaluator, HasWeightCol, DefaultParamsReadable, DefaultParamsWritable):
    """The mean log-density of the rows that a model transformed, weighted by ``weightCol`` if that is set, for ``CrossValidator``.

    Larger is better.
    """

    logDensityCol = Param(Params._dummy(), "logDensityCol", "column of log-densities", TypeConverters.toString)

    @keyword_only
    def __init__(self, *, logDensityCol="logDensity", weightCol=None):
        super().__init__()
        self._setDefault(logDensityCol="logDensity")
        self._set(**{name: value for name, value in self._input_kwargs.items() if value is not None})

    def _evaluate(self, dataset) -> float:
        score = F.col(self.getOrDefault("logDensityCol"))
        if not self.isDefined(self.weightCol):
            return dataset.select(F.avg(score)).first()[0]
        weight = F.col(self.getWeightCol())
        return dataset.select(F.sum(weight * score) / F.sum(weight)).first()[0]
