"""Run the program's tests, and the program, with the Python of a Windows PC."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests.windows.wine_pc import FONTS, PYTHON

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.windows.wine_pc import WindowsPc

# "endings" is not a folder but the files in tests/ about how processes, files and consoles end.
FOLDERS = (
    "packaging", "core", "builds", "cli", "engine", "hardware", "line", "model", "ui", "endings",
)  # fmt: skip
_ENDINGS = (
    "tests/test_app.py", "tests/test_files_in_use.py", "tests/process",
    "tests/test_survival.py", "tests/test_whole_program.py",
)  # fmt: skip
_LONG = ("engine", "cli", "ui")  # begun first, so that no long one is alone at the end
SHORT_FOLDERS = ("packaging", "core")
_LONGEST_FOLDER_S = 3600.0
_LONGEST_RUN_S = 600.0
_NO_TESTS = 5
# Tests on Windows end with the process where one of them takes too long, so each has longer.
_LONGEST_TEST_S = 900.0
_OPTIONS = ("-q", "-p", "tests.windows.expected", "-p", "no:cacheprovider")
# Without a screen Qt looks for fonts beside itself, and warns that there are none.
_NO_SCREEN = {"QT_QPA_PLATFORM": "offscreen", "QT_QPA_FONTDIR": FONTS}
_COUNTS = re.compile(r"^.*\b(?:passed|failed|error|skipped|no tests ran)\b.* in [\d.]+s.*$", re.M)
_ENDS = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)\b")


def tell_now(line: str) -> None:
    print(line, flush=True)


def try_twice(steps: Sequence[Callable[[float], bool]], ends_s: float) -> bool:
    """Take steps side by side, then those that failed once more; return whether all passed.

    Args:
        steps: each is called with the seconds that it has, and returns whether it passed.
        ends_s: when all has to be over, on the monotonic clock; the first try has half of it.
    """
    for share in (0.5, 1.0):
        left_s = share * (ends_s - time.monotonic())
        if left_s <= 0:
            print("Windows: no time is left, so it counts as failed.", flush=True)
            return False
        if share == 1.0:
            print("Windows: trying once more what failed.", flush=True)
        with ThreadPoolExecutor(len(steps)) as pool:
            futures = [pool.submit(step, left_s) for step in steps]
        steps = [step for step, future in zip(steps, futures, strict=True) if not future.result()]
        if not steps:
            return True
    return False


class Account:
    """What became of each part, told as it comes, and all of it at the end."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def tell(self, line: str) -> None:
        print(line, flush=True)
        self._lines.append(line.partition("\n")[0])

    def tell_all(self) -> None:
        """Print all that was told, and how many tests ended in which way."""
        totals: Counter[str] = Counter()
        for line in self._lines:
            for count, end in _COUNT.findall(line):
                totals[end.removesuffix("s") if end == "errors" else end] += int(count)
        summed = ", ".join(f"{totals[end]} {end}" for end in _ENDS if totals[end])
        print("\n".join(["", *self._lines, f"Windows, all tests: {summed}"]), flush=True)


def run_folders(pc: WindowsPc, account: Account) -> bool:
    """Run the tests of all folders to their end, two folders at a time; return whether none failed.

    The last one, "endings", has the PC to itself: its tests count processes and seconds.
    """
    *beside, last = FOLDERS
    longest_first = sorted(beside, key=lambda folder: folder not in _LONG)
    with ThreadPoolExecutor(2) as pool:
        passed = list(pool.map(lambda one: run_folder(pc, one, tell=account.tell), longest_first))
    return run_folder(pc, last, tell=account.tell) and all(passed)


def run_folder(
    pc: WindowsPc,
    folder: str,
    longest_s: float = _LONGEST_FOLDER_S,
    tell: Callable[[str], None] = tell_now,
) -> bool:
    """Run the tests of one folder; tell the counts, and what failed; return whether none did."""
    began_s = time.monotonic()
    # A test that hangs is named if it ends before the folder is ended.
    longest_test = ("--timeout", f"{min(_LONGEST_TEST_S, 0.7 * longest_s):.0f}")
    files = _ENDINGS if folder == "endings" else (f"tests/{folder}",)
    command = [PYTHON, "-m", "pytest", *_OPTIONS, *longest_test, *files]
    status, printed = pc.run(command, longest_s, environ=_NO_SCREEN)
    counts = _COUNTS.findall(printed)
    took = f"{time.monotonic() - began_s:.0f} s"
    # A process that ends before pytest has told the counts has tested nothing, whatever its status.
    is_good = bool(counts) and status in (0, _NO_TESTS)
    result = counts[-1].strip("= ") if counts else f"ended with {status} and without counts"
    tell(f"Windows, tests/{folder}: {result} ({took})")
    if not is_good:
        print(printed[-20_000:], flush=True)
    return is_good


def run_benchmark(
    pc: WindowsPc,
    longest_s: float = _LONGEST_RUN_S,
    tell: Callable[[str], None] = tell_now,
) -> bool:
    """Start the engine and let the CPU run a benchmark to its end; return whether it did."""
    command = [PYTHON, "-m", "gpu_studio", "bench", "matmul", "--size", "256", "--device", "cpu"]
    command += ["--time", "0.5", "--no-history", "--json"]
    began_s = time.monotonic()
    status, printed = pc.run(command, min(longest_s, _LONGEST_RUN_S))
    lines = [line for line in printed.splitlines() if line.startswith("{")]
    ended = [event for event in map(json.loads, lines) if event["type"] == "run_finished"]
    is_good = status == 0 and len(ended) == 1 and ended[0]["verified"] is True
    took = f"{time.monotonic() - began_s:.0f} s"
    if is_good:
        tell(f"Windows, a CPU run: finished and verified ({took})")
    else:
        tell(f"Windows, a CPU run: exit status {status} ({took})")
        print(printed[-5000:], flush=True)
    return is_good
