"""Breaks the program in many places, one at a time, and says which of them its tests notice.

    python -m tests.breaks [--only N]

`tests/breaks.txt` has the breaks. Each is made in a copy of the checkout, and only the tests named
with it are run there. It ends with 1 if a break survives, or if its text is no longer found.
"""

import argparse
import contextlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
_FAILED = 1  # pytest's exit status; the others say that it could not run the tests


class Break(NamedTuple):
    file: str
    text: str
    change: str
    tests: tuple[str, ...]


def breaks() -> list[Break]:
    blocks = (ROOT / "tests" / "breaks.txt").read_text(encoding="utf-8").split("\n\n")
    lines = ([line for line in block.splitlines() if line[:1] != "#"] for block in blocks)
    return [_break_of(block) for block in lines if block]


def _break_of(block: list[str]) -> Break:
    text, change = ("\n".join(x[1:] for x in block if x[0] == sign) for sign in "-+")
    return Break(block[0], text, change, tuple(block[-1].split()))


def is_found(one: Break, root: Path = ROOT) -> bool:
    """Return whether the text still stands once in its file."""
    return (root / one.file).read_text(encoding="utf-8").count(one.text) == 1


def copied(folder: Path) -> None:
    """Copy what git has or would add, as it is now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():  # not one that is deleted, or a link to a folder
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)


def is_caught(one: Break, folder: Path) -> bool:
    """Break a copy, run the tests there, and mend it."""
    path = folder / one.file
    before = path.read_text(encoding="utf-8")
    _write(path, before.replace(one.text, one.change))
    try:
        run = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *one.tests]
        ended = subprocess.run(run, cwd=folder, capture_output=True, check=False)
    finally:
        _write(path, before)
    return ended.returncode == _FAILED


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    with contextlib.suppress(FileNotFoundError):  # it would pass for that of a text as long
        Path(importlib.util.cache_from_source(str(path))).unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, help="the number of a break, from 1")
    only = parser.parse_args().only
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        copied(Path(folder))
        for number, one in enumerate(breaks(), 1):
            if only in (None, number):
                caught = is_found(one) and is_caught(one, Path(folder))
                survived += not caught
                word = "caught" if caught else "NOT CAUGHT" if is_found(one) else "NOT FOUND"
                first = one.text.strip().splitlines()[0]
                sys.stdout.write(f"{number:3} {word:10} {one.file}: {first}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{survived} survived\n")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
