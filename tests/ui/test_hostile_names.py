from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from PySide6.QtCore import QAbstractTableModel, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractItemView, QApplication, QComboBox

from gpu_studio.core.benchmark.kept_run import kept_of
from gpu_studio.core.messages.engine_messages import RecordingHeader
from gpu_studio.core.packed_frame import PackedFrame
from gpu_studio.model.benchmark.history_model import HistoryModel
from gpu_studio.model.benchmark.recording import AT_ONCE
from gpu_studio.model.pages import BENCHMARK, HISTORY
from gpu_studio.model.studio import Studio
from gpu_studio.ui.main_window import MainWindow
from tests.core.race.racing import CARD, over
from tests.core.test_texts import hostile_json, hostile_record
from tests.driving.window import drop, text, wait_until
from tests.fakes.hostile_files import HOSTILE_NAME, UNSHOWABLE, race_recording

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


def test_hostile_results_show_nothing_that_hides(
    window: MainWindow, ready_studio: Studio, tmp_path: Path
) -> None:
    ready_studio.go_to(BENCHMARK)
    path = tmp_path / f"{FILE_NAME}.json"
    kept = kept_of(over(CARD, 0.01), "2026-11-22T12:00:00+00:00", "a")
    path.write_bytes(hostile_json(kept, spared=frozenset({"sha256"})))
    ready_studio.go_to(HISTORY)
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
