"""“Measure this PC” on Devices: one button, progress in place, and figures below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtWidgets import QFileDialog, QProgressBar, QPushButton, QWidget

from gpu_studio.core.benchmark.standard_file import FOLDER_NAME, StandardFolder, read_standard
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.ui.result_bars import ResultBars
from gpu_studio.ui.share_dialog import ShareDialog
from tests.driving.devices import start
from tests.driving.window import click, find, sees, text
from tests.fakes.run_answers import started
from tests.fakes.scripted_engine import Pause
from tests.fakes.standard_answers import measured

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.devices.devices_tab import DevicesTab
    from tests.fakes.scripted_engine import Engines
    from tests.patient_qtbot import PatientQtBot


@pytest.fixture
def opened(
    tab: DevicesTab, studio: Studio, with_cuda: Engines, qtbot: PatientQtBot, tmp_path: Path
) -> DevicesTab:
    studio.data_folder = tmp_path
    with_cuda.scripts[RunWorkload] = lambda _engine, request: measured(request)
    start(studio, tab)
    tab.show()
    qtbot.waitUntil(lambda: sees(tab, "devices.measure"))
    return tab


def place(tab: DevicesTab, name: str) -> tuple[int, int]:
    """Return where a widget is in the tab."""
    at = find(tab, name, QWidget).mapTo(tab, tab.rect().topLeft())
    return at.x(), at.y()


def test_one_press_measures_every_device_and_shows_its_figures(
    opened: DevicesTab, qtbot: PatientQtBot
) -> None:
    assert not sees(opened, "devices.standard")
    click(opened, "devices.measure")
    qtbot.waitUntil(lambda: sees(opened, "devices.standard.compare"))
    assert " beats the " in text(opened, "standard.heading")
    bandwidths, copies = (
        find(opened, f"standard.bars.{key}", ResultBars).bars for key in ("bandwidth", "copy_in")
    )
    assert all(bar.value for bar in bandwidths)
    assert [bar.value is None for bar in copies] == [True, False, False]  # the CPU has none
    assert not sees(opened, "devices.standard.progress")


def test_a_result_is_shared_as_a_picture_that_another_pc_compares(
    opened: DevicesTab, qtbot: PatientQtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shared.png"

    def save(dialog: ShareDialog) -> int:
        dialog.show()
        click(dialog, "share.save")
        dialog.close()
        return 0

    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    monkeypatch.setattr(ShareDialog, "exec", save)
    click(opened, "devices.measure")
    qtbot.waitUntil(lambda: sees(opened, "devices.standard.share"))
    click(opened, "devices.standard.share")

    newest = StandardFolder(tmp_path / FOLDER_NAME).newest()
    assert newest is not None
    assert read_standard(path).devices == newest.devices


def test_nothing_moves_under_the_pointer_and_the_button_stops(
    opened: DevicesTab, with_cuda: Engines, qtbot: PatientQtBot
) -> None:
    with_cuda.scripts[RunWorkload] = lambda _engine, request: [started(request), Pause()]
    buttons = ("devices.measure", "devices.compare", "devices.check", "devices.race")
    before = {name: place(opened, name) for name in buttons}
    size = find(opened, "devices.measure", QPushButton).size()
    click(opened, "devices.measure")
    qtbot.waitUntil(lambda: sees(opened, "devices.standard.progress"))
    button = find(opened, "devices.measure", QPushButton)
    assert button.text() == "Stop measuring"
    assert button.size() == size
    assert {name: place(opened, name) for name in buttons} == before
    assert "left" in text(opened, "devices.standard.sentence")
    assert find(opened, "devices.standard.progress", QProgressBar).value() >= 0
    click(opened, "devices.measure")
    qtbot.waitUntil(lambda: "Nothing was measured" in text(opened, "devices.standard.notice"))
    assert button.text() == "Measure this PC"
    assert {name: place(opened, name) for name in buttons} == before
