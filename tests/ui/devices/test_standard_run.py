"""“Measure this PC to share” on Devices: its progress, its figures, and sharing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtWidgets import QFileDialog, QLabel, QWidget

from gpu_studio.core.benchmark.standard_record import FOLDER_NAME, StandardFolder, read_standard
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.ui.result_bars import ResultBars
from gpu_studio.ui.standard_page import ShareDialog
from tests.driving.devices import choose_more, more, start
from tests.driving.window import click, find, places, sees, text
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
    qtbot.waitUntil(lambda: more(tab)[0].isEnabled())
    return tab


def test_one_press_measures_every_device_and_shows_its_figures(
    opened: DevicesTab, qtbot: PatientQtBot
) -> None:
    assert not sees(opened, "devices.standard")
    choose_more(opened, "Measure this PC")
    qtbot.waitUntil(lambda: sees(opened, "devices.standard.compare"))
    assert " beats the " in text(opened, "standard.heading")
    said = find(opened, "standard.facts", QWidget).findChildren(QLabel)
    assert said[0].text().startswith("Each is compared with ")
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
    choose_more(opened, "Measure this PC")
    qtbot.waitUntil(lambda: sees(opened, "devices.standard.share"))
    click(opened, "devices.standard.share")

    newest = StandardFolder(tmp_path / FOLDER_NAME).newest()
    assert newest is not None
    assert read_standard(path).devices == newest.devices


def test_a_measurement_tells_its_progress_and_is_stopped(
    opened: DevicesTab, with_cuda: Engines, qtbot: PatientQtBot
) -> None:
    with_cuda.scripts[RunWorkload] = lambda _engine, request: [started(request), Pause()]
    buttons = ("devices.compare", "devices.check", "devices.race", "devices.more")
    before = {name: places(opened)[name] for name in buttons}
    choose_more(opened, "Measure this PC")
    qtbot.waitUntil(lambda: sees(opened, "devices.standard.progress"))
    assert more(opened)[0].text() == "Stop measuring"
    assert "left" in text(opened, "devices.standard.sentence")
    qtbot.waitUntil(lambda: with_cuda.latest.paused.is_set())
    click(opened, "devices.standard.stop")
    qtbot.waitUntil(lambda: "Nothing was measured" in text(opened, "devices.standard.notice"))
    assert not sees(opened, "devices.standard.stop")
    assert {name: places(opened)[name] for name in buttons} == before
