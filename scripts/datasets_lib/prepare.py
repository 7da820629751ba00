"""Converts raw files to clean rows, with one preparer for each set.

A preparer takes a `Raw` and the number of rows that the catalogue expects, and returns a `Table`: the header
and an iterator over rows of text cells. Numbers keep the text of the source, without spaces around it.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
import zipfile
from dataclasses import dataclass
from typing import Callable, Dict, Iterable, Iterator, List

from . import density
from .heterogeneity import HEADER as HETEROGENEITY, clean_rows as heterogeneity_rows
from .raw import PrepareError, Raw


@dataclass
class Table:
    header: List[str]
    rows: Iterable[List[str]]


Preparer = Callable[[Raw, int], Table]

ABALONE = "Sex Length Diameter Height Whole_weight Shucked_weight Viscera_weight Shell_weight Rings".split()
BANKNOTE = "variance skewness curtosis entropy class".split()
AIRFOIL = "frequency attack_angle chord_length velocity displacement_thickness sound_pressure".split()
TRANSFUSION = "recency frequency monetary time donated".split()
CCPP = "AT V AP RH PE".split()
MAGIC04 = "fLength fWidth fSize fConc fConc1 fAsym fM3Long fM3Trans fAlpha fDist class".split()
COMPACTIV = (
    "lread lwrite scall sread swrite fork exec rchar wchar pgout ppgout "
    "pgfree pgscan atch pgin ppgin pflt vflt runqsz freemem freeswap usr"
).split()
PLASTIC = "Strength Temperature Pressure".split()
KINEMATICS = [f"theta{i}" for i in range(1, 9)] + ["y"]
ARABIC = [f"mean_mfcc{i}" for i in range(1, 14)]
YEARMSD = ["year"] + [f"f{i}" for i in range(1, 91)]
MINIBOONE = [f"pid{i}" for i in range(1, 51)]


# ---- text with one row on each line ------------------------------------------------------------------


def is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def split_cells(line: str) -> List[str]:
    cells = line.split(",") if "," in line else line.split()
    return [cell.strip().strip("'\"") for cell in cells]


def attribute_name(line: str) -> str:
    """The name in an ARFF or KEEL line such as `@attribute 'theta1' real` or `@attribute lread real[0,1]`."""
    return re.split(r"[\s\[{]+", line.strip(), maxsplit=2)[1].strip("'\"")


def data_lines(stream: Iterable[str], header: List[str]) -> Iterator[tuple]:
    """Yields (line number, cells) of every data line. Skips comments. Declared names must equal the header."""
    declared: List[str] = []
    for number, line in enumerate(stream, start=1):
        line = line.strip()
        if line.lower().startswith("@attribute"):
            declared.append(attribute_name(line))
        elif line and line[0] not in "@%#":
            yield number, split_cells(line)
    if declared and [one.lower() for one in declared] != [one.lower() for one in header]:
        raise PrepareError(f"the source declares the columns {', '.join(declared)}; expected {', '.join(header)}")


def delimited_rows(stream: Iterable[str], header: List[str]) -> Iterator[List[str]]:
    for count, (number, cells) in enumerate(data_lines(stream, header)):
        # No source has words in its second column, so a word there means that the line has column names.
        if count == 0 and len(cells) > 1 and not is_number(cells[1]):
            continue
        if len(cells) != len(header):
            raise PrepareError(f"line {number} has {len(cells)} cells; expected {len(header)}")
        yield cells


def delimited(header: List[str], *members: str) -> Preparer:
    """A preparer for comma, tab or blank separated text, with or without ARFF, KEEL or CSV header lines."""

    def prepare(raw: Raw, _rows: int) -> Table:
        def rows() -> Iterator[List[str]]:
            with raw.text(*members) as stream:
                yield from delimited_rows(stream, header)

        return Table(header, rows())

    return prepare


# ---- Combined Cycle Power Plant: a spreadsheet -------------------------------------------------------

SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def shortest(cell: str) -> str:
    """The short form of a number: a spreadsheet stores 5.11 as 5.1100000000000003."""
    value = float(cell)
    return str(int(value)) if value.is_integer() else repr(value)


def first_sheet_path(book: zipfile.ZipFile) -> str:
    sheet = ElementTree.fromstring(book.read("xl/workbook.xml")).find(f"{SHEET}sheets/{SHEET}sheet")
    if sheet is None:
        raise PrepareError("the workbook has no sheet")
    for relation in ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels")):
        if relation.get("Id") == sheet.get(RELATION):
            return "xl/" + relation.get("Target", "").replace("/xl/", "", 1)
    raise PrepareError("the workbook does not say where its first sheet is")


def shared_strings(book: zipfile.ZipFile) -> List[str]:
    if "xl/sharedStrings.xml" not in book.namelist():
        return []
    root = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
    return ["".join(text.text or "" for text in item.iter(f"{SHEET}t")) for item in root.iter(f"{SHEET}si")]


def sheet_rows(book: zipfile.ZipFile) -> Iterator[List[str]]:
    strings = shared_strings(book)
    with book.open(first_sheet_path(book)) as stream:
        for _event, row in ElementTree.iterparse(stream):
            if row.tag != f"{SHEET}row":
                continue
            cells = []
            for cell in row.iter(f"{SHEET}c"):
                text = cell.findtext(f"{SHEET}v") or ""
                cells.append(strings[int(text)] if cell.get("t") == "s" else text)
            row.clear()
            yield cells


def prepare_ccpp(raw: Raw, _rows: int) -> Table:
    def rows() -> Iterator[List[str]]:
        with raw.binary("Folds5x2_pp.xlsx") as stream, zipfile.ZipFile(stream) as book:
            for number, cells in enumerate(sheet_rows(book), start=1):
                if number == 1 and cells != CCPP:
                    raise PrepareError(f"sheet 1 starts with {', '.join(cells)}; expected {', '.join(CCPP)}")
                if len(cells) != len(CCPP):
                    raise PrepareError(f"row {number} of sheet 1 has {len(cells)} cells; expected {len(CCPP)}")
                if number > 1:
                    yield [shortest(cell) for cell in cells]

    return Table(CCPP, rows())


# ---- Spoken Arabic Digit: the mean of each utterance -------------------------------------------------


def blocks(stream: Iterable[str]) -> Iterator[List[List[str]]]:
    """Yields the lines between blank lines, as lists of cells."""
    block: List[List[str]] = []
    for line in stream:
        cells = line.split()
        if cells:
            block.append(cells)
        elif block:
            yield block
            block = []
    if block:
        yield block


def block_means(block: List[List[str]], place: str) -> List[str]:
    if any(len(frame) != len(ARABIC) for frame in block):
        raise PrepareError(f"{place} has a frame that does not hold {len(ARABIC)} numbers")
    sums = (math.fsum(float(cell) for cell in column) for column in zip(*block))
    return [f"{total / len(block):.10g}" for total in sums]


def prepare_arabic(raw: Raw, _rows: int) -> Table:
    def rows() -> Iterator[List[str]]:
        for member in ("Train_Arabic_Digit.txt", "Test_Arabic_Digit.txt"):
            with raw.text(member) as stream:
                for number, block in enumerate(blocks(stream), start=1):
                    yield block_means(block, f"{member}: utterance {number}")

    return Table(ARABIC, rows())


# ---- MiniBooNE: a line of counts, then one event on each line ----------------------------------------


def prepare_miniboone(raw: Raw, _rows: int) -> Table:
    def rows() -> Iterator[List[str]]:
        with raw.text("MiniBooNE_PID.txt") as stream:
            counts = stream.readline().split()
            if len(counts) != 2 or not all(count.isdigit() for count in counts):
                raise PrepareError("line 1 should hold two counts: signal and background events")
            promised, seen = sum(map(int, counts)), 0
            for seen, line in enumerate(filter(str.strip, stream), start=1):
                cells = line.split()
                if len(cells) != len(MINIBOONE):
                    raise PrepareError(f"event {seen} has {len(cells)} numbers; expected {len(MINIBOONE)}")
                # An event that could not be measured is filled with -999.
                if not any(float(cell) == -999.0 for cell in cells):
                    yield cells
            if seen != promised:
                raise PrepareError(f"line 1 announces {promised} events; the file has {seen}")

    return Table(MINIBOONE, rows())


# ---- Heterogeneity: four large files in one archive --------------------------------------------------


def prepare_heterogeneity(raw: Raw, rows: int) -> Table:
    return Table(HETEROGENEITY, heterogeneity_rows(raw, rows))


# ---- Northridge: the user's own file, of unknown columns ---------------------------------------------


def prepare_northridge(raw: Raw, _rows: int) -> Table:
    with raw.text("northridge.txt", "northridge.csv", "northridge.dat", "northridge.data") as stream:
        first = next((cells for _number, cells in data_lines(stream, [])), None)
    if first is None:
        raise PrepareError("the file is empty")
    named = not any(is_number(cell) for cell in first)
    header = first if named else [f"column{i}" for i in range(1, len(first) + 1)]

    def rows() -> Iterator[List[str]]:
        with raw.text("northridge.txt", "northridge.csv", "northridge.dat", "northridge.data") as stream:
            for count, (number, cells) in enumerate(data_lines(stream, header)):
                if len(cells) != len(header):
                    raise PrepareError(f"line {number} has {len(cells)} cells; line 1 has {len(header)}")
                if count or not named:
                    yield cells

    return Table(header, rows())


# ---- sets of the density-estimation literature -------------------------------------------------------


def prepare_density(name: str) -> Preparer:
    def prepare(raw: Raw, _rows: int) -> Table:
        header, rows = density.SETS[name](raw)
        return Table(header, density.cells(rows))

    return prepare


# ---- files that are clean already --------------------------------------------------------------------


def prepare_clean(raw: Raw, _rows: int) -> Table:
    with raw.text(raw.path.name) as stream:
        header = stream.readline().strip().split(",")

    def rows() -> Iterator[List[str]]:
        with raw.text(raw.path.name) as stream:
            stream.readline()
            for line in stream:
                yield line.strip().split(",")

    return Table(header, rows())


PREPARERS: Dict[str, Preparer] = {
    "abalone": delimited(ABALONE, "abalone.data", "abalone.data.txt"),
    "banknote": delimited(BANKNOTE, "data_banknote_authentication.txt", "banknote.csv"),
    "airfoil": delimited(AIRFOIL, "airfoil_self_noise.dat", "airfoil_self_noise.dat.txt"),
    "transfusion": delimited(TRANSFUSION, "transfusion.data", "Blood.csv"),
    "ccpp": prepare_ccpp,
    "magic04": delimited(MAGIC04, "magic04.data", "magic.dat"),
    "compactiv": delimited(COMPACTIV, "compactiv.dat"),
    "plastic": delimited(PLASTIC, "plastic.dat"),
    "kinematics": delimited(KINEMATICS, "dataset_2175_kin8nm.arff", "kin8nm.arff", "kin8nm.csv"),
    "arabic": prepare_arabic,
    "northridge": prepare_northridge,
    "heterogeneity": prepare_heterogeneity,
    "yearmsd": delimited(YEARMSD, "YearPredictionMSD.txt"),
    "miniboone": prepare_miniboone,
    "yearmsd_sample8162": prepare_clean,
    "watch": prepare_clean,
    **{name: prepare_density(name) for name in density.SETS},
}
