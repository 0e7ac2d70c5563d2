import os
import pickle
import socket
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from PySide6.QtCore import QAbstractTableModel, QCoreApplication, QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QAction, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QAbstractItemView, QApplication, QComboBox, QLabel, QTabWidget

from gpu_studio.core.benchmark.kept_run import kept_of
from gpu_studio.core.devices.devices import GpuProcess, decode_sensor_event, encode_sensor_event
from gpu_studio.core.messages.engine_messages import DescribeEngine, RecordingHeader
from gpu_studio.core.packed_frame import PackedFrame
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.model.benchmark.history_model import HistoryModel
from gpu_studio.model.benchmark.recording import AT_ONCE
from gpu_studio.model.pages import BENCHMARK, HISTORY
from gpu_studio.model.studio import Studio
from gpu_studio.ui.main_window import MainWindow
from tests.core.race.racing import CARD, over
from tests.core.test_texts import hostile_json, hostile_record
from tests.driving.pages import PAGES, go
from tests.driving.window import drop, find, text, wait_ready, wait_until
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.hostile_files import (
    HOSTILE_NAME,
    UNSHOWABLE,
    kept_run_of,
    race_recording,
)
from tests.fakes.pc import reading, two_cards
from tests.hostile_pictures import PNG_HEAD

_ROLES = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole)
# The program itself: a menu has a tab before its key, a long word may break between its letters.
_ALLOWED = {"\n", "\t", "\u200b"}
# A file system takes neither a slash nor a zero byte; Windows takes no control characters.
FILE_NAME = "".join(one for one in HOSTILE_NAME if one not in "\0\r\n" and ord(one) > 0x1F)


def shown_texts() -> Iterator[tuple[str, str]]:
    """Yield the texts of all widgets, with their object names, shown or not yet."""
    for widget in QApplication.allWidgets():
        for read in ("text", "toolTip", "windowTitle", "accessibleName", "toPlainText", "title"):
            if callable(method := getattr(widget, read, None)):
                yield widget.objectName(), str(method())
        if isinstance(widget, QComboBox):
            for row in range(widget.count()):
                yield widget.objectName(), widget.itemText(row)
        if isinstance(widget, QAbstractItemView) and widget.model() is not None:
            model = widget.model()
            for row in range(model.rowCount()):
                is_table = isinstance(model, QAbstractTableModel)
                for column in range(model.columnCount() if is_table else 1):
                    for role in _ROLES:
                        found = model.data(model.index(row, column), role)
                        yield widget.objectName(), str(found or "")
        for action in widget.findChildren(QAction):
            yield action.objectName(), action.text()


def assert_plain() -> None:
    shown = [
        (name, ascii(text))
        for name, text in shown_texts()
        if set(text) & set(UNSHOWABLE) - _ALLOWED
    ]
    assert not shown


def hostile_recording() -> bytes:
    content = race_recording([PackedFrame.of(np.zeros((2, 2, 3), np.uint8)).packed], side=2)
    header, *events = content.splitlines(keepends=True)
    named = hostile_json(msgspec.json.decode(header, type=RecordingHeader)) + b"\n"
    name = msgspec.json.encode(HOSTILE_NAME)
    return named + b"".join(event.replace(b'"GT 1030"', name) for event in events)


def test_what_is_dropped_shows_nothing_that_hides(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / f"{FILE_NAME}.json"
    path.write_bytes(hostile_record())
    assert drop(window, path)
    wait_until(lambda: "RTX" in text(window, "check.subject"))
    path = tmp_path / f"{FILE_NAME}.jsonl"
    path.write_bytes(hostile_recording())
    assert drop(window, path)
    wait_until(lambda: "RTX" in text(window, "race.outcome"))
    assert_plain()
    for ending, outcome, sentence in (
        ("png", "race.outcome", "cannot"),
        ("jsonl", "race.outcome", "cannot"),
        ("json", "check.outcome", "record"),
    ):
        path = tmp_path / f"{FILE_NAME} refused.{ending}"
        path.write_bytes(b"no file of any kind")
        assert drop(window, path)
        wait_until(lambda outcome=outcome, sentence=sentence: sentence in text(window, outcome))
        assert_plain()


@pytest.fixture
def studio(studio: Studio, tmp_path: Path) -> Studio:
    studio.data_folder = tmp_path / "data"
    return studio


def test_hostile_results_show_nothing_that_hides(
    make_window: Callable[..., MainWindow], tmp_path: Path
) -> None:
    window = make_window(data_folder=tmp_path / "data")
    window.show()
    studio = window.findChild(Studio)
    wait_ready(studio)
    studio.go_to(BENCHMARK)
    path = tmp_path / f"{FILE_NAME}.json"
    kept = kept_of(over(CARD, 0.01), "2026-11-22T12:00:00+00:00", "a")
    path.write_bytes(hostile_json(kept, spared=frozenset({"sha256"})))
    studio.go_to(HISTORY)
    history = window.findChild(HistoryModel)
    history.open_files([path])
    wait_until(lambda: history.entries)
    recording = tmp_path / f"{FILE_NAME}.jsonl"
    recording.write_bytes(hostile_recording())
    history.open_files([recording])
    wait_until(lambda: history.recording is not None)
    assert_plain()
    history.choose(pace=AT_ONCE)
    history.play()
    assert_plain()


_SENSORS = (2**64 - 1, 2**63, 2**31, -1, -(2**63), 0)


@pytest.fixture
def inventory():
    return two_cards()


def strange_reading(number: int, taken_at_s: float) -> Any:
    """Return a reading, as the reader's line has it, in which each number is this one."""
    values = {
        name: number if {"int", "ClockReason"} & set(str(kind).split()) else float(number)
        for name, kind in Telemetry.__annotations__.items()
        if "bool" not in kind
    }
    taken = reading(two_cards(), taken_at_s, **values)
    process = GpuProcess(pid=number, name="x" * 10_000, memory_bytes=number)
    cards = tuple(msgspec.structs.replace(card, processes=(process,)) for card in taken.cards)
    return decode_sensor_event(encode_sensor_event(msgspec.structs.replace(taken, cards=cards)))


def test_sensors_of_a_broken_driver_are_shown_in_every_tab(
    qtbot, studio, theme, engines, sensor_source
):
    engines.scripts[DescribeEngine] = [described_with_cuda(device_count=2)]
    window = MainWindow(studio, theme)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: studio.session.description is not None)
    tabs = find(window, "tabs", QTabWidget)
    for second, number in enumerate(_SENSORS):
        for tab in range(tabs.count()):
            tabs.setCurrentIndex(tab)
            event = strange_reading(number, 10.0 * second + tab)
            with qtbot.waitSignal(studio.sensors.reading_taken):
                sensor_source.send(event)
            QCoreApplication.processEvents()
    window.close()


def drop_urls(window: MainWindow, urls: Sequence[QUrl]) -> None:
    dragged = QMimeData()
    dragged.setUrls(list(urls))
    how = (Qt.DropAction.CopyAction, dragged, Qt.MouseButton.LeftButton)
    place, plain = window.rect().center(), Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(place, *how, plain)
    enter.ignore()
    QApplication.sendEvent(window, enter)
    assert enter.isAccepted()  # otherwise nothing can be said
    QApplication.sendEvent(window, QDropEvent(QPointF(place), *how, plain))


def test_whatever_is_dropped_is_answered(window: MainWindow, tmp_path: Path) -> None:
    paths = write_small(tmp_path)
    assert len(paths) >= 40
    for path in paths:
        seen = sentences(window)
        drop_urls(window, [QUrl.fromLocalFile(str(path))])
        wait_until(lambda seen=seen: bool(sentences(window) - seen))
        for sentence in sentences(window):
            assert "Traceback" not in sentence
    assert not (tmp_path / "fired").exists(), "a pickle was executed"
    for number, page in enumerate({one.tab: one for one in PAGES}.values()):
        go(window, page)
        drop_urls(window, [QUrl.fromLocalFile(str(tmp_path / f"{number}.zip"))])
        refused = f"GPU Studio cannot open {number}.zip here."
        wait_until(lambda refused=refused: text(window, "banner.sentence") == refused)
    drop_urls(window, [QUrl.fromLocalFile(str(tmp_path / name)) for name in ("a.png", "b.png")])
    wait_until(lambda: "one file at a time, not 2." in text(window, "banner.sentence"))
    for address in addresses():
        drop_urls(window, [address])
        assert text(window, "banner.sentence") == "GPU Studio opens files, not addresses."


def sentences(window: MainWindow) -> set[str]:
    return {one.text() for one in window.findChildren(QLabel) if one.isVisible()}


ENDINGS = ("png", "json", "jsonl", "html")
_NAMES = (
    "line\nbreak", "turned \u202egnp.", "<img src=x onerror=1>", "<b>bold</b>&amp;", "%s {0} %n",
    "x" * 240, "\u200b\u200d", "‮", "..", "a\x1b[31mred", "\U0001f4a9" * 20,
)  # fmt: skip
_ADDRESSES = (
    "http://127.0.0.1:9/a.png", "https://example.invalid/a.json", "smb://nas/share/a.png",
    "ftp://x/a.jsonl", "data:image/png;base64,AAAA", "javascript:alert(1)", "about:blank", "",
)  # fmt: skip


class Bomb:
    """A pickle that would make a file if anybody executed it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self._path, "w")


def texts(fired: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of small files that are wrong in one way each.

    Args:
        fired: a path that must not exist afterwards.
    """
    yield "nested.json", b"[" * 100_000
    yield "infinity.json", b'{"schema": 1, "seconds": Infinity}'
    yield "exponent.json", b'{"schema": 1e400}'
    yield "utf-16.json", '{"schema": 1}'.encode("utf-16")
    yield "history.json", kept_run_of("<img src=x>")
    yield "one line.jsonl", b'{"type":"' + b"x" * 1_000_000
    yield "many lines.jsonl", b"{}\n" * 100_000
    yield "table.csv", b"=cmd|' /C calc'!A0,1\n"
    yield "snapshot.pickle", pickle.dumps(Bomb(str(fired)))
    yield "pickle.json", pickle.dumps(Bomb(str(fired)))
    yield "program.exe", b"MZ" + bytes(100)
    yield "no ending", b"hello"
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("../../evil.png", PNG_HEAD)
    for name in ("archive.zip", "archive.png", "archive.json"):
        yield name, out.getvalue()
    for ending in ENDINGS:
        yield f"empty.{ending}", b""
        yield f"noise.{ending}", os.urandom(5_000)
    for name in _NAMES:
        yield f"{name}.jsonl", b"{}"
        yield f"{name}.txt", b""


def write_small(folder: Path) -> list[Path]:
    """Write what takes a moment, and what is no file; return the paths, one for each drop."""
    return [*_written(folder, texts(folder / "fired")), *_no_files(folder)]


def addresses() -> list[QUrl]:
    return [QUrl(text) for text in _ADDRESSES]


def _written(folder: Path, files: Iterator[tuple[str, bytes]]) -> Iterator[Path]:
    for name, content in files:
        path = folder / name
        try:
            path.write_bytes(content)
        except (OSError, ValueError):  # this system has no such name
            continue
        yield path


def _no_files(folder: Path) -> Iterator[Path]:
    """Yield folders, pipes, devices, loops, and what vanished."""
    for ending in ENDINGS:
        (folder / f"folder.{ending}").mkdir()
        yield folder / f"folder.{ending}"
        yield folder / f"vanished.{ending}"
    if sys.platform == "win32":
        return
    for ending in ENDINGS:
        os.mkfifo(folder / f"pipe.{ending}")
        links = {"zero": "/dev/zero", "random": "/dev/urandom", "loop": f"loop.{ending}"}
        for name, target in links.items():
            (folder / f"{name}.{ending}").symlink_to(target)
        unreadable = folder / f"unreadable.{ending}"
        unreadable.write_bytes(b"{}")
        unreadable.chmod(0)
        yield from (folder / f"{name}.{ending}" for name in ("pipe", *links, "unreadable"))
    place = folder / "socket.png"
    if len(str(place)) < 100:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(place))
        yield place
