"""The page Compare in the whole window: files of other PCs beside this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QFileDialog,
    QLineEdit,
    QPushButton,
    QTabWidget,
    QToolButton,
)

from gpu_studio.app import build_window
from gpu_studio.core.benchmark.standard_file import FOLDER_NAME, StandardFolder, read_standard
from gpu_studio.core.benchmark.standard_record import CHUNK, encode_standard, shared_json
from gpu_studio.model.pages import COMPARE
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui.result_bars import ResultBars
from gpu_studio.ui.share_dialog import ShareDialog
from gpu_studio.ui.tabs import TABS
from tests.core.benchmark.standard_runs import paced_device, standard_run
from tests.driving.window import (
    click,
    drop,
    find,
    open_tab,
    sees,
    text,
    wait_ready,
    wait_until,
)
from tests.fakes.pc import SteadySensors, two_cards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpu_studio.core.benchmark.standard_record import StandardRun
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
) -> Iterator[Callable[[str], MainWindow]]:
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


def picture_of(path: Path, run: StandardRun) -> Path:
    """Save the picture that another PC shares."""
    image = QImage(8, 8, QImage.Format.Format_RGB32)
    image.fill(QColor("black"))
    image.setText(CHUNK, shared_json(run))
    image.save(str(path), "PNG")
    return path


def verdicts(window: MainWindow, key: str = "bandwidth") -> list[str]:
    bars = find(window, f"standard.bars.{key}", ResultBars).bars
    return [bar.verdict.replace("\u202f", " ") for bar in bars]


def test_a_picture_of_another_pc_dropped_on_any_tab_opens_beside_this_one(
    open_window: Callable[..., MainWindow], tmp_path: Path
) -> None:
    path = picture_of(tmp_path / "no ending", THEIRS)
    window = open_window("mine", OWN)
    for tab in TABS:
        open_tab(window, tab.title)
        assert drop(window, path)
        wait_until(lambda: sees(window, "standard.source.1"))
        assert find(window, "tabs", QTabWidget).currentIndex() == 2
        assert text(window, "standard.heading") == (
            "The RTX 3060 beats your GTX 1660 SUPER in all 9"
        )
        assert "This PC" in text(window, "standard.source.0")
        assert "Ana's PC, 2026-11-20" in text(window, "standard.source.1")
        assert verdicts(window) == ["this PC", "▲ 2.0 × faster"]
        cross = find(window, "standard.remove.1", QToolButton)
        assert cross.accessibleName() == "Remove RTX 3060"
        click(window, "standard.remove.1")
        wait_until(lambda: not sees(window, "standard.source.1"))


def test_a_picture_saved_in_one_window_opens_in_another_as_a_comparison(
    open_window: Callable[..., MainWindow], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "theirs.png"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    monkeypatch.setattr(ShareDialog, "exec", ShareDialog.open)  # the tests go on beside it
    their_window = open_window("theirs", msgspec.structs.replace(THEIRS, pc_name=""))
    their_window.findChild(Studio).go_to(COMPARE)
    wait_until(lambda: find(their_window, "benchmark.compare.share", QPushButton).isEnabled())
    click(their_window, "benchmark.compare.share")
    (dialog,) = their_window.findChildren(ShareDialog)
    name = find(dialog, "share.name", QLineEdit)
    QTest.keyClicks(name, "Ana's PC")
    QTest.keyClick(name, Qt.Key.Key_Return)
    click(dialog, "share.save")
    dialog.close()
    window = open_window("mine", OWN)

    assert drop(window, path)
    wait_until(lambda: sees(window, "standard.source.1"))
    assert "Ana's PC, 2026-11-20" in text(window, "standard.source.1")
    assert verdicts(window) == ["this PC", "▲ 2.0 × faster"]


def test_several_files_are_dropped_at_once_and_each_device_can_be_chosen(
    open_window: Callable[..., MainWindow], tmp_path: Path
) -> None:
    paths = []
    for number in range(7):
        run = standard_run(paced_device(f"card {number}", 1.0 + number))
        paths.append(tmp_path / f"{number}.txt")
        paths[-1].write_bytes(encode_standard(run))
    window = open_window("mine")
    assert drop(window, picture_of(tmp_path / "a.png", THEIRS), *paths[:5])
    wait_until(lambda: sees(window, "standard.source.5"))
    assert sees(window, "benchmark.compare.own")  # it says what to press
    assert not find(window, "benchmark.compare.add", QPushButton).isEnabled()
    assert drop(find(window, "benchmark.compare"), paths[5])
    wait_until(lambda: "Up to 6 files" in text(window, "benchmark.compare.outcome"))
    box = find(window, "standard.device.0", QComboBox)
    assert [box.itemText(n) for n in range(box.count())] == ["Ryzen 7 5700G", "RTX 3060"]
    box.setCurrentIndex(0)
    box.activated.emit(0)
    wait_until(lambda: "Ryzen 7 5700G" in text(window, "standard.heading"))


def test_what_holds_no_run_is_refused_on_the_page_and_loses_nothing(
    open_window: Callable[..., MainWindow], tmp_path: Path
) -> None:
    window = open_window("mine", OWN)
    page = picture_of(tmp_path / "good.png", THEIRS)
    assert drop(window, page)
    wait_until(lambda: sees(window, "standard.source.1"))
    stripped = tmp_path / "chat.png"
    image = QImage(10, 10, QImage.Format.Format_RGB32)
    image.fill(QColor("black"))
    image.save(str(stripped), "PNG")
    compare = find(window, "benchmark.compare")
    for path, reason in (
        (stripped, "has lost its data"),
        (page, "is here already"),
        (tmp_path / "none", "it does not exist"),
    ):
        assert drop(compare, path)
        wait_until(lambda reason=reason: reason in text(window, "benchmark.compare.outcome"))
    (tmp_path / "old").write_bytes(encode_standard(OWN).replace(b'"standard":1', b'"standard":7'))
    assert drop(window, tmp_path / "old")
    wait_until(lambda: "is of standard 7" in text(window, "benchmark.compare.outcome"))
    assert sees(window, "standard.source.1")


def test_the_comparison_is_copied_and_saved(
    open_window: Callable[..., MainWindow], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = standard_run(paced_device("a | <b>`x`"), pc_name="<i>")
    path = tmp_path / "comparison.png"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    monkeypatch.setattr(ShareDialog, "exec", ShareDialog.open)  # the tests go on beside it
    window = open_window("mine", OWN)
    assert drop(window, picture_of(tmp_path / "a.png", named))
    wait_until(lambda: sees(window, "standard.source.1"))
    click(window, "benchmark.compare.share")
    (dialog,) = window.findChildren(ShareDialog)
    click(dialog, "share.save")
    assert QImage(str(path)).width() == 1200
    assert read_standard(path) == OWN  # it opens as a comparison itself
    find(dialog, "share.form", QComboBox).setCurrentIndex(1)
    click(dialog, "share.copy")
    lines = QGuiApplication.clipboard().text().splitlines()
    table = [line for line in lines if line.startswith("| ")]
    assert r"a \| &lt;b\>" in table[0]
    assert len({line.replace(r"\|", "").count("|") for line in table}) == 1
    dialog.close()
