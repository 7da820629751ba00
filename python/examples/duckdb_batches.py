"""Learn a mixture of a DuckDB query, in batches of Arrow: the rows need not fit in memory."""

import duckdb

from gmm_bmm import OnlineGaussianMixture

QUERY = """
    SELECT (i % 3) * 10 + 2 * random() AS x, (i % 2) * 10 + 2 * random() AS y  -- or: FROM 'data/*.parquet'
    FROM range(120_000) AS rows(i)
"""


def main() -> OnlineGaussianMixture:
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)").fetchall()
        mixture = OnlineGaussianMixture(n_components=6, random_state=0)
        for batch in connection.sql(QUERY).to_arrow_reader(10_000):
            mixture.partial_fit(batch)
    mixture.finish()
    print(f"{mixture.n_samples_seen_} rows, {mixture.n_components_} components: {mixture.means_.round(1).tolist()}")
    return mixture


if __name__ == "__main__":
    main()
