"""What stays of hostile files: the window's memory after 20 and after 200 drops.

``python -m tests.bench.drops [--drops 200] [--seed 1]``

Drops the files of `tests.hostile_corpus` on the real window, in an order drawn by chance, and waits
for the answer to each. The memory is what the window's process has for itself alone.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import random
import tempfile
from collections import deque
from pathlib import Path

import psutil
from PySide6.QtCore import QUrl

from gpu_studio.process.lean_memory import give_large_back
from gpu_studio.ui.theme import styled_application
from tests.bench.driver import Driver
from tests.bench.ratios import describe_machine, verdict
from tests.driving.pages import PAGES, go
from tests.driving.window import wait_until
from tests.hostile_corpus import write_all
from tests.ui.test_hostile_drop import drop, sentences

_FIRST = 20
_TARGET = 1.1
_PATIENCE_S = 5.0
_LOOKS, _STEADY_BYTES = 100, 1 << 20
_SHOWN = "one-color.jsonl"


def own_bytes() -> int:
    """Return the memory of this process that no other one shares, in bytes."""
    gc.collect()
    return int(psutil.Process().memory_full_info().uss)


def settled_bytes() -> int:
    """Return that memory once a hundred looks, in as many turns, find no more change."""
    sizes: deque[int] = deque(maxlen=_LOOKS)

    def is_settled() -> bool:
        sizes.append(own_bytes())
        return len(sizes) == _LOOKS and max(sizes) - min(sizes) < _STEADY_BYTES

    wait_until(is_settled)
    return sizes[-1]


def is_answered(driver: Driver, path: Path) -> bool:
    """Drop a file; return whether the window says something that it did not say before."""
    seen = sentences(driver.window)
    drop(driver.window, [QUrl.fromLocalFile(str(path))])
    try:
        wait_until(lambda: sentences(driver.window) - seen, _PATIENCE_S)
    except AssertionError:
        return False
    return True


def main() -> None:
    """Drop the files and print the memory."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--drops", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(describe_machine())
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    give_large_back()  # as the program does
    application = styled_application([])  # lives as long as the window
    driver = Driver(budget_s=1.0)
    driver.window.show()
    driver.wait_ready()
    for page in PAGES:  # a page that is made later is no leak
        go(driver.window, page)
    memory, unanswered = [], 0
    with tempfile.TemporaryDirectory() as folder:
        paths = write_all(Path(folder))
        random.Random(options.seed).shuffle(paths)
        shown = next(path for path in paths if path.name == _SHOWN)
        for count, path in enumerate(itertools.islice(itertools.cycle(paths), options.drops), 1):
            unanswered += not is_answered(driver, path)
            if count in (_FIRST, options.drops):
                is_answered(driver, shown)  # the one whose frames the window keeps to show them
                memory.append(settled_bytes())
        first, *_, last = memory
    print(f"after {_FIRST} drops {first >> 20} MiB, after {options.drops} {last >> 20} MiB")
    print(f"the sentence stayed the same {unanswered} times")
    print(f"{last / first:.2f} times as much, {verdict(last / first, _TARGET)}")
    driver.window.close()
    application.processEvents()


if __name__ == "__main__":
    main()
