"""What a drop of hostile files does to the window: its longest turn, its memory, what it says.

``python -m tests.bench.hostile_drop [--pages TITLE ...] [--files PART]``

Each file of the corpus is dropped on each page, then addresses that are no files, then two files
and all of them at once. A drop is answered when new words are on the screen; what repeats the words
before is listed. Each page is taken twice, and the first one once before: only that time loads what
opens files.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psutil
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QWidget

from gpu_studio.process.lean_memory import give_large_back
from gpu_studio.ui.theme import styled_application
from tests.bench.driver import Driver
from tests.bench.heartbeat import Heartbeat
from tests.bench.ratios import describe_machine
from tests.driving.pages import PAGES, Page, go
from tests.driving.window import find
from tests.hostile_corpus import addresses, write_all

if TYPE_CHECKING:
    from tests.bench.heartbeat import Gap

_LONGEST_TURN_S = 0.2
_LONGEST_ANSWER_S = 15.0
_LOOK_S = 0.02
_QUIET_S = 0.15
_ROUNDS = 2
_SHORTEST_SENTENCE = 25
_LARGEST_GROWTH = 1.10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    titles = [page.title for page in PAGES]
    parser.add_argument("--pages", nargs="+", choices=titles, metavar="TITLE", default=titles)
    parser.add_argument("--files", default="", help="only files with this in their name")
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    give_large_back()  # as the program does
    application = styled_application(sys.argv[:1])
    with tempfile.TemporaryDirectory() as folder:
        files = [path for path in write_all(Path(folder)) if options.files in path.name]
        driver = Driver(budget_s=0.1)
        driver.window.show()
        driver.wait_ready()
        for page in PAGES:
            go(driver.window, page)  # made once, before the memory is read
        print(describe_machine())
        pages = [page for page in PAGES if page.title in options.pages]
        print(f"{len(files)} files on {len(pages)} pages")
        fired = Path(folder) / "fired"
        drop_all(driver.window, pages[0], files)
        for page in pages:
            report(page, *(drop_all(driver.window, page, files) for _ in range(_ROUNDS)))
            assert not fired.exists(), "a pickle was executed"
        driver.window.close()
    application.processEvents()


class Round(NamedTuple):
    """What a page did when everything was dropped on it.

    Attributes:
        turns: for each drop, its longest turn and what was dropped.
        silent: what was answered in no new words.
        memory_bytes: the window's memory afterwards.
    """

    turns: list[tuple[Gap, str]]
    silent: list[str]
    memory_bytes: int


def report(page: Page, *rounds: Round) -> None:
    """Print the longest turns on a page, and the memory after each round."""
    turns = sorted((turn for one in rounds for turn in one.turns), key=_own_work, reverse=True)
    late = [turn for turn in turns if _own_work(turn) > _LONGEST_TURN_S]
    sizes = [one.memory_bytes for one in rounds]
    grown = sizes[-1] / sizes[0]
    mark = "" if grown <= _LARGEST_GROWTH else " TOO MUCH"
    sizes_text = ", ".join(f"{size / 2**20:.0f}" for size in sizes)
    print(f"  {page.title}: {sizes_text} MiB: × {grown:.3f}{mark}; longest turns (own, wall):")
    for gap, name in turns[: max(3, len(late))]:
        times = f"{1000 * gap.own_work_s:.0f} ms, {1000 * gap.on_the_wall_s:.0f} ms"
        print(f"    {times}  {name!r:.60}")
    if silent := {name for one in rounds for name in one.silent}:
        print(f"    no new words: {', '.join(f'{name!r:.40}' for name in sorted(silent))}")


def _own_work(turn: tuple[Gap, str]) -> float:
    return turn[0].own_work_s


def drop_all(window: QWidget, page: Page, files: list[Path]) -> Round:
    """Drop everything on a page."""
    heartbeat = Heartbeat(window)
    silent, turns = [], []
    drops = [[QUrl.fromLocalFile(str(path))] for path in files]
    drops += [[address] for address in addresses()]
    drops += [[QUrl.fromLocalFile(str(path)) for path in several] for several in (files[:2], files)]
    for urls in drops:
        go(window, page)
        close_banner(window)
        seen = words(window)
        heartbeat.take_longest()
        drop(window, urls)
        is_answered = wait_for_words(window, seen)
        turn = heartbeat.take_longest()
        name = urls[0].fileName() if len(urls) == 1 else f"{len(urls)} files"
        turns.append((turn, name))
        if not is_answered:
            silent.append(name or urls[0].toString())
    wait(1.0)
    heartbeat.deleteLater()
    return Round(turns, silent, psutil.Process().memory_info().rss)


def close_banner(window: QWidget) -> None:
    """Close what the banner says: the same words again would be no answer."""
    close = find(window, "banner.close", QPushButton)
    while close.isVisible():
        close.click()


def drop(window: QWidget, urls: list[QUrl]) -> None:
    dragged = QMimeData()
    dragged.setUrls(urls)
    how = (Qt.DropAction.CopyAction, dragged, Qt.MouseButton.LeftButton)
    place, plain = window.rect().center(), Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(place, *how, plain)
    enter.ignore()
    QApplication.sendEvent(window, enter)
    if enter.isAccepted():
        QApplication.sendEvent(window, QDropEvent(QPointF(place), *how, plain))


def words(window: QWidget) -> set[str]:
    """Return all sentences on the screen: what is shorter are numbers that change by themselves."""
    texts = (one.text() for one in window.findChildren(QLabel) if one.isVisible())
    return {text for text in texts if len(text) > _SHORTEST_SENTENCE}


def wait_for_words(window: QWidget, seen: set[str]) -> bool:
    """Wait until there are new words, and then a little for more; return whether there are."""
    begun_s = time.perf_counter()
    while time.perf_counter() - begun_s < _LONGEST_ANSWER_S:
        wait(_LOOK_S)
        if words(window) - seen:
            wait(_QUIET_S)
            return True
    return False


def wait(seconds: float) -> None:
    end_s = time.perf_counter() + seconds
    while time.perf_counter() < end_s:
        QApplication.processEvents()
        time.sleep(0.001)


if __name__ == "__main__":
    main()
