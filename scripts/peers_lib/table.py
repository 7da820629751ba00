"""Results of a run as Markdown."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence

Run = Dict[str, Any]
DataSet = Dict[str, Any]

OBMM, OEM = "gmm-bmm, oBMM", "gmm-bmm, oEM"
OBMM_IN_MEMORY, OEM_IN_MEMORY = "the library, oBMM, rows in memory", "the library, oEM, rows in memory"
SKLEARN, ITERATION = "scikit-learn, whole default fit", "scikit-learn, one EM iteration"
POLARS, ARMADILLO, TRUTH = "polars", "Armadillo, gmm_full", "the true model"
WITHOUT_GAPS, MINI_BATCH = "gmm-bmm, oBMM, the same rows without gaps", "scikit-learn, MiniBatchKMeans"
MLPACK, MLPACK_ITERATION = "mlpack, gmm_train", "mlpack, one EM iteration"

COLUMNS: Sequence[tuple] = (
    ("rows/s read", lambda run: number(run.get("rows_per_second"), 0)),
    ("s to read", lambda run: number(run.get("read_seconds"), 3)),
    # The time of an iteration is a difference of times, which can be negative on small sets.
    ("s to learn", lambda run: number(run.get("learn_seconds") if run.get("learn_seconds", 0) > 0 else None, 3)),
    ("start", lambda run: number(run.get("start_seconds"), 3)),
    ("pass", lambda run: number(run.get("pass_seconds"), 3)),
    ("revisions", lambda run: number(revising(run), 3)),
    ("s to score", lambda run: number(run.get("score_seconds"), 3)),
    ("s in all", lambda run: number(run.get("wall_seconds"), 3)),
    ("passes", lambda run: run.get("passes", "–")),
    ("peak MB", lambda run: number(run.get("peak_megabytes"), 0)),
    ("held-out log-likelihood", lambda run: number(run.get("log_likelihood"), 4)),
)

NOTES = """\
- Times are wall seconds, the minimum of {repeats} runs (one run for scikit-learn's whole fit, Armadillo and mlpack's gmm_train). Only ratios
  of times within this page are meaningful.
- Every program has one thread for its work. `gmm-bmm` parses on a second thread while it learns, so its `s in all` is
  less than reading plus learning; `s to read` and `s to learn` are the times spent on each. If both threads share a core,
  as on many rented machines, each takes longer. The library reads all rows and then learns them, on one thread.
- `s in all` is the lifetime of the process. For scikit-learn, Armadillo and mlpack it includes scoring the test rows. polars
  reads the rows for scikit-learn and mlpack.
- One EM iteration is a third of the difference between a fit of four iterations and a fit of one iteration, both from the
  same initial parameters, so it contains no k-means. mlpack's is measured in the same way. It contains the log-likelihood of
  all rows, which mlpack computes in every iteration to test for convergence.
- scikit-learn's passes are its EM iterations, without k-means. Armadillo has 10 of k-means and 10 of EM. mlpack, called from
  Python with one trial and full covariances, has at most 10 of k-means and 10 of EM; `s to learn` contains both.
- `start`, `pass` and `revisions` (those at the end of the stream included) are the parts of `s to learn`. `s to score` is the
  time of the log-densities of all training rows.
- Rows with gaps are learned by gmm-bmm alone, once with their gaps and once as they were before values were removed. MiniBatchKMeans reads its
  Parquet file with polars and has scikit-learn's default settings; it learns centres and no densities.
- Peak memory is that of the process. Values below some 15 MB cannot be observed, because the script itself uses that much.
"""


def number(value: Optional[float], places: int) -> str:
    return "–" if value is None else f"{value:,.{places}f}"


def lines_of_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> List[str]:
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return ["| " + " | ".join(str(cell) for cell in line) + " |" for line in [header, rule, *rows]]


def title(data: DataSet) -> str:
    return f"{data['name']}, n = {data['rows']:,}"


def revising(run: Run) -> Optional[float]:
    parts = [run.get("revision_seconds"), run.get("end_seconds")]
    return None if None in parts else sum(parts)


def of_library(data: DataSet, name: str, other: str, of_other: str) -> Optional[float]:
    """A time of the library divided by one of another program."""
    return ratio(find(data, OBMM_IN_MEMORY).get(name), find(data, other).get(of_other))


def find(data: DataSet, who: str) -> Run:
    return next((run for run in data["runs"] if run["who"] == who), {})


def ratio(above: Optional[float], below: Optional[float]) -> Optional[float]:
    return above / below if above is not None and below and below > 0 else None


def difference(left: Optional[float], right: Optional[float]) -> Optional[float]:
    return left - right if left is not None and right is not None else None


def overlap(data: DataSet, parts: str) -> Optional[float]:
    """The time of the whole process divided by the larger of reading and learning in the run `parts`."""
    run = find(data, parts)
    return ratio(find(data, OBMM).get("wall_seconds"), max(run.get("read_seconds", 0), run.get("learn_seconds", 0)))


RATIOS: Sequence[tuple] = (
    ("pass of oBMM / one scikit-learn iteration", 2,
     lambda data: of_library(data, "pass_seconds", ITERATION, "learn_seconds")),
    ("whole oBMM fit / one scikit-learn iteration, in memory", 2,
     lambda data: of_library(data, "learn_seconds", ITERATION, "learn_seconds")),
    ("one iteration of our EM / one of scikit-learn", 2,
     lambda data: of_library(data, "iteration_seconds", ITERATION, "learn_seconds")),
    ("one iteration of our EM / one of mlpack", 2,
     lambda data: of_library(data, "iteration_seconds", MLPACK_ITERATION, "learn_seconds")),
    ("scikit-learn's scoring / ours", 1,
     lambda data: ratio(find(data, ITERATION).get("score_seconds"), find(data, OBMM_IN_MEMORY).get("score_seconds"))),
    ("scikit-learn's whole fit / whole oBMM fit, in memory", 1,
     lambda data: ratio(find(data, SKLEARN).get("learn_seconds"), find(data, OBMM_IN_MEMORY).get("learn_seconds"))),
    ("whole oBMM fit with gaps / without", 2,
     lambda data: ratio(find(data, OBMM).get("learn_seconds"), find(data, WITHOUT_GAPS).get("learn_seconds"))),
    ("MiniBatchKMeans / oBMM, from file", 2,
     lambda data: ratio(find(data, MINI_BATCH).get("wall_seconds"), find(data, OBMM).get("wall_seconds"))),
    ("oEM / oBMM, in memory", 2,
     lambda data: ratio(find(data, OEM_IN_MEMORY).get("learn_seconds"), find(data, OBMM_IN_MEMORY).get("learn_seconds"))),
    ("rows/s read, the library / polars", 2,
     lambda data: ratio(find(data, OBMM_IN_MEMORY).get("rows_per_second"), find(data, POLARS).get("rows_per_second"))),
    ("fit from file / larger of reading and learning, while both run", 2, lambda data: overlap(data, OBMM)),
    ("fit from file / larger of reading and learning, each alone", 2, lambda data: overlap(data, OBMM_IN_MEMORY)),
    ("peak memory of the oBMM fit, MB", 0, lambda data: find(data, OBMM).get("peak_megabytes")),
    ("held-out, oBMM less the true model, nats", 4,
     lambda data: difference(find(data, OBMM).get("log_likelihood"), find(data, TRUTH).get("log_likelihood"))),
    ("held-out, oBMM less scikit-learn, nats", 4,
     lambda data: difference(find(data, OBMM).get("log_likelihood"), find(data, SKLEARN).get("log_likelihood"))),
)


def render(results: Dict[str, Any]) -> str:
    """The whole page."""
    sets = results["sets"]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    machine = results["machine"]
    lines = ["# Comparison with other tools", "",
             f"Made by `scripts/bench_peers.py` on {machine['processor']}, {machine['cores']} cores, with {versions}.",
             "", NOTES.format(repeats=results["repeats"])]
    # One row for each set: there are more sets than ratios.
    lines += lines_of_table(["set", *(name for name, _, _ in RATIOS)],
                            [[data["name"], *(number(of(data), places) for _, places, of in RATIOS)] for data in sets])
    for data in sets:
        cells: Callable[[Run], List[str]] = lambda run: [run["who"], *(show(run) for _, show in COLUMNS)]
        lines += ["", f"## {title(data)}", ""]
        lines += lines_of_table(["", *(name for name, _ in COLUMNS)], [cells(run) for run in data["runs"]])
    if results["left_out"]:
        lines += ["", "Left out: " + "; ".join(results["left_out"]) + "."]
    return "\n".join(lines) + "\n"
