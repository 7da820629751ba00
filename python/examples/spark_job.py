"""A Spark job

`fit(df)` learns one mixture of a distributed data frame: each partition is learned where it lies, and the posteriors are merged. No RDDs are
used, so it also runs on Spark Connect.
"""

import numpy as np
from pyspark.sql import SparkSession, functions

from gmm_bmm.spark import OnlineGaussianMixture


def main() -> np.ndarray:
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    # Stands for spark.read.parquet("..."): three clusters, 60,000 rows, 8 partitions.
    kind = functions.col("id") % 3
    df = spark.range(60_000, numPartitions=8).select(
        (10 * kind + functions.randn(1)).alias("x"), (5 * (kind == 1).cast("int") + functions.randn(2)).alias("y"))
    model = OnlineGaussianMixture(n_components=3, inputCols=["x", "y"], rankCol="rank").fit(df)
    order = np.argsort(model.estimator.means_[:, 0])
    for weight, mean in zip(model.estimator.weights_[order], model.estimator.means_[order].round(1) + 0):
        print(f"{weight:.2f} of the rows around ({mean[0]:.1f}, {mean[1]:.1f})")
    scored = model.transform(df)
    print("columns:", ", ".join(scored.columns))
    print("unusual rows, in 10,000:", round(scored.filter("rank < 0.001").count() / 6, 1))
    spark.stop()
    return model.estimator.means_[order]


if __name__ == "__main__":
    main()
