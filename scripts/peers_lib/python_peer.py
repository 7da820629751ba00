"""Runs one job of scikit-learn, polars or mlpack in the virtual environment's Python, and prints its figures as JSON.

    python_peer.py read TRAIN REPEATS              polars reads the file
    python_peer.py iteration TRAIN K REPEATS       one EM iteration of scikit-learn, rows in memory, and scoring them
    python_peer.py fit TRAIN TEST K SEED           scikit-learn's whole default fit, and its held-out score
    python_peer.py parquet TRAIN PARQUET           converts a CSV file
    python_peer.py minibatch PARQUET K SEED        scikit-learn's MiniBatchKMeans
    python_peer.py mlpack_iteration TRAIN K REPEATS    one EM iteration of mlpack, rows in memory
    python_peer.py mlpack_fit TRAIN TEST K SEED    mlpack: k-means, ten EM iterations, and the held-out score
"""

import json
import sys
import time
import warnings

# Those of mlpack, as many as for Armadillo.
KMEANS_ITERATIONS, EM_ITERATIONS = 10, 10


def read(path):
    import polars

    begun = time.perf_counter()
    table = polars.read_csv(path)
    return table, time.perf_counter() - begun


def time_reading(path, repeats):
    seconds = []
    for _ in range(int(repeats)):
        table, took = read(path)
        seconds.append(took)
    return {"rows": table.height, "read_seconds": min(seconds)}


def time_iteration(path, k, repeats):
    """Times one iteration by the difference of two fits with the same initial parameters and other numbers of iterations.

    The difference excludes k-means and the last E-step, which every fit adds.
    """
    import numpy
    from sklearn.mixture import GaussianMixture

    rows = read(path)[0].to_numpy()
    k = int(k)
    start = {
        "weights_init": numpy.full(k, 1 / k),
        "means_init": rows[numpy.random.default_rng(1).choice(len(rows), k, replace=False)],
        "precisions_init": numpy.repeat(numpy.linalg.inv(numpy.cov(rows.T).reshape(rows.shape[1], -1))[None], k, 0),
    }

    def fit(iterations):
        model = GaussianMixture(k, tol=0, max_iter=iterations, init_params="random_from_data", random_state=1, **start)
        begun = time.perf_counter()
        model.fit(rows)
        return time.perf_counter() - begun, model

    def score():
        begun = time.perf_counter()
        model.score_samples(rows)
        return time.perf_counter() - begun

    few, more, repeats = 1, 4, range(int(repeats))
    model = fit(few)[1]
    shortest = {iterations: min(fit(iterations)[0] for _ in repeats) for iterations in (few, more)}
    return {
        "rows": len(rows),
        "iteration_seconds": (shortest[more] - shortest[few]) / (more - few),
        "score_seconds": min(score() for _ in repeats),
    }


def time_fit(train, test, k, seed):
    from sklearn.mixture import GaussianMixture

    table, read_seconds = read(train)
    rows = table.to_numpy()
    del table
    model = GaussianMixture(int(k), random_state=int(seed))
    begun = time.perf_counter()
    model.fit(rows)
    learn_seconds = time.perf_counter() - begun
    return {
        "rows": len(rows),
        "read_seconds": read_seconds,
        "learn_seconds": learn_seconds,
        "iterations": int(model.n_iter_),
        "log_likelihood": float(model.score(read(test)[0].to_numpy())),
    }


def convert(train, parquet):
    import polars

    polars.scan_csv(train).sink_parquet(parquet)
    return {}


def time_minibatch(parquet, k, seed):
    import polars
    from sklearn.cluster import MiniBatchKMeans

    begun = time.perf_counter()
    rows = polars.read_parquet(parquet).to_numpy()
    read_seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    MiniBatchKMeans(int(k), random_state=int(seed)).fit(rows)
    return {"read_seconds": read_seconds, "learn_seconds": time.perf_counter() - begun}


def train_mlpack(rows, k, iterations, **more):
    """A model of mlpack, and the seconds it takes. Its counter begins with 1, so a maximum of 1 means no iteration."""
    import mlpack

    begun = time.perf_counter()
    trained = mlpack.gmm_train(input_=rows, gaussians=k, max_iterations=iterations + 1, tolerance=0.0, trials=1, **more)
    return trained["output_model"], time.perf_counter() - begun


def time_mlpack_iteration(path, k, repeats):
    """Times one iteration by the difference of two fits from the same model, as for scikit-learn."""
    rows, k = rows_in_memory(path)[0], int(k)
    start = train_mlpack(rows, k, 0, kmeans_max_iterations=KMEANS_ITERATIONS, seed=1)[0]
    few, more = 1, 4
    shortest = {iterations: min(train_mlpack(rows, k, iterations, input_model=start)[1] for _ in range(int(repeats)))
                for iterations in (few, more)}
    return {"rows": len(rows), "iteration_seconds": (shortest[more] - shortest[few]) / (more - few)}


def time_mlpack_fit(train, test, k, seed):
    import mlpack
    import numpy

    rows, read_seconds = rows_in_memory(train)
    model, learn_seconds = train_mlpack(rows, int(k), EM_ITERATIONS, kmeans_max_iterations=KMEANS_ITERATIONS, seed=int(seed))
    densities = mlpack.gmm_probability(input_=rows_in_memory(test)[0], input_model=model)["output"]
    # It gives densities instead of their logarithms, so those of rows far out are zero.
    score = float(numpy.log(densities).mean()) if densities.min() > 0 else None
    return {
        "rows": len(rows),
        "read_seconds": read_seconds,
        "learn_seconds": learn_seconds,
        "iterations": KMEANS_ITERATIONS + EM_ITERATIONS,
        "log_likelihood": score,
    }


def rows_in_memory(path):
    import numpy

    table, seconds = read(path)
    return numpy.ascontiguousarray(table.to_numpy()), seconds


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # few iterations do not converge, as intended
    job = {"read": time_reading, "iteration": time_iteration, "fit": time_fit,
           "parquet": convert, "minibatch": time_minibatch,
           "mlpack_iteration": time_mlpack_iteration, "mlpack_fit": time_mlpack_fit}[sys.argv[1]]
    print(json.dumps(job(*sys.argv[2:])))
