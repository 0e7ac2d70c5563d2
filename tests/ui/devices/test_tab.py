"""The Devices tab from its first look on: choosing, and how it fits."""

from __future__ import annotations

import subprocess
import sys

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import (
    QApplication,
    QLineEdit,
    QListView,
    QPushButton,
    QTableView,
    QWidget,
)

from gpu_studio.core.devices.finding import Finding, worst_first
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.model.devices.device_board import DeviceList, device_rows
from gpu_studio.ui.devices.device_hero import DeviceHero, DeviceListView
from gpu_studio.ui.scroll_page import TabScroll
from gpu_studio.ui.theme import COLOURS
from tests.driving.devices import found, show_reading, start
from tests.driving.pages import settle
from tests.driving.window import click, find, numbers, sees, text
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import cpu_only, gt_1030, reading, two_cards

GIB = 1 << 30
WITHOUT_PASCAL = described_with_cuda(torch_version="2.13.0+cu130", cuda_build="13.0",
                                     arch_list=("sm_75", "sm_86"))  # fmt: skip


# ── the start ──────────────────────────────────────────────────────────────────────────────────


def test_the_first_look_says_that_it_looks(qtbot, tab):
    tab.show()
    assert text(tab, "devices.verdict.sentence").startswith("Looking")
    assert not find(tab, "devices.copy", QPushButton).isEnabled()
    assert not sees(tab, "devices.details")


def test_a_focus_before_the_list_follows_a_device_chooses_none(qtbot, theme):
    devices = DeviceList()
    view, chosen = DeviceListView(devices, theme), []
    qtbot.addWidget(view)
    view.device_selected.connect(chosen.append)
    rows = device_rows(gt_1030(), None)
    cpu, card = rows
    devices.show(rows, None, is_choice=True)
    QApplication.sendEvent(view, QFocusEvent(QEvent.Type.FocusIn))
    assert view.currentIndex().row() == 0  # Qt's choice, and nobody's
    view.follow(card.identity)
    assert view.currentIndex().row() == 1
    assert chosen == []
    view.setCurrentIndex(devices.index(0))
    assert chosen == [cpu.identity]


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_a_pc_without_a_card_is_explained_and_shows_its_cpu(qtbot, studio, tab, sensor_source):
    start(studio, tab)
    show_reading(studio, sensor_source, reading(cpu_only(), 1.0))
    assert text(tab, "devices.verdict.sentence") == found(studio, "no_nvidia_card")
    assert sees(tab, "devices.without_card")
    assert text(tab, "devices.name") == cpu_only().cpu.name
    assert text(tab, "devices.sensor.utilization.value") == "12 %"
    assert numbers(text(tab, "devices.sensor.memory.value")) == ["8", "32"]
    assert text(tab, "devices.details.simd") == "AVX2"
    assert not sees(tab, "devices.sensor.power")
    assert not sees(tab, "devices.processes.card")


def test_a_hidden_tab_shows_what_has_changed_when_it_is_shown(qtbot, studio, tab, monkeypatch):
    shows = []
    show = DeviceHero.show_verdict

    def show_and_note(self, *args, **options):
        shows.append(self)
        show(self, *args, **options)

    tab.show()
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free and tab.is_up_to_date)
    monkeypatch.setattr(DeviceHero, "show_verdict", show_and_note)
    tab.hide()
    studio.session.state_changed.emit(studio.session.state)
    assert tab.is_up_to_date
    assert not shows
    tab.show()
    assert shows


def test_a_card_that_comes_later_ends_the_consolation(qtbot, studio, tab, sensor_source):
    start(studio, tab)
    assert sees(tab, "devices.without_card")
    with qtbot.waitSignal(studio.sensors.inventory_changed):
        sensor_source.send(gt_1030())
    assert not sees(tab, "devices.without_card")
    assert text(tab, "devices.name") == "NVIDIA GeForce GT 1030"


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_the_plots_of_a_pc_without_a_card_fill_its_page(tab, studio, sensor_source, qtbot):
    start(studio, tab)
    show_reading(studio, sensor_source, reading(cpu_only(), 1.0))
    plot = find(tab, "devices.sensor.utilization.plot")
    click(tab, "devices.facts")  # folds them
    low = plot.height()
    tab.resize(tab.width(), tab.height() + 100)
    qtbot.waitUntil(lambda: plot.height() > low + 90)


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
        "made = [part.make() for part in tab.later]\n"
        "heavy = sorted({'numpy', 'pyqtgraph', 'torch', 'pynvml'} & set(sys.modules))\n"
        "studio.close()\n"
        "sys.exit(' '.join(heavy) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ── choosing ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [two_cards()])
def test_the_keyboard_walks_the_devices(qtbot, studio, with_cuda, tab):
    start(studio, tab)
    devices = find(tab, "devices.table", QListView)
    assert devices.model().rowCount() == 3
    assert text(tab, "devices.name") == "NVIDIA GeForce GT 1030"
    qtbot.keyClick(devices, Qt.Key.Key_Down)
    assert text(tab, "devices.name") == "NVIDIA GeForce RTX 3060"
    assert text(tab, "devices.identity") == "nvidia-smi 1 = cuda:1"
    qtbot.keyClick(devices, Qt.Key.Key_Home)
    assert text(tab, "devices.name").startswith("AMD")
    assert text(tab, "devices.identity") == ""


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_card_that_computes_nonsense_is_no_usable_card(
    qtbot, studio, with_cuda, tab, monkeypatch
):
    start(studio, tab)
    card = studio.sensors.inventory.cards[1]
    wrong = Finding(code="wrong_sum", sentence="It computes nonsense.", device_uuid=card.identity)
    findings = worst_first([wrong, *studio.doctor.findings])
    monkeypatch.setattr(studio.doctor, "findings", findings)
    tab._select(card.identity)
    assert text(tab, "devices.verdict.sentence") == wrong.sentence
    usable = {one.device_uuid: one.sentence for one in findings if one.code == "ok"}
    others = [text(tab, f"devices.finding.{number}.sentence") for number in range(2)]
    assert usable[card.identity] in others
    first = studio.sensors.inventory.cards[0].identity
    tab._select(first)
    assert text(tab, "devices.verdict.sentence") == usable[first]


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_device_is_painted_in_its_colour_and_reported_in_words(
    qtbot, studio, with_cuda, tab, theme
):
    start(studio, tab)
    devices = find(tab, "devices.table", QListView)
    image = devices.grab().toImage()
    for row, role in enumerate(("cpu", "gpu0", "gpu1")):
        index = devices.model().index(row, 0)
        box = devices.visualRect(index)
        colours = {
            image.pixelColor(x, y).name().upper()
            for x in range(box.left(), box.left() + 40)
            for y in range(box.top(), box.bottom())
        }
        assert COLOURS[role][theme.is_dark] in colours
        text = index.data(Qt.ItemDataRole.AccessibleTextRole)
        assert ("CPU" if row == 0 else f"cuda:{row - 1}") in text


# ── how it fits ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [two_cards()])
@pytest.mark.parametrize("width", [740, 1000, 1600])
def test_nothing_is_cut_off_at_the_right(
    qtbot, studio, with_cuda, tab, sensor_source, inventory, width
):
    tab.resize(width, 560)
    start(studio, tab)
    show_reading(studio, sensor_source, reading(inventory, 1.0))
    cards = [w for w in tab.findChildren(QWidget) if w.objectName().count(".") == 2
             and w.objectName().startswith("devices.sensor.") and w.isVisible()]  # fmt: skip
    assert len(cards) == 11
    assert max(card.width() for card in cards) - min(card.width() for card in cards) <= 1
    assert all(card.mapTo(tab, card.rect().topRight()).x() < tab.width() for card in cards)


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_no_line_of_the_facts_is_cut_in_a_low_window(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    page = TabScroll(tab)
    page.resize(1280, 600)
    page.show()
    start(studio, tab)
    show_reading(studio, sensor_source, reading(inventory, 1.0))
    for fold in ("facts", "sensors.all", "facts"):  # the plots fill the page before the facts come
        click(tab, f"devices.{fold}")
        settle()
    facts = find(tab, "devices.details")
    qtbot.waitUntil(lambda: facts.height() >= facts.sizeHint().height())
    page.takeWidget()
    page.close()


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_everything_to_press_has_a_name_and_is_reached_by_keyboard(
    qtbot, studio, engines, tab, sensor_source, inventory
):
    engines.scripts[DescribeEngine] = [WITHOUT_PASCAL]
    start(studio, tab)
    show_reading(studio, sensor_source, reading(inventory, 1.0))
    controls = [
        widget
        for kind in (QPushButton, QListView, QTableView, QLineEdit)
        for widget in tab.findChildren(kind)
        if widget.isVisible()
    ]
    assert len(controls) >= 6
    for widget in controls:
        assert widget.accessibleName(), widget.objectName()
        assert widget.focusPolicy() & Qt.FocusPolicy.TabFocus, widget.objectName()


def test_the_buttons_beside_the_devices_end_at_one_edge(ready_studio, tab):
    """One below the other; below the devices of a narrow page each is as wide as its words."""
    names = ("compare", "check", "race", "measure")
    tab.show()
    for width, is_column in ((1000, True), (560, False), (1000, True)):
        tab.resize(width, 700)
        settle()
        buttons = [find(tab, f"devices.{name}") for name in names]
        assert all(one.isVisible() for one in buttons)
        edges = {one.mapTo(tab, one.rect().topRight()).x() for one in buttons}
        assert (len(edges) == 1) == is_column, width
