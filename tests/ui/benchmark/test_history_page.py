"""Benchmark › History in the window: one list, rows that are compared, and files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QInputDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QTableView,
    QToolButton,
)

from gpu_studio.app import build_window
from gpu_studio.core.benchmark.history import FOLDER_NAME as HISTORY_FOLDER
from gpu_studio.core.benchmark.history import History
from gpu_studio.core.benchmark.standard_record import (
    CHUNK,
    FOLDER_NAME,
    StandardFolder,
    encode_standard,
    read_standard,
    shared_json,
)
from gpu_studio.model.benchmark.history_model import HistoryModel
from gpu_studio.model.pages import HISTORY, Destination
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui.standard_page import ShareDialog
from gpu_studio.ui.tabs import TABS
from tests.core.benchmark.kept_runs import kept_run
from tests.core.benchmark.standard_runs import paced_device, standard_run
from tests.driving.benchmark import drawn_keys, requests_of, run, select_row, wait_over
from tests.driving.window import (
    click,
    drawn,
    drop,
    find,
    open_tab,
    plain,
    text,
    wait_ready,
    wait_until,
)
from tests.fakes.pc import SteadySensors, two_cards
from tests.ui.benchmark.answers import with_a_card

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.benchmark.standard_record import StandardRun
    from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
    from gpu_studio.ui.main_window import MainWindow
    from tests.fakes.scripted_engine import Engines

OWN = standard_run(
    paced_device("Ryzen 5 3600", 0.05, device="cpu"), paced_device("NVIDIA GeForce GTX 1660 SUPER")
)
THEIRS = standard_run(
    paced_device("Ryzen 7 5700G", 0.06, device="cpu"),
    paced_device("NVIDIA GeForce RTX 3060", 2.0),
    pc_name="Ana's PC",
    made_at="2026-11-20T14:31:00+01:00",
)


@pytest.fixture
def open_window(
    pages_on_sight: None, qapp: QApplication, engines: Engines, tmp_path: Path
) -> Iterator[Callable[..., MainWindow]]:
    """Open the window of a PC, with a folder of its own for its settings and results."""
    opened: list[MainWindow] = []

    def open_(pc: str, run: StandardRun | None = None) -> MainWindow:
        folder = tmp_path / pc
        if run is not None:
            StandardFolder(folder / FOLDER_NAME).keep(run)
        window = build_window(
            engine_factory=engines, sensor_source=SteadySensors(two_cards()),
            settings=Settings(folder / "settings.json"), data_folder=folder,
        )  # fmt: skip
        opened.append(window)
        window.show()
        wait_ready(window.findChild(Studio))
        return window

    yield open_
    for window in opened:
        window.close()
        window.deleteLater()  # every later style sheet would be worked out for it as well


def rows(window: QWidget, name: str = "benchmark.history.table") -> list[list[str]]:
    model = find(window, name, QTableView).model()
    columns = range(model.columnCount())
    cells = [[model.index(row, one).data() for one in columns] for row in range(model.rowCount())]
    return [[plain(cell) for cell in row] for row in cells]


def choose(window: QWidget, *numbers: int) -> None:
    """Click on a row, and on others with Ctrl."""
    view = find(window, "benchmark.history.table", QTableView)
    for number in numbers:
        place = view.visualRect(view.model().index(number, 0)).center()
        key = Qt.KeyboardModifier.NoModifier
        if number != numbers[0]:
            key = Qt.KeyboardModifier.ControlModifier
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, key, place)


def heading(window: QWidget) -> str:
    shown = window.findChild(QLabel, "benchmark.history.heading")  # the page is made late
    return plain(shown.text()) if shown is not None else ""


def go(window: MainWindow) -> None:
    window.findChild(Studio).go_to(HISTORY)
    wait_until(lambda: not window.findChild(HistoryModel).is_busy)


def picture_of(path: Path, run: StandardRun) -> Path:
    """Save the picture that another PC shares."""
    image = QImage(8, 8, QImage.Format.Format_RGB32)
    image.fill(QColor("black"))
    image.setText(CHUNK, shared_json(run))
    image.save(str(path), "PNG")
    return path


# ── other PCs ────────────────────────────────────────────────────────────────────────────────────


def test_a_picture_of_another_pc_dropped_on_any_tab_is_compared_with_this_one(
    open_window: Callable[..., MainWindow], tmp_path: Path
) -> None:
    path = picture_of(tmp_path / "no ending", THEIRS)
    window = open_window("mine", OWN)
    for tab in TABS:
        open_tab(window, tab.title)
        assert drop(window, path)
        wait_until(lambda: heading(window) == "The RTX 3060 beats your GTX 1660 SUPER in all 9")
        assert [row[2] for row in rows(window)] == [
            "Ryzen 7 5700G, Ana's PC", "RTX 3060, Ana's PC", "Ryzen 5 3600", "GTX 1660 SUPER",
        ]  # fmt: skip
        compared = rows(window, "benchmark.history.compared")
        assert compared[0] == ["Memory bandwidth", "GTX 1660 SUPER", "298 GB/s", "295 to 301", ""]
        assert compared[1][1:] == ["RTX 3060", "596 GB/s", "590 to 602", "▲ 2.0 × faster"]
        assert "Training step: the RTX 3060 is 2.0 × faster." in plain(
            text(window, "benchmark.history.sentence")
        )
        choose(window, 0, 1)
        click(window, "benchmark.history.delete")
        wait_until(lambda: len(rows(window)) == 2)


def test_a_picture_exported_in_one_window_opens_in_another_as_a_comparison(
    open_window: Callable[..., MainWindow], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "theirs.png"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    monkeypatch.setattr(ShareDialog, "exec", ShareDialog.open)  # the tests go on beside it
    their_window = open_window("theirs", THEIRS)
    go(their_window)
    choose(their_window, 0, 1)
    click(their_window, "benchmark.history.export")
    (dialog,) = their_window.findChildren(ShareDialog)
    name = find(dialog, "share.name", QLineEdit)
    QTest.keyClicks(name, "Bob's PC")
    QTest.keyClick(name, Qt.Key.Key_Return)
    click(dialog, "share.save")
    dialog.close()
    table = find(their_window, "benchmark.history.compared", QTableView)
    table.selectAll()
    QTest.keySequence(table, QKeySequence.StandardKey.Copy)
    copied = QGuiApplication.clipboard().text().splitlines()
    assert copied[0].startswith("| Work | Device | ")
    assert copied[2].startswith("| Memory bandwidth | ")
    assert len(copied) == 2 + len(rows(their_window, "benchmark.history.compared"))
    assert read_standard(path).devices == THEIRS.devices
    window = open_window("mine", OWN)
    assert drop(window, path)
    wait_until(lambda: heading(window).endswith("in all 9"))
    assert "RTX 3060, Bob's PC" in [row[2] for row in rows(window)]


def test_files_are_opened_by_the_button_and_refused_with_a_reason_that_loses_nothing(
    open_window: Callable[..., MainWindow], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_(*paths: Path) -> None:
        chosen = ([str(path) for path in paths], "")
        monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: chosen)
        click(window, "benchmark.history.open")

    window = open_window("mine")
    go(window)
    assert heading(window).startswith("No runs yet")
    paths = []
    for number in range(8):
        paths.append(tmp_path / f"{number}.txt")
        paths[-1].write_bytes(encode_standard(standard_run(paced_device(f"card {number}"))))
    open_(*paths)
    wait_until(lambda: len(rows(window)) == 8)
    assert "Only the first 7 of 8" in text(window, "benchmark.history.sentence")
    stripped = tmp_path / "chat.png"
    QImage(10, 10, QImage.Format.Format_RGB32).save(str(stripped), "PNG")
    other = tmp_path / "old"
    other.write_bytes(encode_standard(OWN).replace(b'"standard":1', b'"standard":7'))
    (tmp_path / "bad.json").write_bytes(b"{")
    for path, reason in (
        (stripped, "has lost its data"),
        (paths[0], "are here already"),
        (tmp_path / "none", "it does not exist"),
        (other, "is of standard 7"),
        (tmp_path / "bad.json", "is damaged"),
    ):
        open_(path)
        wait_until(lambda reason=reason: reason in text(window, "benchmark.history.outcome"))
    assert len(rows(window)) == 8


# ── kept runs ────────────────────────────────────────────────────────────────────────────────────


def test_older_runs_come_when_they_are_asked_for_and_the_list_scrolls(
    open_window: Callable[..., MainWindow], tmp_path: Path
) -> None:
    saved = History(tmp_path / "mine" / HISTORY_FOLDER)
    for minute in range(50):
        saved.add(kept_run(f"2026-01-01T00:{minute:02}:00+00:00"))
    window = open_window("mine")
    go(window)
    wait_until(lambda: len(rows(window)) == 20)
    more = find(window, "benchmark.history.more", QPushButton)
    assert more.text() == "Show 30 older"
    height = find(window, "benchmark.history.table", QTableView).height()
    click(window, "benchmark.history.more")
    wait_until(lambda: len(rows(window)) == 40)
    assert find(window, "benchmark.history.table", QTableView).height() == height
    click(window, "benchmark.history.more")
    wait_until(lambda: len(rows(window)) == 50)
    assert not more.isVisible()


@with_a_card
def test_runs_are_compared_named_shown_in_the_plot_and_deleted_after_asking(
    ready: BenchmarkTab, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(ready, "64, 128")
    ready.go_to(Destination(page=HISTORY))
    wait_until(lambda: len(rows(ready)) == 4)
    sizes = [row[1].split(", ")[1] for row in rows(ready)]
    large = [number for number, size in enumerate(sizes) if size == "128 × 128"]
    choose(ready, *large)
    assert heading(ready).startswith("The GT 1030 is ")
    assert len(rows(ready, "benchmark.history.compared")) == 2
    monkeypatch.setattr(QInputDialog, "getText", lambda *_, **__: ("<b>before</b>", True))
    choose(ready, large[0])
    assert "40 samples" in text(ready, "benchmark.history.sentence")
    click(ready, "benchmark.history.rename")
    wait_until(lambda: rows(ready)[large[0]][1].startswith("<b>before</b>: "))

    click(ready, "benchmark.history.overlay")
    wait_until(lambda: len(drawn(ready, "benchmark.plot", "kept")[0]) == 40)
    select_row(ready, 0)  # 64: other work
    assert "kept" not in drawn_keys(ready)
    select_row(ready, 1)
    assert "kept" in drawn_keys(ready)
    click(ready, "benchmark.clear")
    assert "kept" not in drawn_keys(ready)
    ready.go_to(Destination(page=HISTORY))

    click(ready, "benchmark.history.delete")
    delete = find(ready, "benchmark.history.delete", QPushButton)
    assert (delete.text(), len(rows(ready))) == ("Delete forever?", 4)
    choose(ready, large[1])  # takes the question back
    assert delete.text() == "Delete"
    QTest.keyClick(find(ready, "benchmark.history.table", QTableView), Qt.Key.Key_Delete)
    click(ready, "benchmark.history.delete")
    wait_until(lambda: len(rows(ready)) == 3)


@with_a_card
def test_the_published_test_is_repeated_beside_its_table(ready: BenchmarkTab) -> None:
    def row(number: int) -> list[str]:
        return rows(ready, "benchmark.published.table")[number]

    ready.go_to(Destination(page=HISTORY))
    find(ready, "benchmark.published.more", QToolButton).click()
    assert "Radosław Śmigielski" in text(ready, "benchmark.published.source")
    assert row(1) == ["2048 × 2048", "2048", "30.2 s", "45.5 s", "–", "–"]
    click(ready, "benchmark.preset.gt_1030")
    wait_over(ready)
    asked = [(r.size, r.dtype, r.device, r.budget_s, r.naive) for r in requests_of(ready)]
    assert asked[:2] == [(512, "float16", "cpu", 2.0, True), (512, "float16", "cuda:0", 2.0, True)]
    assert {size for size, *_ in asked} == {512, 2048, 4096}
    ready.go_to(Destination(page=HISTORY))
    median_s = ready.benchmark.results[2].median_s
    assert row(1)[4] == f"≈ {2048 * median_s:.2f} s"
