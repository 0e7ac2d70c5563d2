from pathlib import Path

import pytest
from PySide6.QtGui import QAction, QDesktopServices
from PySide6.QtWidgets import QMainWindow, QMessageBox, QTabWidget
from pytestqt.qtbot import QtBot

from gpu_studio.core.check.check_file import RECORD_ENDINGS, has_record
from gpu_studio.core.packaged_parts import PackagedPart
from gpu_studio.core.png_chunks import PNG_HEAD
from gpu_studio.model import pages
from gpu_studio.model.pages import BENCHMARK, CHECK, DEVICES, HISTORY, RACE, PageId
from gpu_studio.model.studio import Studio
from gpu_studio.ui import menus
from gpu_studio.ui.menus import fill_menus
from gpu_studio.ui.tabs import page_for_file, tab_of
from tests.fakes.check_answers import check_record
from tests.fakes.scripted_engine import Engines


@pytest.fixture
def log_path(tmp_path: Path) -> Path | None:
    return tmp_path / "gpu-studio.log"


@pytest.fixture
def window(qtbot: QtBot, ready_studio: Studio, log_path: Path | None) -> QMainWindow:
    window = QMainWindow()
    qtbot.addWidget(window)
    tabs = QTabWidget()
    window.setCentralWidget(tabs)
    code = QAction("Code", window)
    fill_menus(window, ready_studio, tabs, window.close, window.showFullScreen, code, log_path)
    return window


def action(window: QMainWindow, text: str) -> QAction:
    menus = [menu.menu() for menu in window.menuBar().actions()]
    found = [a for menu in menus for a in menu.actions() if a.text().replace("&", "") == text]
    assert len(found) == 1, text
    return found[0]


def test_the_colours_are_chosen_and_kept(window: QMainWindow, ready_studio: Studio) -> None:
    assert action(window, "System colors").isChecked()
    action(window, "Dark colors").trigger()
    assert ready_studio.settings.choices.theme == "dark"
    assert not action(window, "System colors").isChecked()


def test_ending_processes_is_allowed_and_forbidden(
    window: QMainWindow, ready_studio: Studio
) -> None:
    allowing = action(window, "Allow ending processes on the Devices tab")
    assert not allowing.isChecked()
    allowing.trigger()
    assert ready_studio.settings.choices.may_end_processes
    allowing.trigger()
    assert not ready_studio.settings.choices.may_end_processes


def test_a_fresh_engine_starts(
    qtbot: QtBot, window: QMainWindow, ready_studio: Studio, engines: Engines
) -> None:
    action(window, "Start PyTorch anew").trigger()
    qtbot.waitUntil(lambda: ready_studio.session.is_free)
    assert len(engines.made) == 2


def test_the_log_is_opened_and_reported(
    window: QMainWindow, log_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, shown = [], []
    monkeypatch.setattr(QDesktopServices, "openUrl", opened.append)
    monkeypatch.setattr(QMessageBox, "exec", lambda box: shown.append(box.informativeText()))
    action(window, "Open the log folder").trigger()
    assert [url.toLocalFile() for url in opened] == [log_path.parent.as_posix()]
    action(window, "About GPU Studio").trigger()
    assert shown == [f"Log: {log_path}"]


def test_an_installed_program_reports_the_licenses_of_its_parts(
    window: QMainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    monkeypatch.setattr(QMessageBox, "exec", lambda box: shown.append(box.detailedText()))
    action(window, "About GPU Studio").trigger()
    part = PackagedPart("numpy", "2.4.6", "BSD-3-Clause", ())
    monkeypatch.setattr(menus, "packaged_parts", lambda: (part,))
    action(window, "About GPU Studio").trigger()
    assert shown[0] == ""  # a checkout
    assert "numpy 2.4.6: BSD-3-Clause" in shown[1]


def test_the_text_grows_and_shrinks_in_steps_and_is_kept(
    window: QMainWindow, ready_studio: Studio
) -> None:
    settings = ready_studio.settings
    sizes = []
    for text in ("Larger text", "Larger text", "Usual text", "Smaller text"):
        action(window, text).trigger()
        sizes.append(settings.choices.text_size)
    assert sizes == [110, 125, 100, 90]
    for _ in range(20):
        action(window, "Larger text").trigger()
    assert settings.choices.text_size == 200


def test_each_menu_and_entry_has_its_own_letter(window: QMainWindow) -> None:
    menus = [menu.menu() for menu in window.menuBar().actions()]
    for actions in (window.menuBar().actions(), *(menu.actions() for menu in menus)):
        letters = [a.text().split("&")[1][0].lower() for a in actions if "&" in a.text()]
        assert len(letters) == len(set(letters)), letters


def test_every_page_that_the_program_leads_to_is_in_a_record() -> None:
    for page in (one for one in vars(pages).values() if isinstance(one, PageId) and one.tab):
        tab = tab_of(page)
        assert page in (tab.page, tab.recognized) or page in tab.parts


@pytest.mark.usefixtures("qapp")  # Qt paints the record
def test_a_record_of_a_check_is_distinguished_from_a_photo_by_its_contents(tmp_path: Path) -> None:
    from gpu_studio.ui.check.record_document import png_of_record

    photo, record = tmp_path / "photo.png", tmp_path / "record.png"
    photo.write_bytes(PNG_HEAD + b"a photo")
    record.write_bytes(png_of_record(check_record({})))
    assert has_record(record)
    assert page_for_file(photo, BENCHMARK) == RACE
    assert page_for_file(record, BENCHMARK) == CHECK
    others = set(RECORD_ENDINGS) - {".png"}
    assert {page_for_file(tmp_path / f"a{ending}", RACE) for ending in others} == {CHECK}


def test_a_recording_is_for_the_benchmark_if_that_is_in_front(tmp_path: Path) -> None:
    for front, opens in ((BENCHMARK, HISTORY), (DEVICES, RACE), (RACE, RACE)):
        assert page_for_file(tmp_path / "a.jsonl", front) == opens
    assert page_for_file(tmp_path / "results.json", BENCHMARK) == HISTORY
    assert page_for_file(tmp_path / "a.zip", BENCHMARK) is None
