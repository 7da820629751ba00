#!/usr/bin/env python3
"""Learn a Gaussian mixture from a Spark source with gmm-bmm: oDMM, one shard for each partition.

    spark-submit examples/pyspark/odmm.py --source data/ --k 5 --out model.json
    spark-submit examples/pyspark/odmm.py --source table.parquet --format parquet --columns x,y,z --k 5 --out model.json

The driver learns the prior from the first rows of the first partition. Then each partition pipes its rows to
'gmm-bmm fit --data -' on its own worker (the first partition without the rows of the prior). Only the shard's posterior
returns to the driver, which merges. A task that Spark retries counts once, because a partition has one result. If a
partition fails finally, the job fails and names it. The source must give the same rows in the same order when it is read
again, as files do.

Text is passed on unchanged, one row per line. The script sends the program to the workers, so only the driver needs it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark import SparkFiles
from pyspark.sql import SparkSession


def arguments(argv=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, help="file, folder or pattern, on any file system that Spark reads")
    parser.add_argument("--format", choices=["text", "parquet"], default="text")
    parser.add_argument("--header", action="store_true", help="text files begin with a line of column names")
    parser.add_argument("--columns", help="columns of a Parquet source, by name [default: all that hold numbers]")
    parser.add_argument("--partitions", type=int, help="combine Spark's partitions to this number [default: unchanged]")
    parser.add_argument("--k", required=True, type=int, help="components")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=5000,
                        help="number of rows of the first partition for the prior")
    parser.add_argument("--fit-args", default="", help="further options for 'gmm-bmm fit', such as '--bad-rows skip'")
    parser.add_argument("--gmm-bmm", default="gmm-bmm", help="the program")
    parser.add_argument("--out", required=True, help="file for the model, on the driver")
    parsed = parser.parse_args(argv)
    parsed.program = shutil.which(parsed.gmm_bmm)
    if parsed.program is None:
        parser.error(f"'{parsed.gmm_bmm}' is not a program: install gmm-bmm, or give its path with --gmm-bmm")
    return parsed


def text_lines(spark: SparkSession, args):
    """The rows as lines, and the line of column names if there is one."""
    lines = spark.sparkContext.textFile(args.source)
    header = lines.first() if args.header else None
    if header is not None:
        lines = lines.filter(lambda line: line != header)
    return lines, header


def parquet_lines(spark: SparkSession, args):
    frame = spark.read.parquet(args.source)
    numeric = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
    wanted = args.columns.split(",") if args.columns else [n for n, t in frame.dtypes if t.startswith(numeric)]
    frame = frame.select(*[frame[f"`{name}`"].cast("double") for name in wanted])
    header = ",".join('"' + name.replace('"', '""') + '"' for name in wanted)
    # The shortest text that reads back as the same number. A null becomes an empty cell, which gmm-bmm reports.
    cells = lambda row: ",".join("" if value is None else repr(value) for value in row)  # noqa: E731
    return frame.rdd.map(cells), header


def run(command: list[str], lines=None) -> None:
    """Runs gmm-bmm with lines as its standard input. Raises its output if it fails."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=said, stdout=said)
        try:
            for line in lines or []:
                process.stdin.write(line.encode() + b"\n")
            process.stdin.close()
        except BrokenPipeError:
            pass  # The program has stopped reading; its output says why.
        if process.wait() != 0:
            said.seek(0)
            raise RuntimeError(said.read().decode(errors="replace").strip())


def shard_learner(prior: bytes, header, shards: int, warmup: int, program_name: str, fit_args: list[str]):
    """The function for each partition. It returns the index and the shard's model, or None if there are no rows."""

    def learn(index: int, lines):
        lines = itertools.islice(lines, warmup if index == 0 else 0, None)
        first = next(lines, None)
        if first is None:
            return [(index, None)]
        with tempfile.TemporaryDirectory() as folder:
            program = shutil.copy(SparkFiles.get(program_name), folder)
            os.chmod(program, stat.S_IRWXU)
            prior_file, out = Path(folder, "prior.json"), Path(folder, "shard.json")
            prior_file.write_bytes(prior)
            command = [program, "fit", "--quiet", "--threads", "1", "--data", "-", "--prior", str(prior_file),
                       "--shard", f"{index + 1}/{shards}", "--out", str(out), *fit_args]
            names = [header] if header is not None else []
            try:
                run(command, itertools.chain(names, [first], lines))
            except RuntimeError as error:
                raise RuntimeError(f"shard {index + 1} of {shards}: {error}") from None
            return [(index, out.read_bytes())]

    return learn


def learn_prior(lines, header, args, folder: Path) -> Path:
    warmup = args.warmup
    head = lines.context.runJob(lines, lambda rows: itertools.islice(rows, warmup), [0])
    if len(head) < warmup:
        sys.exit(f"error: the first partition has {len(head)} rows, fewer than the warm-up of {warmup}: "
                 "lower --warmup or --partitions")
    prior = folder / "prior.json"
    names = [header] if header is not None else []
    run([args.program, "fit", "--data", "-", "--k", str(args.k), "--seed", str(args.seed), "--out", str(prior),
         *header_args(header), *shlex.split(args.fit_args)], itertools.chain(names, head))
    return prior


def header_args(header) -> list[str]:
    return ["--no-header"] if header is None else []


def merge(args, prior: Path, shards: list, folder: Path) -> None:
    empty = [index + 1 for index, model in shards if model is None]
    files = []
    for index, model in shards:
        if model is not None:
            files.append(folder / f"shard-{index + 1}.json")
            files[-1].write_bytes(model)
    if empty:
        print(f"note: partitions {empty} of {len(shards)} have no rows", file=sys.stderr)
    partial = ["--partial", "--quiet"] if empty else []
    command = [args.program, "merge", "--prior", str(prior), "--out", args.out, "--expect", str(len(files)), *partial]
    subprocess.run(command + [str(file) for file in files], check=True)


def main(argv=None) -> None:
    args = arguments(argv)
    spark = SparkSession.builder.appName("gmm-bmm oDMM").getOrCreate()
    try:
        lines, header = (text_lines if args.format == "text" else parquet_lines)(spark, args)
        if args.partitions:
            lines = lines.coalesce(args.partitions)
        spark.sparkContext.addFile(args.program)
        with tempfile.TemporaryDirectory() as held:
            folder = Path(held)
            prior = learn_prior(lines, header, args, folder)
            count = lines.getNumPartitions()
            fit_args = header_args(header) + shlex.split(args.fit_args)
            learn = shard_learner(prior.read_bytes(), header, count, args.warmup, Path(args.program).name, fit_args)
            shards = sorted(lines.mapPartitionsWithIndex(learn).collect())
            if [index for index, _ in shards] != list(range(count)):
                missing = sorted(set(range(count)) - {index for index, _ in shards})
                sys.exit(f"error: Spark returned nothing for partitions {missing}")
            merge(args, prior, shards, folder)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
