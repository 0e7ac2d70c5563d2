import pytest
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import (
    QFileDialog,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QTabWidget,
)

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.program_form import typed
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.pages import MEMORY
from gpu_studio.model.settings import Choices
from gpu_studio.model.studio import Studio
from gpu_studio.ui.diagnostics_dialog import DiagnosticsDialog
from gpu_studio.ui.main_window import MainWindow, show_unexpected
from gpu_studio.ui.scroll_page import LazyPage, idle_work
from gpu_studio.ui.tabs import TABS
from tests.driving.pages import settle
from tests.driving.window import (
    click,
    open_tab,
    places,
    sees,
    text,
)
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import SteadySensors, cpu_only, gt_1030


def studio_of(window: MainWindow) -> Studio:
    return window.findChild(Studio)


def shown(qtbot, window: MainWindow) -> MainWindow:
    window.show()
    qtbot.waitUntil(lambda: studio_of(window).session.state is EngineState.READY)
    return window


def test_nothing_runs_before_the_first_paint(qtbot, make_window, engines):
    window = make_window()
    assert studio_of(window).session.state is EngineState.ABSENT
    shown(qtbot, window)
    assert [type(request) for request in engines.requests][:1] == [DescribeEngine]


@pytest.mark.parametrize("made", [1, len(TABS) + 1])
def test_closed_before_all_its_pages_are_made_it_makes_no_more(
    qtbot, make_window, monkeypatch, made
):
    pages = []
    make = LazyPage.make

    def make_and_close(lazy):
        pages.append(lazy)
        if len(pages) == made:
            window.close()
        return make(lazy)

    window = make_window(tabs_after_paint=True)
    monkeypatch.setattr(LazyPage, "make", make_and_close)
    window.show()
    qtbot.waitUntil(lambda: len(pages) == made and idle_work().is_done)
    assert len(pages) == made


def test_closing_keeps_the_tab_and_the_place(qtbot, make_window, settings):
    window = shown(qtbot, make_window())
    window.findChild(QTabWidget, "tabs").setCurrentIndex(4)
    window.resize(840, 700)  # no wider than the screen may be: a restored window is clipped to it
    window.close()
    assert settings.choices.tab == MEMORY.tab
    again = make_window()
    assert again.findChild(QTabWidget, "tabs").currentIndex() == 4
    assert (again.width(), again.height()) == (840, 700)


def test_a_card_without_code_is_reported_once_on_each_tab(qtbot, make_window, engines):
    from tests.fakes.descriptions import described

    engines.scripts[DescribeEngine] = [
        described(
            torch_version="2.13.0+cu130", cuda_build="13.0", cuda_available=True, device_count=1,
            arch_list=("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"),
        )
    ]  # fmt: skip
    window = shown(qtbot, make_window(gt_1030()))
    qtbot.waitUntil(lambda: sees(window, "devices.verdict.command"))
    assert "cu126" in text(window, "devices.verdict.sentence")
    assert window.banner.isHidden()
    open_tab(window, "Benchmark")
    assert all(fact in window.banner.sentence for fact in ("GT 1030", "cu126"))
    window.findChild(QPushButton, "banner.copy").click()
    assert QGuiApplication.clipboard().text() == typed("gpu-studio engine install cu126")
    window.findChild(QPushButton, "banner.close").click()
    assert window.banner.isHidden()


def test_the_status_line_names_device_and_versions(qtbot, make_window, engines):
    engines.scripts[DescribeEngine] = [described_with_cuda()]
    window = shown(qtbot, make_window(gt_1030()))
    status = window.findChild(QLabel, "status")
    qtbot.waitUntil(lambda: "card cuda:0 GT 1030" in status.text())
    assert "PyTorch: ready" in status.text()
    assert "PyTorch 2.13.0" in status.text()


def test_what_a_run_did_to_the_card_is_said_on_every_tab(qtbot, make_window):
    window = shown(qtbot, make_window(gt_1030()))
    line = window.findChild(QLabel, "status.effect")
    studio_of(window).runs.effect_changed.emit("P8 → P0, +14 °C in matmul, 512, float32 on cuda:0.")
    for index in range(window.tabs.count()):
        window.tabs.setCurrentIndex(index)
        assert line.isVisible()
    line.setFixedWidth(line.fontMetrics().horizontalAdvance(line.text()) * 2 // 3)
    assert line.shown_text.startswith("P8 → P0, +14 °C")  # what is new, where not all of it fits


def test_something_unexpected_is_a_sentence_and_no_trace(qtbot, make_window, tmp_path):
    log_path = tmp_path / "gpu-studio.log"
    window = shown(qtbot, make_window(log_path=log_path))
    show_unexpected("Something unexpected happened inside the program; it goes on.")
    assert "unexpected" in window.banner.sentence
    assert "Traceback" not in window.banner.accessibleDescription()
    log_path.write_text("Unexpected\nOverflowError: int too large\n", encoding="utf-8")
    click(window, "banner.action")
    dialog = window.findChild(DiagnosticsDialog)
    click(dialog, "diagnostics.copy")
    assert "OverflowError: int too large" in QGuiApplication.clipboard().text()
    dialog.close()


def test_missing_resources_do_not_stop_the_window(qtbot, make_window, monkeypatch):
    from gpu_studio.core import resources

    def missing(name: str):
        raise resources.MissingResourceError(name, "is missing")

    for module in ("gpu_studio.ui.theme", "gpu_studio.ui.icons", "gpu_studio.app"):
        monkeypatch.setattr(f"{module}.resource_path", missing)
    shown(qtbot, make_window())


def test_the_sensors_are_read_behind_every_tab_and_rest_while_the_window_is_hidden(
    qtbot, make_window
):
    """Their curves have no gap."""
    sensors = SteadySensors(cpu_only())
    window = shown(qtbot, make_window(sensor_source=sensors))
    tabs = window.tabs
    for index in range(tabs.count()):
        tabs.setCurrentIndex(index)
        assert window.findChild(Studio).sensors.is_polled, tabs.tabText(index)
    assert sensors.is_paused is None
    window.hide()
    assert sensors.is_paused
    window.show()
    assert not sensors.is_paused
    window.close()


def test_after_a_bad_end_the_window_shows_the_log_and_offers_fresh_settings(
    qtbot, make_window, settings
):
    settings.change(theme="dark")
    bad_end = "Fatal Python error: Aborted"
    window = make_window(bad_end=f"{bad_end}\n/home/somebody/studio/app.py")
    shown(qtbot, window)
    assert window.banner.sentence
    click(window, "banner.action")
    assert window.banner.sentence == ""
    dialog = window.findChild(DiagnosticsDialog)
    shown_text = dialog.findChild(QPlainTextEdit, "diagnostics.text").toPlainText()
    assert bad_end in shown_text
    assert "somebody" not in shown_text
    assert "PyTorch: 2." in shown_text
    settle()
    before = places(dialog)
    click(dialog, "diagnostics.copy")
    assert QGuiApplication.clipboard().text() == shown_text
    settle()
    assert places(dialog) == before
    click(dialog, "diagnostics.fresh")
    settle()
    assert places(dialog) == before
    assert settings.choices == Choices()
    assert not dialog.findChild(QPushButton, "diagnostics.fresh").isEnabled()
    dialog.close()


LAST_LINE = "The window was opened"


def test_diagnostics_can_be_copied_at_any_time(qtbot, make_window, tmp_path):
    log_path = tmp_path / "gpu-studio.log"
    log_path.write_text(f"{LAST_LINE}\n", encoding="utf-8")
    window = make_window(log_path=log_path)
    window.findChild(QAction, "menu.diagnostics").trigger()
    dialog = window.findChild(DiagnosticsDialog)
    text = dialog.findChild(QPlainTextEdit, "diagnostics.text").toPlainText()
    assert "PyTorch: 2." not in text  # not yet known
    assert text.endswith(LAST_LINE)
    assert dialog.findChild(QPushButton, "diagnostics.fresh") is None
    dialog.close()


def test_a_file_is_opened_from_the_menu_on_its_tab(qtbot, make_window, tmp_path, monkeypatch):
    window = shown(qtbot, make_window())
    picture, text = tmp_path / "photo.png", tmp_path / "notes.odt"
    asked = []
    for path, is_answered in (
        (text, lambda: "notes.odt" in window.banner.sentence),
        (picture, lambda: ".png" in TABS[window.tabs.currentIndex()].opens),
    ):
        monkeypatch.setattr(
            QFileDialog,
            "getOpenFileName",
            lambda *args, path=path: asked.append(args) or (str(path), ""),
        )
        window.findChild(QAction, "menu.open").trigger()
        qtbot.waitUntil(is_answered)
    assert asked[0][2]  # the folder where people keep such files
