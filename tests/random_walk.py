"""Somebody who presses everything, as a program: real engines, no cards or soft ones.

    python -m tests.random_walk --steps 20000 --seed 1 [--soft]

The walk sees every page, empty and with its results, then clicks, types, turns the wheel, drops
files, resizes, and changes themes and tabs at random. It prints what was uncaught or warned of,
the memory now and then (after it has stopped what ran and cleared the results), and the longest
gaps of the window's own work. Memory that has grown after the first steps is trouble, too.
"""

import argparse
import collections
import contextlib
import ctypes
import faulthandler
import gc
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from collections.abc import Iterator

import psutil
import shiboken6
from PySide6.QtCore import (
    QCoreApplication,
    QEvent,
    QEventLoop,
    QMimeData,
    QPoint,
    QPointF,
    Qt,
    QTimer,
    QUrl,
    qInstallMessageHandler,
)
from PySide6.QtGui import QDesktopServices, QDragEnterEvent, QDropEvent, QPixmapCache, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QMainWindow,
    QMenu,
    QPlainTextEdit,
    QTabBar,
    QTableView,
    QTabWidget,
    QWidget,
)

from gpu_studio.app import build_window, collect_in_its_thread
from gpu_studio.hardware.client import SensorReader
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
from gpu_studio.ui.check.check_tab import CheckTab
from gpu_studio.ui.theme import styled_application
from tests.driving.pages import go, page_called
from tests.driving.window import find, wait_ready, wait_until

_ROOT = Path(__file__).resolve().parents[1]
# These end the window or a program of this PC, or open another program.
_LEFT_ALONE = (
    "Quit", "About", "log folder", "End program", "ending processes", "Install",
)  # fmt: skip
_KEYS = (
    Qt.Key.Key_Tab, Qt.Key.Key_Backtab, Qt.Key.Key_Escape, Qt.Key.Key_Left, Qt.Key.Key_Right,
    Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Home,
    Qt.Key.Key_End, Qt.Key.Key_PageDown, Qt.Key.Key_Delete, Qt.Key.Key_9, Qt.Key.Key_F9,
)  # fmt: skip
_WORDS = ("1024", "64:4096", "-1", "9" * 400, "7B", "x", "", "1e309", "٣", "CUDA out of memory.")
# Ignored by the rest of the suite as well, in pyproject.toml.
_KNOWN_MESSAGES = ("This plugin does not support", "Detected locale")
_FILES = {
    "empty.gpustudio": b"", "garbage.gpustudio": bytes(range(256)) * 40, "half.jsonl": b'{"a": [',
    "snapshot.pickle": b"\x80\x04N.", "text.txt": b"torch.OutOfMemoryError: CUDA out of memory.",
}  # fmt: skip
_LONGEST_WAIT_S = 120.0
# What brings a page its results.
_FILLING = (
    "benchmark.run", "switcher.move", "switcher.lab.break", "switcher.lab.fix", "memory.oom.run",
    "memory.oom.preset.fragmentation", "memory.oom.preset.activations", "check.run",
)  # fmt: skip
_LARGEST = 2200, 2400
_WEIGHED = 1280, 800
# Results, opened files and errors bring more widgets: the first steps have seen them.
_SEEN_AFTER = 1000
_MOST_GROWTH = 0.05


class Walker:
    """Takes one step after the other; which ones, its seed decides."""

    def __init__(self, window: QMainWindow, seed: int, folder: Path) -> None:
        self._window = window
        self._tabs = find(window, "tabs", QTabWidget)
        self._random = random.Random(seed)
        self._pressed: set[QAbstractButton] = set()
        self._files = [_written(folder / name, content) for name, content in _FILES.items()]
        self._ways = (
            self._change_tab, self._turn_page, self._press, self._press, self._press,
            self._press_anywhere, self._choose, self._slide, self._turn_wheel, self._trigger,
            self._resize, self._type, self._write, self._select, self._drop,
        )  # fmt: skip

    def step(self) -> str:
        way = self._random.choice(self._ways)
        return f"{way.__name__}: {way()}"

    def see_every_page(self) -> Iterator[str]:
        """Turn to each tab and each of its pages, and each view of the Benchmark tab.

        In a window so large that nothing has to be scrolled to: plots are made when they are seen.
        """
        self._window.resize(*_LARGEST)
        for tab in range(self._tabs.count()):
            self._tabs.setCurrentIndex(tab)
            yield self._tabs.tabText(tab)
            for bar in self._tabs.widget(tab).findChildren(QTabBar):
                for page in range(bar.count()):
                    bar.setCurrentIndex(page)
                    yield bar.tabText(page)
            for button in self._tabs.widget(tab).findChildren(QAbstractButton):
                if button.isCheckable() and shiboken6.isValid(button) and button.isVisible():
                    button.click()
                    yield button.text()

    def fill_page(self) -> Iterator[str]:
        """Press what brings this page its results, once."""
        for name in _FILLING:
            for button in self._tabs.currentWidget().findChildren(QAbstractButton, name):
                if button in self._pressed:
                    continue
                if shiboken6.isValid(button) and button.isVisible() and button.isEnabled():
                    self._pressed.add(button)
                    button.click()
                    yield name

    def _any(self, kind: type[Any]) -> Any:
        widgets = [w for w in self._window.findChildren(kind) if w.isVisible() and w.isEnabled()]
        return self._random.choice(widgets) if widgets else None

    def _change_tab(self) -> int:
        index = self._random.randrange(self._tabs.count())
        self._tabs.setCurrentIndex(index)
        return index

    def _turn_page(self) -> object:
        bar = self._any(QTabBar)
        if bar is None or not bar.count():
            return None
        bar.setCurrentIndex(self._random.randrange(bar.count()))
        return bar.objectName()

    def _press(self) -> object:
        button = self._any(QAbstractButton)
        if button is None or _is_left_alone(button.text()):
            return None
        name = button.objectName() or button.text()
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        return name

    def _press_anywhere(self) -> object:
        widget = self._any(QWidget)
        if widget is None or isinstance(widget, QAbstractButton | QMenu | QMainWindow):
            return None
        sentence = f"{type(widget).__name__} {widget.objectName()}"
        place = QPoint(
            self._random.randrange(max(1, widget.width())),
            self._random.randrange(max(1, widget.height())),
        )
        press = self._random.choice((QTest.mouseClick, QTest.mouseClick, QTest.mouseDClick))
        press(widget, self._random.choice((Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton)),
              Qt.KeyboardModifier.NoModifier, place)  # fmt: skip
        return sentence

    def _choose(self) -> object:
        combo = self._any(QComboBox)
        if combo is None or not combo.count():
            return None
        index = self._random.randrange(combo.count())
        name = combo.objectName(), index
        combo.setCurrentIndex(index)
        combo.activated.emit(index)
        return name

    def _slide(self) -> object:
        part = self._any((QAbstractSlider, QAbstractSpinBox)[self._random.randrange(2)])
        if part is None or not hasattr(part, "setValue"):
            return None
        name = part.objectName()
        part.setValue(type(part.minimum())(self._random.uniform(part.minimum(), part.maximum())))
        return name

    def _turn_wheel(self) -> object:
        widget = self._any(QWidget)
        if widget is None:
            return None
        sentence = f"{type(widget).__name__} {widget.objectName()}"
        place = QPointF(widget.rect().center())
        modifier = self._random.choice(
            (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier)
        )
        turned = QPoint(0, self._random.choice((-360, -120, 120, 360)))
        event = QWheelEvent(
            place, widget.mapToGlobal(place), QPoint(), turned, Qt.MouseButton.NoButton, modifier,
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QCoreApplication.sendEvent(widget, event)
        return sentence

    def _trigger(self) -> object:
        actions = [
            action
            for menu in self._window.menuBar().findChildren(QMenu)
            for action in menu.actions()
            if action.isEnabled() and not _is_left_alone(action.text())
        ]
        action = self._random.choice(actions)
        result = action.text()
        action.trigger()
        return result

    def _resize(self) -> object:
        size = self._random.randrange(700, 2200), self._random.randrange(500, 1200)
        self._window.resize(*size)
        return size

    def _type(self) -> object:
        key = self._random.choice(_KEYS)
        focused = QApplication.focusWidget()
        if isinstance(focused, QAbstractButton) and _is_left_alone(focused.text()):
            return None
        QTest.keyClick(focused or self._window, key)
        return key.name

    def _write(self) -> object:
        place = self._any((QLineEdit, QPlainTextEdit)[self._random.randrange(2)])
        if place is None or place.isReadOnly():
            return None
        word, name = self._random.choice(_WORDS), place.objectName()
        place.selectAll()
        if isinstance(place, QLineEdit):
            place.insert(word)
            QTest.keyClick(place, Qt.Key.Key_Return)
        else:
            place.insertPlainText(word)
        return name, word[:12]

    def _select(self) -> object:
        table = self._any(QTableView)
        if table is None or table.model() is None or not table.model().rowCount():
            return None
        name = table.objectName()
        if self._random.random() < 0.3 and table.isSortingEnabled():
            order = self._random.choice((Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder))
            table.sortByColumn(self._random.randrange(table.model().columnCount()), order)
        table.selectRow(self._random.randrange(table.model().rowCount()))
        return name

    def _drop(self) -> object:
        widgets = [w for w in self._window.findChildren(QWidget) if w.acceptDrops()]
        widget = self._random.choice([w for w in widgets if w.isVisible()] or [self._window])
        mime, path = QMimeData(), self._random.choice(self._files)
        mime.setUrls([QUrl.fromLocalFile(str(path))])
        copy, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
        place, plain = widget.rect().center(), Qt.KeyboardModifier.NoModifier
        name = widget.objectName(), path.name
        entered = QDragEnterEvent(place, copy, mime, left, plain)
        QCoreApplication.sendEvent(widget, entered)
        if entered.isAccepted():
            dropped = QDropEvent(QPointF(place), copy, mime, left, plain)
            QCoreApplication.sendEvent(widget, dropped)
        return name


class Account:
    """What the walk found: trouble, memory and gaps."""

    def __init__(self) -> None:
        self.trouble: list[str] = []
        self.last_steps: collections.deque[str] = collections.deque(maxlen=4)
        self.memory: list[tuple[int, int, int]] = []  # steps, Python objects, resident bytes
        self.gaps: list[tuple[float, float, str]] = []  # own CPU seconds, wall seconds, what
        self._types: collections.Counter[str] = collections.Counter()

    def listen(self) -> None:
        """Note what nothing has caught, and Qt's messages."""
        sys.excepthook = lambda kind, error, trace: self._note(error, trace)
        threading.excepthook = lambda args: self._note(args.exc_value, args.exc_traceback)
        sys.unraisablehook = lambda args: self._note(args.exc_value, args.exc_traceback)
        qInstallMessageHandler(self._hear)

    def time(self, do: Any) -> str:
        """Do something in the window's thread, and note how long it held the event loop."""
        own_s, wall_s = time.thread_time(), time.perf_counter()
        sentence = str(do())
        self.last_steps.append(sentence)
        gap = time.thread_time() - own_s, time.perf_counter() - wall_s, sentence
        self.gaps = sorted([*self.gaps, gap], reverse=True)[:10]
        return sentence

    def weigh(self, steps: int) -> collections.Counter[str]:
        """Note the memory now; return which types have grown since the last time."""
        gc.collect()
        _give_back_freed()
        objects = gc.get_objects()
        types = collections.Counter(type(one).__qualname__ for one in objects)
        self.memory.append((steps, len(objects), psutil.Process().memory_info().rss))
        grown, self._types = types - self._types, types
        return grown

    def growth(self) -> float:
        """Return how much the memory has grown since most was seen, as a share."""
        seen = [resident for steps, _, resident in self.memory if steps >= _SEEN_AFTER]
        return seen[-1] / seen[0] - 1.0 if seen else 0.0

    def judge_memory(self) -> None:
        """Note memory that has grown as trouble."""
        if self.growth() > _MOST_GROWTH:
            at = ", ".join(f"{n}: {size / 2**20:.1f} MiB" for n, _, size in self.memory)
            self.trouble.append(f"the memory grew by {self.growth():.1%}: {at}")

    def _note(self, error: BaseException | None, trace: Any) -> None:
        import traceback

        lines = traceback.format_exception(type(error), error, trace)
        self.trouble.append("".join(lines) + f"after {list(self.last_steps)}")
        sys.stderr.write(f"{self.trouble[-1]}\n")  # it may end the walk

    def _hear(self, kind: object, _context: object, message: str) -> None:
        if not message.startswith(_KNOWN_MESSAGES):
            self.trouble.append(f"Qt, {kind}: {message}, after {list(self.last_steps)}")


class Walk:
    """A window with its engine, and the walker in it."""

    def __init__(self, seed: int, folder: Path, soft_pc: Any = None) -> None:
        self._soft_pc = soft_pc
        self.account = Account()
        self.account.listen()
        settings = Settings(None)
        settings.change(budget_s=0.2, sizes="64, 256")
        reader = SensorReader(log_path=folder / "log")
        self.window = build_window(
            sensor_source=reader,
            settings=settings,
            log_path=folder / "log",
            data_folder=folder / "data",  # in memory alone, each result would be one more
        )
        collect_in_its_thread(self.window)
        self.window.show()
        self._studio = self.window.findChild(Studio)
        self._dialogs = QTimer(self.window)
        self._dialogs.timeout.connect(close_what_is_open)
        self._dialogs.start(5)
        self._walker = Walker(self.window, seed, folder)
        self._wait_until_ready()
        for is_first in (True, False):
            for page in self._walker.see_every_page():
                self.account.time(lambda page=page: (_turn(), f"page {page}")[1])
                if is_first:
                    self._fill_page()
        self.window.findChildren(QWidget)  # the walker's own wrappers, which a user does not make
        self._weigh(0)

    def go(self, steps: int, weighed_every: int) -> None:
        for number in range(1, steps + 1):
            self.account.time(self._one_step)
            if self._soft_pc is not None and number % 100 == 0:
                self._misbehave(number // 100)
            if number % 20 == 0:
                _await_events()
            if not self.window.isVisible():
                self.account.trouble.append(f"it closed, after {list(self.account.last_steps)}")
                return
            if number % weighed_every == 0 or number == steps:
                self._weigh(number)

    def _fill_page(self) -> None:
        for filled in self._walker.fill_page():
            self.account.time(lambda filled=filled: (_turn(), f"filled by {filled}")[1])
            if filled.startswith("check.run"):
                self._stop_check()
            wait_until(lambda: self._studio.session.is_free and not self._stops_enabled())

    def _stop_check(self) -> None:
        """Stop the check once its first stage has worked: a whole one takes minutes."""
        check = self.window.findChild(CheckTab).check
        wait_until(lambda: check.run is None or check.run.elapsed_s > 0, _LONGEST_WAIT_S)
        check.stop()
        wait_until(lambda: not check.phase.is_busy and check.can_run, _LONGEST_WAIT_S)
        sys.stdout.write(f"check: {check.record.verdict if check.record else 'none'}\n")

    def _stops_enabled(self) -> list[QAbstractButton]:
        return [
            button
            for button in self.window.findChildren(QAbstractButton)
            if button.objectName().endswith(".stop")
            and button.isEnabled()
            and button.isVisible()  # a page that nobody sees shows nothing of the present
        ]

    def _one_step(self) -> str:
        result = self._walker.step()
        _turn()
        return result

    def _misbehave(self, turn: int) -> None:
        """Let the soft cards do the next thing that real ones do when they are broken."""
        pc = self._soft_pc
        turns = (
            lambda: pc.fault("launch", 719, after=20, sticky=True),
            pc.clear_faults,
            lambda: pc.fault("cuMemAlloc*", 2, after=3),
            pc.clear_faults,
            lambda: pc.set(0, temperature_c=None, power_mw=None, fan_percent=None),
            lambda: pc.fault("nvmlDeviceGet*", 15, card=1),
            pc.clear_faults,
            lambda: pc.fault("nvmlDeviceGetUtilizationRates", 999),
            lambda: pc.set(0, temperature_c=97, power_mw=30_000, fan_percent=100),
            pc.clear_faults,
        )
        turns[turn % len(turns)]()
        sys.stdout.write(f"soft cards: turn {turn % len(turns)}\n")

    def _weigh(self, steps: int) -> None:
        if self._soft_pc is not None:
            self._soft_pc.clear_faults()
        self._settle()
        grown = self.account.weigh(steps)
        _, objects, resident = self.account.memory[-1]
        sys.stdout.write(
            f"step {steps}: {objects} Python objects, {resident / 2**20:.1f} MiB resident; "
            f"grown: {grown.most_common(8)}\n"
        )
        sys.stdout.flush()

    def _settle(self) -> None:
        """Stop what runs, take the results away, and wait until the engine has nothing to do."""
        deadline_s = time.monotonic() + _LONGEST_WAIT_S
        tabs = find(self.window, "tabs", QTabWidget)
        while time.monotonic() < deadline_s:
            for tab in range(tabs.count()):
                tabs.setCurrentIndex(tab)
                for button in self._stops_enabled():
                    button.click()
            _await_events()
            if self._studio.session.state is EngineState.READY:
                break
            if self._studio.session.state is EngineState.FAILED:
                self._studio.session.restart()
        # The picture of a large window takes 20 MiB, and that of a hidden page nothing.
        self.window.resize(*_WEIGHED)
        go(self.window, page_called("Run"))  # a page that nobody sees offers nothing
        find(self.window, "benchmark.clear", QAbstractButton).click()
        benchmark = self.window.findChild(BenchmarkTab).benchmark
        wait_until(lambda: not benchmark.runs)
        tabs.setCurrentIndex(0)
        _turn()
        # Another picture: the frames of a race take up to 192 MiB.
        for picture in ("grow", "learn"):
            find(self.window, f"race.picture.{picture}", QAbstractButton).click()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)

    def _wait_until_ready(self) -> None:
        try:
            wait_ready(self._studio)
        except AssertionError as error:
            self.account.trouble.append(f"the engine never came: {error}")


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _is_left_alone(text: str) -> bool:
    return any(word in text.replace("&", "") for word in _LEFT_ALONE)


def close_what_is_open() -> None:
    """Close the dialog or the menu that is open: what a step opened would hold the next one."""
    for opened in (QApplication.activePopupWidget(), QApplication.activeModalWidget()):
        if opened is not None:
            opened.close()


def _await_events() -> None:
    """Take what comes next: an answer of the engine, a timer."""
    QEventLoop().processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


def _give_back_freed() -> None:
    """Give the system what was freed: a peak that is over is no leak.

    glibc keeps freed memory for what comes next, and Qt the pictures that it has drawn.
    """
    QPixmapCache.clear()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def _turn() -> None:
    QCoreApplication.processEvents()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


@contextlib.contextmanager
def _soft_pc() -> Iterator[Any]:
    from tests.softcards.cards import soft_cards
    from tests.softcards.catalogue import GTX_1650, RTX_3060

    with soft_cards((GTX_1650, RTX_3060)) as pc:
        os.environ.update(pc.env)
        yield pc


def main(arguments: list[str]) -> int:
    """Walk; return 0 if nothing was uncaught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--soft", action="store_true", help="on soft cards that misbehave")
    parser.add_argument("--weighed-every", type=int, default=500)
    chosen = parser.parse_args(arguments)
    faulthandler.enable()
    QDesktopServices.openUrl = staticmethod(lambda _url: True)  # type: ignore[method-assign]
    application = styled_application(["random_walk"])
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pc = stack.enter_context(_soft_pc()) if chosen.soft else None
        walk = Walk(chosen.seed, folder, pc)
        walk.go(chosen.steps, chosen.weighed_every)
        walk.window.close()
        application.processEvents()
    account = walk.account
    account.judge_memory()
    sys.stdout.write(f"memory since step {_SEEN_AFTER}: {account.growth():+.1%}\n")
    for own_s, wall_s, result in account.gaps:
        sys.stdout.write(f"gap: {own_s * 1e3:.0f} ms own, {wall_s * 1e3:.0f} ms in all, {result}\n")
    sys.stdout.write("".join(f"TROUBLE {one}\n" for one in account.trouble[:20]))
    sys.stdout.write(f"walked {chosen.steps} steps, {len(account.trouble)} troubles\n")
    return 1 if account.trouble else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
