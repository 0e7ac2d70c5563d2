"""Test the program on Windows: ``python3 packaging/bootstrap.py test --windows``.

    --short        packaging and core tests and a CPU run, a part of .ci/run: what fails is tried
                   once more, and all of it ends within 20 minutes
    FOLDER...      only the tests of these folders, for example: engine ui

Without either: all folders, two at a time, then a CPU run and the window. What fails does not end
it: each part tells its counts, and the last lines tell them all. The exit status is 77 where such a
Windows cannot be made here, or, with --short, not in time.
"""

import argparse
import contextlib
import sys
import time
from functools import partial
from pathlib import Path

from tests.windows.set_up import ROOT, SkippedError, set_up
from tests.windows.suite import (
    FOLDERS,
    SHORT_FOLDERS,
    Account,
    run_benchmark,
    run_folder,
    run_folders,
    try_twice,
)
from tests.windows.time_limit import breaking_off
from tests.windows.window import use_window
from tests.windows.wine_pc import WindowsPc, screen

SKIPPED = 77  # as Automake's tests say it
_LONGEST_SHORT_S = 1200.0
_LONGEST_SHORT_SET_UP_S = 780.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="bootstrap.py test --windows")
    parser.add_argument("--short", action="store_true", help="the part that .ci/run runs")
    parser.add_argument("--in", type=Path, default=ROOT / ".setup" / "windows", dest="place",
                        help="where the Windows PC is, or is made")  # fmt: skip
    parser.add_argument("folders", nargs="*", choices=[*FOLDERS, []], help="folders of tests/")
    options = parser.parse_args()
    ends_s = time.monotonic() + _LONGEST_SHORT_S
    try:
        with _set_up_limit() if options.short else contextlib.nullcontext():
            pc = set_up(options.place, lambda step: print(f"A Windows PC: {step}…", flush=True))
        with screen() as display:
            pc.display = display
            passed = _short(pc, ends_s) if options.short else _all(pc, options.folders)
    except SkippedError as error:
        print(f"Windows: skipped, {error}", flush=True)
        return SKIPPED
    finally:
        WindowsPc(options.place.resolve()).shut_down()
    return 0 if passed else 1


def _set_up_limit() -> contextlib.AbstractContextManager[None]:
    minutes = _LONGEST_SHORT_SET_UP_S / 60
    error = SkippedError(f"it could not be set up within {minutes:.0f} minutes.")
    return breaking_off(_LONGEST_SHORT_SET_UP_S, error)


def _short(pc: WindowsPc, ends_s: float) -> bool:
    passed = try_twice([partial(run_folder, pc, folder) for folder in SHORT_FOLDERS], ends_s)
    return try_twice([partial(run_benchmark, pc)], ends_s) and passed


def _all(pc: WindowsPc, folders: list[str]) -> bool:
    """Run all of it to its end, whatever fails on the way; return whether nothing did."""
    account = Account()
    if folders:
        passed = [run_folder(pc, folder, tell=account.tell) for folder in folders]
    else:
        passed = [
            run_folders(pc, account),
            run_benchmark(pc, tell=account.tell),
            use_window(pc, pc.folder / "window.png", account.tell),
        ]
    account.tell_all()
    return all(passed)


if __name__ == "__main__":
    sys.exit(main())
