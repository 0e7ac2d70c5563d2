"""The Devices tab from its first look on: choosing, and how it fits."""

from __future__ import annotations

import subprocess
import sys

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import (
    QApplication,
)

from gpu_studio.model.pages import BENCHMARK, LESSONS, NOW, RACE
from gpu_studio.ui.devices.devices_tab import DevicesTab
from tests.driving.devices import (
    choose_more,
    device_names,
    devices,
    found,
    more,
    show_reading,
    start,
)
from tests.driving.pages import settle
from tests.driving.window import (
    click,
    find,
    numbers,
    places,
    sees,
    text,
    wait_ready,
)
from tests.fakes.pc import cpu_only, gt_1030, gt_1030_card, reading, two_cards

# ── the start ──────────────────────────────────────────────────────────────────────────────────


def test_the_first_look_says_that_it_looks(qtbot, tab):
    tab.show()
    assert text(tab, "devices.verdict.sentence").startswith("Looking")
    enabled = [action.text() for action in more(tab) if action.isEnabled()]
    assert enabled == ["Add a PC…"]
    assert not sees(tab, "devices.details")


@pytest.mark.parametrize(
    ("inventory", "known"), [(cpu_only(), ()), (gt_1030(), (gt_1030_card().uuid,))]
)
def test_nothing_moves_when_the_devices_and_their_readings_come(
    studio, with_cuda, settings, theme, qtbot, sensor_source, inventory, known
):
    """A card of the last start has its room; on the first start ever, nothing is known."""
    settings.change(cards=known)
    tab = DevicesTab(studio, theme)
    qtbot.addWidget(tab)
    tab.resize(1240, 700)
    tab.show()
    settle()
    controls = ("devices.compare", "devices.check", "devices.race", "devices.more")
    sensors = ["devices.sensor.utilization", "devices.sensor.memory"]
    sensors += ["devices.sensor.temperature", "devices.sensor.pc_memory"] if known else []

    def tops():
        found = {name: point.y() for name, point in places(tab).items() if name in controls}
        for name in sensors:
            assert sees(tab, name)
            found[name] = find(tab, name).mapTo(tab, QPoint()).y()
        return found

    before = tops()
    studio.start()
    wait_ready(studio)
    show_reading(studio, sensor_source, reading(inventory, 1.0))
    settle()
    assert tops() == before


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_a_pc_without_a_card_is_explained_and_shows_its_cpu(qtbot, studio, tab, sensor_source):
    start(studio, tab)
    show_reading(studio, sensor_source, reading(cpu_only(), 1.0))
    assert text(tab, "devices.verdict.sentence") == found(studio, "no_nvidia_card")
    assert sees(tab, "devices.without_card")
    assert device_names(tab) == [cpu_only().cpu.name]
    assert text(tab, "devices.sensor.utilization.value") == "12 %"
    assert numbers(text(tab, "devices.sensor.memory.value")) == ["8", "32"]
    assert text(tab, "devices.details.simd") == "AVX2"
    assert not sees(tab, "devices.sensor.power")
    assert not sees(tab, "devices.processes.card")


def test_a_card_that_comes_later_ends_the_consolation(qtbot, studio, tab, sensor_source):
    start(studio, tab)
    assert sees(tab, "devices.without_card")
    with qtbot.waitSignal(studio.sensors.inventory_changed):
        sensor_source.send(gt_1030())
    assert not sees(tab, "devices.without_card")
    assert device_names(tab) == ["NVIDIA GeForce GT 1030"]


def test_neither_numpy_nor_pyqtgraph_is_needed_to_build_it():
    code = (
        "import sys\n"
        "from PySide6.QtWidgets import QApplication\n"
        "application = QApplication([])\n"
        "from gpu_studio.model.settings import Settings\n"
        "from gpu_studio.model.studio import Studio\n"
        "from gpu_studio.ui.devices.devices_tab import DevicesTab\n"
        "from gpu_studio.ui.theme import Theme\n"
        "class Source:\n"
        "    def close(self): pass\n"
        "class Engine(Source): pass\n"
        "settings = Settings(None)\n"
        "studio = Studio(lambda environment: Engine(), Source(), settings)\n"
        "tab = DevicesTab(studio, Theme(settings))\n"
        "heavy = sorted({'numpy', 'pyqtgraph', 'torch', 'pynvml'} & set(sys.modules))\n"
        "studio.close()\n"
        "sys.exit(' '.join(heavy) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("inventory", [cpu_only()])
@pytest.mark.parametrize(
    ("button", "page"),
    [("compare", BENCHMARK), ("race", RACE), ("simulated", NOW), ("pitfalls", LESSONS)],
)
def test_a_button_goes_where_it_says(qtbot, studio, tab, button, page):
    start(studio, tab)
    with qtbot.waitSignal(studio.destination_wanted) as wanted:
        click(tab, f"devices.{button}")
    assert wanted.args[0].page == page
    assert wanted.args[0].starts is (page in (BENCHMARK, RACE))


# ── choosing ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [two_cards()])
def test_the_keyboard_walks_the_devices(qtbot, studio, with_cuda, tab):
    start(studio, tab)
    first = devices(tab)[0]
    first.setFocus()
    assert device_names(tab) == ["NVIDIA GeForce GT 1030", "NVIDIA GeForce RTX 3060"]
    assert "GT 1030" in text(tab, "devices.verdict.sentence")
    qtbot.keyClick(first, Qt.Key.Key_Down)
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Space)
    assert "RTX 3060" in text(tab, "devices.verdict.sentence")
    assert text(tab, "devices.details.numbers") == "nvidia-smi 1 = cuda:1"
    devices(tab)[1].click()
    assert [one.isChecked() for one in devices(tab)] == [False, True], "it stays selected"
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Up)
    qtbot.keyClick(first, Qt.Key.Key_Space)
    assert "GT 1030" in text(tab, "devices.verdict.sentence")


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_the_cpu_beside_a_card_is_listed_when_it_is_asked_for(studio, with_cuda, tab):
    start(studio, tab)
    assert device_names(tab) == ["NVIDIA GeForce GT 1030"]
    assert devices(tab)[0].accessibleName().endswith("with a Ryzen 7 5700G")
    choose_more(tab, "Show the CPU")
    assert device_names(tab)[0].startswith("AMD")
    assert "Ryzen 7 5700G" in text(tab, "devices.verdict.sentence")
    assert not any(action.text() == "Show the CPU" for action in more(tab))
    devices(tab)[1].click()
    assert "GT 1030" in text(tab, "devices.verdict.sentence")


# ── how it fits ────────────────────────────────────────────────────────────────────────────────
