"""Writes the same rows in every format that the program reads, into tests/reference/formats and fuzz/corpus/tables.

    python3 tests/reference/make_formats.py

Needs numpy, pyarrow and polars. The tests compare what is read from these files, so the rows must stay the same in all.
"""

import decimal
import pathlib

import numpy
import polars
import pyarrow
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet

HERE = pathlib.Path(__file__).parent
FORMATS = HERE / "formats"
CORPUS = HERE.parent.parent / "fuzz" / "corpus" / "tables"
NAMES = ["x", "y", "z"]
ROWS = 60


def rows():
    generator = numpy.random.default_rng(7)
    narrow = generator.normal([0, 0, 5], [1, 2, 0.5], (ROWS // 2, 3))
    wide = generator.normal([6, -4, 1], [0.7, 1, 2], (ROWS // 2, 3))
    values = numpy.concatenate([narrow, wide])
    generator.shuffle(values)
    return values


def write_csv(path, values, names):
    lines = [",".join(names)] if names else []
    lines += [",".join("" if value != value else repr(float(value)) for value in row) for row in values]
    path.write_text("\n".join(lines) + "\n")


def table(values, nulls=False):
    column = lambda i: pyarrow.array(values[:, i], from_pandas=nulls)
    return pyarrow.table({name: column(i) for i, name in enumerate(NAMES)})


def mixed(count):
    """Columns of many types, of which six hold numbers."""
    place = numpy.arange(count)
    cents = [decimal.Decimal(int(i)) / 100 for i in place * place]
    return pyarrow.table(
        {
            "id": pyarrow.array([f"row {i}, \"{i}\"" for i in place]),
            "double": pyarrow.array(numpy.sin(place)),
            "single": pyarrow.array(numpy.cos(place).astype("f4")),
            "half": pyarrow.array((place / 8).astype("f2")),
            "long": pyarrow.array(place * place - 100, pyarrow.int64()),
            "tiny": pyarrow.array((place * 5 % 256).astype("u1")),
            "cents": pyarrow.array(cents, pyarrow.decimal128(12, 2)),
            "flag": pyarrow.array(place % 2 == 0),
            "time": pyarrow.array((place * 3_600_000).astype("datetime64[ms]")),
            "list": pyarrow.array([[1.0, 2.0]] * count),
            "record": pyarrow.array([{"a": 1.0, "b": "c"}] * count),
            "kind": pyarrow.array(["a", "b"] * (count // 2)).dictionary_encode(),
            "nothing": pyarrow.nulls(count),
        }
    )


def texts(count, of_views):
    """Columns of text, of places in dictionaries, and of times."""
    place = numpy.arange(count)
    text = pyarrow.string_view() if of_views else pyarrow.string()
    words = [None if i == 3 else f"a long word, number {i}" if i % 2 else f"w{i}" for i in place]
    days = place.astype("datetime64[D]")
    return pyarrow.table(
        {
            "word": pyarrow.array(words, text),
            "kind": pyarrow.array([None if i == 4 else f"kind {i // 3}" for i in place]).dictionary_encode(),
            "level": pyarrow.array(numpy.sqrt(place // 2)).dictionary_encode(),
            "took": pyarrow.array((place * place).astype("timedelta64[us]")),
            "day": pyarrow.array(days - numpy.timedelta64(5, "D"), pyarrow.date32()),
            "local": pyarrow.array((place * 86_399_999).astype("datetime64[ms]")),
            "utc": pyarrow.array(place * 1001, pyarrow.timestamp("us", "UTC")),
            "x": pyarrow.array([None if i == 5 else float(numpy.sin(i)) for i in place]),
        }
    )


def write_texts(folder):
    """The same rows as a table, a file and a stream whose dictionaries grow."""
    pyarrow.parquet.write_table(texts(20, False), folder / "texts.parquet")
    pyarrow.feather.write_feather(texts(20, True), folder / "texts.arrow", compression="lz4")
    options = pyarrow.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pyarrow.ipc.new_stream(str(folder / "texts.arrows"), texts(20, True).schema, options=options) as writer:
        for first, rows in [(0, 9), (9, 20)]:
            writer.write_table(texts(rows, True).slice(first))


def write_stream(path, content, rows_per_batch):
    with pyarrow.ipc.new_stream(str(path), content.schema) as writer:
        writer.write_table(content, max_chunksize=rows_per_batch)


def write_formats():
    FORMATS.mkdir(exist_ok=True)
    values = rows()
    write_csv(FORMATS / "rows.csv", values, NAMES)
    numpy.save(FORMATS / "rows.npy", values)
    for codec in ["snappy", "lz4", "zstd", "gzip", "brotli"]:
        path = FORMATS / f"{codec}.parquet"
        pyarrow.parquet.write_table(table(values), path, compression=codec, row_group_size=25, store_schema=False)
    plain = {"compression": "none", "use_dictionary": False, "data_page_version": "2.0"}
    pyarrow.parquet.write_table(table(values), FORMATS / "pages_v2.parquet", data_page_size=128, **plain)
    polars.from_arrow(table(values)).write_parquet(FORMATS / "polars.parquet")
    for codec in ["lz4", "zstd", "uncompressed"]:
        path = FORMATS / f"{codec}.arrow"
        pyarrow.feather.write_feather(table(values), path, compression=codec, chunksize=25)
    write_stream(FORMATS / "stream.arrows", table(values), 17)
    polars.from_arrow(table(values)).write_ipc(FORMATS / "polars.arrow")
    gaps = values.copy()
    gaps[numpy.random.default_rng(8).random(gaps.shape) < 0.1] = numpy.nan
    write_csv(FORMATS / "gaps.csv", gaps, NAMES)
    pyarrow.parquet.write_table(table(gaps, nulls=True), FORMATS / "nulls.parquet", store_schema=False)
    pyarrow.parquet.write_table(table(gaps), FORMATS / "nans.parquet", store_schema=False)
    pyarrow.feather.write_feather(table(gaps, nulls=True), FORMATS / "nulls.arrow", compression="lz4")
    pyarrow.parquet.write_table(mixed(20), FORMATS / "mixed.parquet")
    pyarrow.feather.write_feather(mixed(20), FORMATS / "mixed.arrow", compression="zstd")
    write_texts(FORMATS)


def write_corpus():
    CORPUS.mkdir(parents=True, exist_ok=True)
    values = rows()[:6]
    for name, array in [
        ("c", values),
        ("fortran", numpy.asfortranarray(values)),
        ("single", values.astype(">f4")),
        ("short", (values * 100).astype("i2")),
        ("line", values[:, 0]),
    ]:
        numpy.save(CORPUS / f"{name}.npy", array)
    small = table(values, nulls=True)
    for codec in ["none", "snappy", "lz4", "zstd", "gzip"]:
        path = CORPUS / f"{codec}.parquet"
        pyarrow.parquet.write_table(small, path, compression=codec, row_group_size=4, store_schema=False)
    plain = {"compression": "none", "use_dictionary": False, "data_page_version": "2.0"}
    pyarrow.parquet.write_table(small, CORPUS / "v2.parquet", store_schema=False, **plain)
    columns = ["id", "half", "long", "cents", "flag", "time", "record"]
    pyarrow.parquet.write_table(mixed(4).select(columns), CORPUS / "mixed.parquet", store_schema=False)
    for codec in ["lz4", "zstd", "uncompressed"]:
        pyarrow.feather.write_feather(small, CORPUS / f"{codec}.arrow", compression=codec, chunksize=4)
    pyarrow.feather.write_feather(mixed(4), CORPUS / "mixed.arrow", compression="uncompressed")
    write_stream(CORPUS / "stream.arrows", small, 4)
    pyarrow.feather.write_feather(texts(6, True), CORPUS / "texts.arrow", compression="uncompressed")


if __name__ == "__main__":
    write_formats()
    write_corpus()
