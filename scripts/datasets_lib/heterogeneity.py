"""Heterogeneity Activity Recognition as sixteen numbers per sensor reading.

The paper says "16 attributes" and 3,930,257 rows, but does not say which. The archive has four files (phone
or watch, accelerometer or gyroscope) of some 34 million readings with ten columns, six of them numbers. This
module keeps the six numbers and converts the words to numbers:

    Index Arrival_Time Creation_Time x y z      unchanged
    watch gyroscope                             1 or 0, from the name of the file
    user device                                 codes 1, 2, ... in the order of USERS and DEVICES
    bike sit stand walk stairsup stairsdown     1 for the activity, all 0 where it is `null`

It takes as many rows as the catalogue says, evenly spaced over the four files in sequence. It reads the
archive twice and holds one line in memory.
"""

from __future__ import annotations

from typing import Dict, Iterator, List

from .raw import PrepareError, Raw

FILES = ("Phones_accelerometer.csv", "Phones_gyroscope.csv", "Watch_accelerometer.csv", "Watch_gyroscope.csv")
COLUMNS = "Index,Arrival_Time,Creation_Time,x,y,z,User,Model,Device,gt"
ACTIVITIES = ("bike", "sit", "stand", "walk", "stairsup", "stairsdown")
USERS = "abcdefghi"
MODELS = ("nexus4", "s3", "s3mini", "samsungold", "gear", "lgwatch")
DEVICES = tuple(f"{model}_{number}" for model in MODELS for number in (1, 2))
HEADER = COLUMNS.split(",")[:6] + ["watch", "gyroscope", "user", "device", *ACTIVITIES]


def count_lines(raw: Raw, member: str) -> int:
    count, last = 0, b"\n"
    with raw.binary(member) as stream:
        while True:
            piece = stream.read(1 << 20)
            if not piece:
                break
            count, last = count + piece.count(b"\n"), piece[-1:]
    return count + (last != b"\n")


def codes(words) -> Dict[str, int]:
    return {word: number for number, word in enumerate(words, start=1)}


def code_of(word: str, known: Dict[str, int]) -> str:
    """The code of a word. A word outside the documented lists gets the next free number."""
    return str(known.setdefault(word, len(known) + 1))


def clean_rows(raw: Raw, wanted: int) -> Iterator[List[str]]:
    total = sum(count_lines(raw, member) - 1 for member in FILES)
    wanted = min(wanted, total)
    users, devices = codes(USERS), codes(DEVICES)
    at = 0
    for member in FILES:
        kind = ["1" if member.startswith("Watch") else "0", "1" if "gyroscope" in member else "0"]
        with raw.text(member) as stream:
            if stream.readline().strip() != COLUMNS:
                raise PrepareError(f"{member} does not start with the line {COLUMNS}")
            for line in stream:
                # Row `at` is taken if the count of evenly spaced rows up to it increases there.
                if (at + 1) * wanted // total > at * wanted // total:
                    cells = line.rstrip("\n").split(",")
                    if len(cells) != 10:
                        raise PrepareError(f"{member}: reading {at + 1} has {len(cells)} cells; expected 10")
                    activity = ["1" if cells[9] == one else "0" for one in ACTIVITIES]
                    words = [code_of(cells[6], users), code_of(cells[8], devices)]
                    yield cells[:6] + kind + words + activity
                at += 1
