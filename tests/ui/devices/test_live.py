"""What the Devices tab shows of a device while it is looked at, and hands on."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import QPoint, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QMessageBox

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.model.devices import programs
from gpu_studio.ui.devices.sensor_rows import Sparkline
from tests.driving.devices import choose_more, show_reading, start
from tests.driving.pages import settle
from tests.driving.window import choose, click, find, plain, sees, table, text
from tests.fakes.pc import gt_1030, gt_1030_card, reading

# ── the sensors ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_sensors_are_curves_with_their_values_in_words(
    studio, with_cuda, tab, sensor_source, inventory
):
    start(studio, tab)
    cold = reading(inventory, 1.0, temperature_c=26.0, pstate=8)
    hot = reading(inventory, 2.0, temperature_c=40.0, pstate=0, utilization_percent=100.0)
    show_reading(studio, sensor_source, cold)
    show_reading(studio, sensor_source, hot)
    assert text(tab, "devices.sensor.temperature.value") == "40 °C"
    assert text(tab, "devices.sensor.clock.value") == "227 MHz · P0"
    line = find(tab, "devices.sensor.temperature", Sparkline)
    assert [len(part) for part in line.curves()] == [2]
    described = plain(line.accessibleDescription())
    assert all(result in described for result in ("26", "40 °C", "+14 °C"))
    rows = {row[0]: row[1:3] for row in table(tab, "devices.sensors.table")}
    assert rows["GPU temperature"] == ("40 °C", "+14 °C")
    assert rows["GPU clock"] == ("227 MHz · P0", "P8 → P0")


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_the_first_view_has_the_main_sensors_and_more_shows_all(
    studio, with_cuda, tab, sensor_source, inventory
):
    start(studio, tab)
    show_reading(studio, sensor_source, reading(inventory, 1.0))
    assert sees(tab, "devices.sensor.fan")
    choose(tab, "devices.sensors.span", "Last hour")
    assert text(tab, "devices.sensors.title") == "Last hour"
    choose_more(tab, "Main sensors")
    assert not sees(tab, "devices.sensor.fan")
    assert not sees(tab, "devices.sensors.table")
    keys = ("utilization", "memory", "temperature", "clock", "pc_utilization", "pc_memory")
    tops = [find(tab, f"devices.sensor.{key}").y() for key in keys]
    assert all(sees(tab, f"devices.sensor.{key}") for key in keys)
    assert tops == sorted(tops)
    assert text(tab, "devices.sensors.title") == "Last minute"
    assert text(tab, "devices.sensor.pc_memory.value") == "8 GiB of 32 GiB"


# ── processes ──────────────────────────────────────────────────────────────────────────────────


def with_processes(inventory, at_s, *processes):
    taken = reading(inventory, at_s)
    cards = tuple(msgspec.structs.replace(card, processes=processes) for card in taken.cards)
    return msgspec.structs.replace(taken, cards=cards)


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_programs_are_sentences_and_all_processes_a_table(
    studio, with_cuda, tab, sensor_source, inventory
):
    start(studio, tab)
    processes = (
        GpuProcess(pid=4711, name="python", user="you", memory_bytes=336 << 20),
        GpuProcess(pid=900, name="Xorg", user="root", kind="graphics", memory_bytes=400 << 20),
    )
    show_reading(studio, sensor_source, with_processes(inventory, 1.0, processes[0]))
    card = find(tab, "devices.programs.card")
    settle()
    line = card.fontMetrics().lineSpacing()
    assert card.height() < 6 * line, "no room for programs that are not there"
    show_reading(studio, sensor_source, with_processes(inventory, 2.0, *processes))
    title, first = (find(tab, f"devices.programs.{one}") for one in ("title", "0.sentence"))
    assert first.mapTo(card, QPoint()).x() == title.mapTo(card, QPoint()).x()
    assert text(tab, "devices.programs.title") == "Programs on the GT 1030"
    lines = [text(tab, f"devices.programs.{number}.sentence") for number in range(2)]
    assert lines == [
        "Xorg has 400 MiB to draw; its load is not known.",
        "This program's PyTorch has 336 MiB to compute; its load is not known.",
    ]
    assert [row[0] for row in table(tab, "devices.processes")] == ["900", "4711"]
    assert "this program's PyTorch" in table(tab, "devices.processes")[1][1]


@pytest.mark.parametrize("inventory", [gt_1030()])
@pytest.mark.parametrize("agrees", [True, False])
def test_a_process_is_ended_if_a_setting_allows_it_and_after_a_question(
    studio, with_cuda, tab, sensor_source, inventory, settings, monkeypatch, agrees
):
    ended = []
    monkeypatch.setattr(
        programs, "end_process", lambda process, own: ended.append(process) or "Asked."
    )
    xorg = GpuProcess(
        pid=900, name="Xorg", user="me", kind="graphics", memory_bytes=90 << 20, is_yours=True
    )
    other = GpuProcess(pid=5, name="game", memory_bytes=400 << 20, is_yours=False)

    def answer():
        box = QApplication.activeModalWidget()
        assert isinstance(box, QMessageBox)
        assert "Xorg" in box.text()
        wanted = "End program" if agrees else "Cancel"
        next(b for b in box.buttons() if b.text().replace("&", "") == wanted).click()

    start(studio, tab)
    show_reading(studio, sensor_source, with_processes(inventory, 1.0, other, xorg))
    assert not sees(tab, "devices.processes.end")
    settings.change(may_end_processes=True)
    assert find(tab, "devices.processes.pid", QComboBox).count() == 1, "another user's is not yours"
    choose(tab, "devices.processes.pid", "Xorg")
    QTimer.singleShot(0, answer)
    click(tab, "devices.processes.end")
    assert ended == ([xorg] if agrees else [])
    assert sees(tab, "devices.processes.outcome") is agrees


# ── facts ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_facts_follow_the_readings_and_the_engine(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    start(studio, tab)
    show_reading(studio, sensor_source, reading(inventory, 1.0, fan_percent=35.0))
    value = find(tab, "devices.details.fan", QLabel)
    assert text(tab, "devices.details.fan") == "35 %"
    assert value.accessibleName().replace("\u202f", " ") == "Fan: 35 %"
    show_reading(studio, sensor_source, reading(inventory, 2.0, fan_percent=60.0))
    assert find(tab, "devices.details.fan", QLabel) is value
    assert text(tab, "devices.details.fan") == "60 %"
    qtbot.waitUntil(lambda: text(tab, "devices.details.allocated") == "1 GiB")
    assert text(tab, "devices.details.reserved") == "2 GiB"
    assert text(tab, "devices.details.cuda_available") == "yes"


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_hidden_tab_asks_for_nothing_and_catches_up(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    start(studio, tab)
    qtbot.waitUntil(lambda: text(tab, "devices.details.allocated") == "1 GiB")
    tab.hide()
    assert not tab.page.model._memory._timer.isActive()
    show_reading(studio, sensor_source, reading(inventory, 1.0, fan_percent=77.0))
    assert text(tab, "devices.details.fan") != "77 %"
    tab.show()
    assert text(tab, "devices.details.fan") == "77 %"
    assert text(tab, "devices.sensor.fan.value") == "77 %"
    assert tab.page.model._memory._timer.isActive()


# ── copying ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_copying_masks_what_names_the_card(qtbot, studio, with_cuda, tab):
    copied: list[str] = []

    def copy_each() -> None:
        dialog = QApplication.activeModalWidget()
        form = find(dialog, "devices.copy.form", QComboBox)
        for index in range(form.count()):
            form.setCurrentIndex(index)
            click(dialog, "devices.copy.now")
            copied.append(QGuiApplication.clipboard().text())
        dialog.close()

    start(studio, tab)
    QTimer.singleShot(0, copy_each)
    choose_more(tab, "Copy facts")
    beginnings = ("GPU Studio", "## GPU Studio")
    assert all(map(str.startswith, copied, beginnings))
    assert len(copied) == len(beginnings)
    assert all("GT 1030" in one and gt_1030_card().uuid not in one for one in copied)
