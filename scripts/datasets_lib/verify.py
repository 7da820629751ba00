"""Checks a clean CSV against the catalogue, and installs it whole or not at all."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import List

from .catalogue import Entry
from .prepare import Table


class VerifyError(Exception):
    """A CSV file does not agree with the catalogue."""


@dataclass(frozen=True)
class Facts:
    rows: int
    header: List[str]
    sha256: str


def used_positions(header: List[str], entry: Entry) -> List[int]:
    """Positions of the paper's columns, or of all columns if the catalogue does not list them."""
    if not entry.columns:
        return list(range(len(header)))
    missing = [name for name in entry.columns if name not in header]
    if missing:
        raise VerifyError(f"lacks the column {', '.join(missing)}; it has {', '.join(header)}")
    positions = [header.index(name) for name in entry.columns]
    if positions != sorted(positions):
        raise VerifyError(f"has its columns in another order: {', '.join(header)}")
    return positions


def check_row(cells: List[str], header: List[str], positions: List[int], row: int) -> None:
    if len(cells) != len(header):
        raise VerifyError(f"row {row} has {len(cells)} cells; the header has {len(header)}")
    for position in positions:
        try:
            finite = math.isfinite(float(cells[position]))
        except ValueError:
            finite = False
        if not finite:
            raise VerifyError(f"row {row}, column {header[position]}: {cells[position]!r} is not a finite number")


def check_csv(path: Path, entry: Entry) -> Facts:
    """Check rows, columns, numbers and (if the catalogue has one) the sha256, in one pass."""
    digest, rows = hashlib.sha256(), 0
    with open(path, "rb") as stream:
        first = stream.readline()
        digest.update(first)
        header = first.decode("utf-8", "replace").strip().split(",")
        positions = used_positions(header, entry)
        for rows, line in enumerate(stream, start=1):
            digest.update(line)
            check_row(line.decode("utf-8", "replace").strip().split(","), header, positions, rows)
    facts = Facts(rows, header, digest.hexdigest())
    if rows != entry.clean_rows:
        raise VerifyError(f"has {rows} rows; expected {entry.clean_rows}")
    if entry.sha256 and facts.sha256 != entry.sha256:
        raise VerifyError(f"has sha256 {facts.sha256[:16]}…; expected {entry.sha256[:16]}…")
    return facts


def write_table(table: Table, path: Path) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(",".join(table.header) + "\n")
        for cells in table.rows:
            stream.write(",".join(cells) + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def put_in_place(table: Table, target: Path, entry: Entry) -> Facts:
    """Write a temporary file, check it, then rename it. An existing file remains until a valid one is ready."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        write_table(table, temporary)
        facts = check_csv(temporary, entry)
        os.replace(temporary, target)
        return facts
    finally:
        if temporary.exists():
            temporary.unlink()
