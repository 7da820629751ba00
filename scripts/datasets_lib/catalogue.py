"""Reads datasets/catalogue.json, the list of the data sets."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional

FORMAT = "gmm-bmm catalogue"
VERSION = 1


@dataclass(frozen=True)
class Entry:
    """One data set. `rows` is the number of rows in the source; `columns` are those that the paper uses."""

    name: str
    title: str
    rows: int
    columns: List[str]
    dimensions: Optional[int]
    file: str
    bundled: bool
    sha256: Optional[str]
    licence: str
    citation: str
    sources: List[dict]
    notes: str
    units: str
    discrete: bool
    paper: dict
    # What another publication reports: its source, and pairs of a model and its score.
    published: Optional[dict] = None
    # Rows of the source that mean "no measurement" and are left out of the clean file.
    rows_left_out: int = 0

    @property
    def clean_rows(self) -> int:
        return self.rows - self.rows_left_out


def load(path: Path) -> List[Entry]:
    """The entries of the catalogue in order. Raises ValueError if the file is not a catalogue of this version."""
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    found = (document.get("format"), document.get("version"))
    if found != (FORMAT, VERSION):
        raise ValueError(f"{path}: expected {FORMAT!r} version {VERSION}, found {found[0]!r} version {found[1]!r}")
    try:
        return [Entry(**one) for one in document["sets"]]
    except TypeError as error:
        raise ValueError(f"{path}: an entry has missing or unknown fields: {error}") from error
