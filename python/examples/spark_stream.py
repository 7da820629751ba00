"""Keep a model up to date on a stream of Spark: each micro-batch is learned on the workers, and counts once."""

import sys

from pyspark.sql import SparkSession

from gmm_bmm.spark import OnlineGaussianMixture


class UpToDate:
    """The model after the latest micro-batch. Save it, with the number of the batch, to resume the stream from."""

    def __init__(self, estimator: OnlineGaussianMixture):
        self.estimator, self.model, self.last, self.rows = estimator, None, -1, 0

    def __call__(self, batch, number: int) -> None:
        # A stream that restarts gives its last batch again.
        if number <= self.last or batch.isEmpty():
            return
        self.model = self.model.update(batch) if self.model else self.estimator.fit(batch)
        self.last, self.rows = number, self.rows + self.model.estimator.n_samples_seen_
        print(f"batch {number}: {self.rows} rows, weights {self.model.estimator.weights_.round(2)}", flush=True)


def main(folder: str, checkpoint: str) -> UpToDate:
    spark = SparkSession.builder.getOrCreate()
    stream = spark.readStream.schema("x DOUBLE, y DOUBLE").option("maxFilesPerTrigger", 1).parquet(folder)
    latest = UpToDate(OnlineGaussianMixture(n_components=2, inputCols=["x", "y"]))
    writer = stream.writeStream.foreachBatch(latest).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()  # or processingTime="10 seconds"
    return latest


if __name__ == "__main__":
    main(*sys.argv[1:])
