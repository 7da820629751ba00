"""The sets of the density-estimation literature, prepared as Papamakarios, Pavlakou and Murray (2017) describe and as their
published program does.

Each table holds the training and validation rows first and the test rows last; the catalogue says how many test rows there
are. Columns are scaled to mean 0 and standard deviation 1 as in the publication, up to the factor between two definitions of the
standard deviation, 1 + 1e-6 or less. Where it shuffles or draws rows or adds noise, the random numbers here are others than theirs. These preparers need numpy, and that of BSDS300 h5py.
"""

from __future__ import annotations

import gzip
import io
from typing import Iterator, List

from .raw import PrepareError, Raw

POWER = "active_power voltage sub_metering_1 sub_metering_2 sub_metering_3 time".split()
BSDS300 = [f"pixel{i}" for i in range(1, 64)]
SEED = 42


def numpy_or_error():
    try:
        import numpy
    except ImportError as error:
        raise PrepareError("this set needs numpy: pip install numpy") from error
    return numpy


def scaled(rows, fitted):
    """Scales columns by mean and standard deviation of the first `fitted` rows."""
    unit = rows[:fitted].std(axis=0)
    unit[unit == 0] = 1
    return (rows - rows[:fitted].mean(axis=0)) / unit


def before_test(rows) -> int:
    return len(rows) - len(rows) // 10


def cells(rows) -> Iterator[List[str]]:
    for row in rows:
        yield [f"{value:.9g}" for value in row]


def names(rows) -> List[str]:
    return [f"x{i}" for i in range(1, rows.shape[1] + 1)]


def power(raw: Raw):
    """Household power: rows with gaps left out, shuffled, without reactive power and intensity, noise of one quantum."""
    numpy = numpy_or_error()
    kept = []
    with raw.text("household_power_consumption.txt") as stream:
        if not stream.readline().startswith("Date;Time;Global_active_power"):
            raise PrepareError("line 1 should name the columns, beginning with Date;Time;Global_active_power")
        for number, line in enumerate(stream, start=2):
            fields = line.strip().split(";")
            if len(fields) != 9:
                raise PrepareError(f"line {number} has {len(fields)} fields; expected 9")
            if "?" in fields or "" in fields:
                continue
            hours, minutes, _ = fields[1].split(":")
            kept.append([float(fields[i]) for i in (2, 4, 6, 7, 8)] + [60 * int(hours) + int(minutes)])
    random = numpy.random.RandomState(SEED)
    rows = numpy.array(kept)
    random.shuffle(rows)
    rows += random.rand(*rows.shape) * [0.001, 0.01, 1, 1, 1, 0]
    return POWER, scaled(rows, before_test(rows))


def gas(raw: Raw):
    """Ethylene and CO: a quarter of the rows, drawn at random and in random order, without time and concentrations, and
    without one of each pair of columns whose correlation exceeds 0.98."""
    numpy = numpy_or_error()
    with raw.text("ethylene_CO.txt") as stream:
        stream.readline()
        try:
            kept = numpy.loadtxt(stream, ndmin=2)
        except ValueError as error:
            raise PrepareError(f"each line should hold 19 numbers: {error}") from error
    if kept.shape[1] != 19:
        raise PrepareError("each line should hold 19 numbers: time, two concentrations and 16 sensors")
    chosen = numpy.random.RandomState(SEED).permutation(len(kept))[: round(len(kept) / 4)]
    rows = kept[chosen, 3:]
    while True:
        close = (numpy.corrcoef(rows.T) > 0.98).sum(axis=1)
        if (close <= 1).all():
            break
        rows = numpy.delete(rows, int(numpy.argmax(close > 1)), axis=1)
    return names(rows), scaled(rows, len(rows))


def without_repeats(rows):
    """The columns whose smallest value occurs five times at most. The publication speaks of columns that repeat a value often;
    its program counts the smallest value, and so does this."""
    return [j for j in range(rows.shape[1]) if (rows[:, j] == rows[:, j].min()).sum() <= 5]


def hepmass(raw: Raw):
    """HEPMASS with mass 1000: signal rows, without columns that repeat values."""
    numpy = numpy_or_error()

    def signal(name):
        with raw.binary(f"{name}.gz", name) as stream:
            head = stream.read(2)
            rest = io.BytesIO(head + stream.read())
            text = gzip.open(rest) if head == b"\x1f\x8b" else rest
            rows = numpy.loadtxt(text, delimiter=",", skiprows=1, ndmin=2)
        if rows.shape[1] < 28:
            raise PrepareError(f"{name} has {rows.shape[1]} columns; expected a label and at least 27 features")
        return rows[rows[:, 0] == 1, 1:28]

    train, test = signal("1000_train.csv"), signal("1000_test.csv")
    rows = numpy.vstack([train, test])[:, without_repeats(train)]
    return names(rows), scaled(rows, len(train))


def miniboone(raw: Raw):
    """MiniBooNE: signal events in the order of the file, without those whose first number is below -100, which were not
    measured, and without the columns that repeat values."""
    numpy = numpy_or_error()
    with raw.text("MiniBooNE_PID.txt") as stream:
        counts = stream.readline().split()
        if len(counts) != 2 or not counts[0].isdigit():
            raise PrepareError("line 1 should hold two counts: signal and background events")
        rows = numpy.loadtxt(stream, max_rows=int(counts[0]), ndmin=2)
    if rows.shape[1] != 50:
        raise PrepareError(f"an event has {rows.shape[1]} numbers; expected 50")
    rows = rows[rows[:, 0] >= -100]
    rows = rows[:, without_repeats(rows)]
    return names(rows), scaled(rows, before_test(rows))


def bsds300(raw: Raw):
    """BSDS300: patches of 8 by 8 pixels with noise, less their mean, without the last pixel, from the authors' file."""
    numpy = numpy_or_error()
    try:
        import h5py
    except ImportError as error:
        raise PrepareError("this set needs h5py: pip install h5py") from error
    try:
        with raw.binary("BSDS300.hdf5") as stream, h5py.File(io.BytesIO(stream.read()), "r") as file:
            rows = numpy.vstack([file[part][:] for part in ("train", "validation", "test")])
    except (OSError, KeyError) as error:
        raise PrepareError(f"this is not the authors' BSDS300.hdf5, unpacked: {error}") from error
    if rows.shape[1] != len(BSDS300):
        raise PrepareError(f"a patch has {rows.shape[1]} numbers; expected {len(BSDS300)}")
    return BSDS300, rows


SETS = {"power": power, "gas": gas, "hepmass": hepmass, "miniboone43": miniboone, "bsds300": bsds300}
