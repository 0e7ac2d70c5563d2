"""What the Devices tab shows of a device while it is looked at, and hands on."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QListView, QTableView

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.devices import show_reading, start
from tests.driving.window import click, find, sees, text
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import gt_1030, gt_1030_card, reading, two_cards

GIB = 1 << 30
WITHOUT_PASCAL = described_with_cuda(torch_version="2.13.0+cu130", cuda_build="13.0",
                                     arch_list=("sm_75", "sm_86"))  # fmt: skip


# ── the sensors ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_sensors_are_curves_with_their_values_in_words(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    start(studio, tab)
    cold = reading(inventory, 1.0, temperature_c=26.0, pstate=8)
    hot = reading(inventory, 2.0, temperature_c=40.0, pstate=0, utilization_percent=100.0)
    show_reading(studio, sensor_source, cold)
    show_reading(studio, sensor_source, hot)
    assert text(tab, "devices.sensor.temperature.value") == "40 °C"
    assert text(tab, "devices.sensor.temperature.change") == "+14 °C"
    assert text(tab, "devices.sensor.clock.value") == "227 MHz · P0"
    assert text(tab, "devices.sensor.clock.change") == "P8 → P0"
    plot = find(tab, "devices.sensor.temperature.plot", LivePlot)
    qtbot.waitUntil(lambda: plot.plot is not None)
    plot.refresh()
    xs, ys = plot._curves["device"].item.getOriginalDataset()
    assert (list(xs), list(ys)) == ([1.0, 2.0], [26.0, 40.0])
    low, high = plot.plot.viewRange()[0]
    assert (low, high) == (pytest.approx(-58.0), pytest.approx(2.0))
    described = plot.accessibleDescription().replace("\u202f", " ")
    assert all(result in described for result in ("26", "40 °C", "+14 °C"))


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_sensor_that_answers_again_gets_its_curve_back(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    start(studio, tab)
    for at_s in (1.0, 2.0):
        show_reading(studio, sensor_source, reading(inventory, at_s, fan_percent=None))
    assert not sees(tab, "devices.sensor.fan.plot")
    show_reading(studio, sensor_source, reading(inventory, 3.0))
    assert sees(tab, "devices.sensor.fan.plot")


@pytest.mark.parametrize("inventory", [two_cards()])
def test_another_device_has_other_sensors_in_its_colour(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    start(studio, tab)
    show_reading(studio, sensor_source, reading(inventory, 1.0))
    assert sees(tab, "devices.sensor.fan")
    plot = find(tab, "devices.sensor.utilization.plot", LivePlot)
    assert plot._curves["device"].role == "gpu0"
    devices = find(tab, "devices.table", QListView)
    qtbot.keyClick(devices, Qt.Key.Key_Home)
    assert not sees(tab, "devices.sensor.fan")
    assert plot._curves["device"].role == "cpu"
    assert text(tab, "devices.sensor.utilization.value") == "12 %"


# ── processes ──────────────────────────────────────────────────────────────────────────────────


def with_processes(inventory, at_s, *processes):
    taken = reading(inventory, at_s)
    cards = tuple(msgspec.structs.replace(card, processes=processes) for card in taken.cards)
    return msgspec.structs.replace(taken, cards=cards)


def column(view, number):
    return [view.model().index(row, number).data() for row in range(view.model().rowCount())]


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_processes_are_shown_and_sorted_by_a_click(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    start(studio, tab)
    processes = (
        GpuProcess(pid=4711, name="python", user="you", memory_bytes=336 << 20),
        GpuProcess(pid=900, name="Xorg", user="root", kind="graphics", memory_bytes=400 << 20),
    )
    show_reading(studio, sensor_source, with_processes(inventory, 1.0, *processes))
    view = find(tab, "devices.processes", QTableView)
    other, own = column(view, 1)
    assert other == "Xorg"
    assert own.startswith("python  (")  # marked as the program's engine
    header = view.horizontalHeader()
    assert view.model().headerData(4, Qt.Orientation.Horizontal).endswith("↓")
    place = QPoint(header.sectionViewportPosition(0) + 10, 10)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert column(view, 0) == ["900", "4711"]
    assert view.model().headerData(0, Qt.Orientation.Horizontal) == "PID ↑"
    assert view.model().headerData(4, Qt.Orientation.Horizontal) == "GPU memory"


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
    assert not tab._model._memory._timer.isActive()
    show_reading(studio, sensor_source, reading(inventory, 1.0, fan_percent=77.0))
    assert text(tab, "devices.details.fan") != "77 %"
    tab.show()
    assert text(tab, "devices.details.fan") == "77 %"
    assert text(tab, "devices.sensor.fan.value") == "77 %"
    assert tab._model._memory._timer.isActive()


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
    click(tab, "devices.copy")
    beginnings = ("GPU Studio", "## GPU Studio", "{")
    assert all(map(str.startswith, copied, beginnings))
    assert len(copied) == len(beginnings)
    assert all("GT 1030" in one and gt_1030_card().uuid not in one for one in copied)
