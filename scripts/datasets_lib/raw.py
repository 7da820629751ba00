"""Opens the raw file of a set: a plain file, or a member of a zip (or of a zip inside the zip)."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import BinaryIO, Iterator, Optional, Tuple


class PrepareError(Exception):
    """The raw file is not the expected data set."""


class Raw:
    """One raw file. Preparers ask for members by name, however they are packed."""

    def __init__(self, path: Path):
        self.path = Path(path)
        self._scratch: Optional[tempfile.TemporaryDirectory] = None
        self._inner: list = []

    def __enter__(self) -> "Raw":
        return self

    def __exit__(self, *_exc) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()

    @contextlib.contextmanager
    def binary(self, *names: str) -> Iterator[BinaryIO]:
        """The first member whose file name is one of `names`, or the file itself if it is not an archive."""
        if not self._is_archive():
            with open(self.path, "rb") as stream:
                yield stream
            return
        archive_path, member = self._find(names)
        with zipfile.ZipFile(archive_path) as archive, archive.open(member) as stream:
            yield stream

    @contextlib.contextmanager
    def text(self, *names: str) -> Iterator[io.TextIOWrapper]:
        with self.binary(*names) as stream:
            yield io.TextIOWrapper(stream, encoding="utf-8-sig", newline=None)

    def _is_archive(self) -> bool:
        if not zipfile.is_zipfile(self.path):
            if self.path.suffix.lower() in (".zip", ".xlsx"):
                raise PrepareError(f"{self.path.name} is damaged: it is not a whole zip file")
            return False
        with zipfile.ZipFile(self.path) as archive:
            # A spreadsheet is also a zip, but counts as one file.
            return "[Content_Types].xml" not in archive.namelist()

    def _find(self, names: Tuple[str, ...]) -> Tuple[Path, str]:
        wanted = {name.lower() for name in names}
        searched = []
        for path in self._archives():
            with zipfile.ZipFile(path) as archive:
                # Sorted, so that the choice between two members of one name does not depend on the packing.
                members = sorted(one.filename for one in archive.infolist() if not one.is_dir())
            for member in members:
                if _base(member) in wanted and not member.startswith("__MACOSX"):
                    return path, member
            searched += members
        raise PrepareError(
            f"{self.path.name} holds no {' or '.join(names)}; it holds {', '.join(searched[:8]) or 'nothing'}"
        )

    def _archives(self) -> Iterator[Path]:
        """The outer archive, then those inside it, which are unpacked to a temporary folder when first needed."""
        yield self.path
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="unpack-", dir=self.path.parent)
            with zipfile.ZipFile(self.path) as outer:
                nested = [name for name in outer.namelist() if name.lower().endswith(".zip")]
                for number, member in enumerate(sorted(nested)):
                    target = Path(self._scratch.name) / f"{number}.zip"
                    with outer.open(member) as source, open(target, "wb") as sink:
                        shutil.copyfileobj(source, sink, 1 << 20)
                    self._inner.append(target)
        yield from self._inner


def _base(member: str) -> str:
    return member.replace("\\", "/").rsplit("/", 1)[-1].lower()
