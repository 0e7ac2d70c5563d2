"""Test the program on Windows: ``python3 packaging/bootstrap.py test --windows``.

    --short        packaging and core tests and a CPU run, each tried twice: a part of .ci/run
    FOLDER...      only the tests of these folders, for example: engine ui

Without either: all folders, then the double-click and the window. The exit status is 77 where such
a Windows cannot be made here.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.windows.set_up import ROOT, SkippedError, copy_checkout, download_wheels, set_up
from tests.windows.suite import FOLDERS, SHORT_FOLDERS, run_benchmark, run_folder
from tests.windows.window import double_click, use_window
from tests.windows.wine_pc import WindowsPc, screen

if TYPE_CHECKING:
    from collections.abc import Callable

SKIPPED = 77  # as Automake's tests say it


def main() -> int:
    """Run what was asked for; return the exit status."""
    parser = argparse.ArgumentParser(prog="bootstrap.py test --windows")
    parser.add_argument("--short", action="store_true", help="the part that .ci/run runs")
    parser.add_argument("--in", type=Path, default=ROOT / ".setup" / "windows", dest="place",
                        help="where the Windows PC is, or is made")  # fmt: skip
    parser.add_argument("folders", nargs="*", choices=[*FOLDERS, []], help="folders of tests/")
    options = parser.parse_args()
    try:
        pc = set_up(options.place, lambda step: print(f"A Windows PC: {step}…", flush=True))
        try:
            with screen() as display:
                pc.display = display
                passed = _short(pc) if options.short else _all(pc, options.folders)
        finally:
            pc.shut_down()
    except SkippedError as error:
        print(f"Windows: skipped, {error}", flush=True)
        return SKIPPED
    return 0 if passed else 1


def _short(pc: WindowsPc) -> bool:
    with ThreadPoolExecutor(len(SHORT_FOLDERS)) as pool:
        passed = [*pool.map(lambda folder: _twice(partial(run_folder, pc, folder)), SHORT_FOLDERS)]
    return _twice(partial(run_benchmark, pc)) and all(passed)


def _twice(step: Callable[[], bool]) -> bool:
    if step():
        return True
    print("Windows: trying that once more.", flush=True)
    return step()


def _all(pc: WindowsPc, folders: list[str]) -> bool:
    passed = [run_folder(pc, folder) for folder in folders or FOLDERS]
    if not folders:
        passed.append(run_benchmark(pc))
        passed.append(use_window(pc, pc.folder / "window.png"))
        passed.append(double_click(pc, download_wheels(pc), copy_checkout))
    return all(passed)


if __name__ == "__main__":
    sys.exit(main())
