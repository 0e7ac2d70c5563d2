"""What a drop of hostile files does to the window: its longest turn, its memory, what it says.

``python -m tests.bench.hostile_drop [--pages TITLE ...] [--files PART]``

Each file of the corpus is dropped on each page, then addresses that are no files, then all at once.
A drop is answered when new words are on the screen; what repeats the words before is listed. The
first page is taken twice: only its first time loads what opens files.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import psutil
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from tests.bench.driver import Driver
from tests.bench.heartbeat import Heartbeat
from tests.bench.ratios import describe_machine
from tests.driving.pages import PAGES, Page, go
from tests.hostile_corpus import addresses, write_all

_LONGEST_TURN_S = 0.2
_LONGEST_ANSWER_S = 15.0
_QUIET_S = 0.15
_SHORTEST_SENTENCE = 25
_LARGEST_GROWTH = 1.10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    titles = [page.title for page in PAGES]
    parser.add_argument("--pages", nargs="+", choices=titles, metavar="TITLE", default=titles)
    parser.add_argument("--files", default="", help="only files with this in their name")
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = QApplication(sys.argv[:1])
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
        for page in (pages[0], *pages):
            drop_all(driver.window, page, files)
            assert not fired.exists(), "a pickle was executed"
        driver.window.close()
    application.processEvents()


def drop_all(window: QWidget, page: Page, files: list[Path]) -> None:
    """Drop everything on a page; print its longest turns and its memory."""
    go(window, page)
    heartbeat = Heartbeat(window)
    before = resident_bytes()
    silent, turns = [], []
    drops = [[QUrl.fromLocalFile(str(path))] for path in files]
    drops += [[address] for address in addresses()]
    drops.append([QUrl.fromLocalFile(str(path)) for path in files])
    for urls in drops:
        go(window, page)
        seen = words(window)
        heartbeat.take_longest()
        drop(window, urls)
        is_answered = wait_for_words(window, seen)
        turn = heartbeat.take_longest()
        name = urls[0].fileName() if len(urls) == 1 else f"{len(urls)} files"
        turns.append((turn.own_work_s, turn.on_the_wall_s, name))
        if not is_answered:
            silent.append(name or urls[0].toString())
    wait(1.0)
    grown = resident_bytes() / before
    late = [one for one in turns if one[0] > _LONGEST_TURN_S]
    mark = "" if grown <= _LARGEST_GROWTH else " TOO MUCH"
    print(f"  {page.title}: memory × {grown:.2f}{mark}; longest turns (own, wall):")
    for own_s, wall_s, name in sorted(turns, reverse=True)[: max(3, len(late))]:
        print(f"    {1000 * own_s:.0f} ms, {1000 * wall_s:.0f} ms  {name!r:.60}")
    if silent:
        print(f"    no new words: {', '.join(f'{name!r:.40}' for name in silent)}")
    heartbeat.deleteLater()


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
        wait(_QUIET_S)
        if words(window) - seen:
            wait(_QUIET_S)
            return True
    return False


def wait(seconds: float) -> None:
    end_s = time.perf_counter() + seconds
    while time.perf_counter() < end_s:
        QApplication.processEvents()
        time.sleep(0.001)


def resident_bytes() -> int:
    return psutil.Process().memory_info().rss


if __name__ == "__main__":
    main()
