"""Learn a mixture of a lazy Polars query, in batches: the rows need not fit in memory."""

import polars as pl

from gmm_bmm import OnlineGaussianMixture

ROWS = 120_000


def rows() -> pl.LazyFrame:
    """Stands for ``pl.scan_parquet("data/*.parquet")``."""
    i = pl.int_range(ROWS, eager=True)
    noise = [pl.Series((i * factor % 10_007) / 10_007) for factor in (7919, 6007)]
    return pl.LazyFrame({"x": i % 3 * 10 + 2 * noise[0], "y": i % 2 * 10 + 2 * noise[1]})


def main() -> OnlineGaussianMixture:
    mixture = OnlineGaussianMixture(n_components=6, random_state=0)
    for batch in rows().collect_batches(chunk_size=10_000, maintain_order=True):
        mixture.partial_fit(batch)
    mixture.finish()
    print(f"{mixture.n_samples_seen_} rows, {mixture.n_components_} components: {mixture.means_.round(1).tolist()}")
    return mixture


if __name__ == "__main__":
    main()
