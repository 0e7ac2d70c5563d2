"""Run the program's tests, and the program, with the Python of a Windows PC."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

from tests.windows.wine_pc import PYTHON

if TYPE_CHECKING:
    from tests.windows.wine_pc import WindowsPc

FOLDERS = ("packaging", "core", "cli", "engine", "hardware", "model", "ui")
SHORT_FOLDERS = ("packaging", "core")
_LONGEST_FOLDER_S = 3600.0
_LONGEST_RUN_S = 600.0
_NO_TESTS = 5
# Tests on Windows end with the process where one of them takes too long, so each has longer.
_OPTIONS = ("-q", "-p", "tests.windows.expected", "-p", "no:cacheprovider", "--timeout", "900")
_COUNTS = re.compile(r"^.*\b(?:passed|failed|error|skipped|no tests ran)\b.* in [\d.]+s.*$", re.M)


def run_folder(pc: WindowsPc, folder: str) -> bool:
    """Run the tests of one folder; print the counts, and what failed; return whether none did."""
    began_s = time.monotonic()
    command = [PYTHON, "-m", "pytest", *_OPTIONS, f"tests/{folder}"]
    environ = {"QT_QPA_PLATFORM": "offscreen"}
    status, printed = pc.run(command, _LONGEST_FOLDER_S, environ=environ)
    counts = _COUNTS.findall(printed)
    took = f"{time.monotonic() - began_s:.0f} s"
    said = counts[-1].strip("= ") if counts else f"ended with {status} and without counts"
    print(f"Windows, tests/{folder}: {said} ({took})", flush=True)
    if status not in (0, _NO_TESTS):
        print(printed[-20_000:], flush=True)
    return status in (0, _NO_TESTS)


def run_benchmark(pc: WindowsPc) -> bool:
    """Start the engine and let the CPU run a benchmark to its end; return whether it did."""
    command = [PYTHON, "-m", "gpu_studio", "bench", "matmul", "--size", "256", "--device", "cpu"]
    command += ["--budget-s", "0.5", "--no-history", "--json"]
    began_s = time.monotonic()
    status, printed = pc.run(command, _LONGEST_RUN_S)
    lines = [line for line in printed.splitlines() if line.startswith("{")]
    ended = [event for event in map(json.loads, lines) if event["type"] == "run_finished"]
    is_good = status == 0 and len(ended) == 1 and ended[0]["verified"] is True
    took = f"{time.monotonic() - began_s:.0f} s"
    if is_good:
        print(f"Windows, a CPU run: finished and verified ({took})", flush=True)
    else:
        print(f"Windows, a CPU run: exit status {status} ({took})\n{printed[-5000:]}", flush=True)
    return is_good
