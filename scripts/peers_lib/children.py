"""Runs a program to its end, and measures its output, time and peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Sequence

# One thread each. Without this the numerical libraries use all cores.
ONE_THREAD = {
    name: "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
                 "POLARS_MAX_THREADS", "RAYON_NUM_THREADS")
}


class ChildError(Exception):
    """A program failed."""


@dataclass
class Finished:
    """A program that ended with status 0."""

    output: str
    seconds: float
    peak_megabytes: float

    def json(self) -> Dict[str, Any]:
        return json.loads(self.output)


def run(command: Sequence[object]) -> Finished:
    """Runs a program on one thread.

    The peak memory comes from the resource usage. On Linux it is never below the memory of this script (some 15 MB).
    """
    arguments: List[str] = [str(part) for part in command]
    begun = time.perf_counter()
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, env={**os.environ, **ONE_THREAD}, text=True) as child:
        output = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise ChildError(f"{Path(arguments[0]).name} failed with status {child.returncode}: {' '.join(arguments)}")
    return Finished(output, seconds, usage.ru_maxrss / 1024)
