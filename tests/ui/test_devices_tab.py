from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QLabel, QLineEdit, QListView, QPushButton, QTableView, QWidget

from gpu_studio.core.pc.devices import CardReading, Device, GpuProcess, Telemetry
from gpu_studio.core.pc.finding import Finding, worst_first
from gpu_studio.core.protocol import DescribeEngine, MemoryRead, ReadMemory
from gpu_studio.model import sensors as sensors_module
from gpu_studio.ui.devices.fact_grid import FactGrid
from gpu_studio.ui.devices_tab import DevicesTab
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.theme import COLOURS
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import cpu_only, gt_1030, gt_1030_card, reading, two_cards
from tests.fakes.scripted_engine import Pause

GIB = 1 << 30
WITHOUT_PASCAL = described_with_cuda(torch_version="2.13.0+cu130", cuda_build="13.0",
                                     arch_list=("sm_75", "sm_86"))  # fmt: skip


@pytest.fixture
def tab(qtbot, studio, theme):
    made = DevicesTab(studio, theme)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    return made


@pytest.fixture
def with_cuda(engines):
    engines.scripts[DescribeEngine] = [described_with_cuda(device_count=2)]
    engines.scripts[ReadMemory] = lambda _engine, request: [
        MemoryRead(
            device=request.device, taken_at_s=0.0, allocated_bytes=GIB, reserved_bytes=2 * GIB
        )
    ]
    return engines


def start(qtbot, studio, tab):
    tab.show()
    studio.start()
    qtbot.waitUntil(lambda: studio.session.state.is_idle and studio.sensors.inventory is not None)
    settle(qtbot, tab)


def settle(qtbot, tab):
    """Wait until the facts, which are built one group at a time, are all there."""
    qtbot.waitUntil(lambda: tab.findChild(FactGrid).is_built)


def show_reading(qtbot, studio, sensor_source, taken):
    with qtbot.waitSignal(studio.sensors.reading_taken):
        sensor_source.send(taken)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.MetaCall.value)


def find(tab, kind, name):
    found = tab.findChild(kind, name)
    assert found is not None, name
    return found


def catch_up(tab):
    """Let the tab show what has changed, which it does in turns of the event loop of their own."""
    while not tab.is_up_to_date:
        QCoreApplication.processEvents()


def said(tab, name):
    catch_up(tab)
    return find(tab, QLabel, name).text().replace("\u202f", " ").replace("\u00a0", " ")


def is_shown(tab, name):
    catch_up(tab)
    found = tab.findChild(QWidget, name)
    return found is not None and found.isVisible()


# ── the start ─────────────────────────────────────────────────────────────────────────────────


def test_everything_that_scripts_drive_is_there_from_the_start(tab):
    names = ("table", "details", "sensors", "processes", "verdict", "copy")
    assert all(tab.findChild(QWidget, f"devices.{name}") for name in names)


def test_the_first_look_says_that_it_looks(qtbot, tab):
    tab.show()
    assert said(tab, "devices.verdict.sentence") == "Looking at what is in this PC …"
    assert not find(tab, QPushButton, "devices.copy").isEnabled()
    assert not is_shown(tab, "devices.details")


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_a_pc_without_a_card_is_explained_and_shows_its_cpu(qtbot, studio, tab, sensor_source):
    start(qtbot, studio, tab)
    show_reading(qtbot, studio, sensor_source, reading(cpu_only(), 1.0))
    assert said(tab, "devices.verdict.sentence").startswith("This PC has no NVIDIA card")
    assert is_shown(tab, "devices.without_card")
    assert said(tab, "devices.name") == "AMD Ryzen 7 5700G with Radeon Graphics"
    assert said(tab, "devices.sensor.utilization.value") == "12 %"
    assert said(tab, "devices.sensor.memory.value") == "8 GiB of 32 GiB"
    assert said(tab, "devices.details.simd") == "AVX2"
    assert not is_shown(tab, "devices.sensor.power")
    assert not is_shown(tab, "devices.processes.card")


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_pc_with_a_card_is_not_consoled(qtbot, studio, tab):
    start(qtbot, studio, tab)
    assert not is_shown(tab, "devices.without_card")


def test_a_card_that_comes_later_ends_the_consolation(qtbot, studio, tab, sensor_source):
    start(qtbot, studio, tab)
    assert is_shown(tab, "devices.without_card")
    with qtbot.waitSignal(studio.sensors.inventory_changed):
        sensor_source.send(gt_1030())
    assert not is_shown(tab, "devices.without_card")
    assert said(tab, "devices.name") == "NVIDIA GeForce GT 1030"


@pytest.mark.parametrize("inventory", [two_cards()])
def test_nothing_was_chosen_by_being_shown(qtbot, studio, with_cuda, tab):
    second = two_cards().cards[1]
    with_cuda.scripts[DescribeEngine] = [Pause(), described_with_cuda(visible_devices=second.uuid)]
    tab.show()
    studio.start()
    qtbot.waitUntil(
        lambda: studio.sensors.inventory is not None and with_cuda.latest.paused.is_set()
    )
    assert said(tab, "devices.name") == "NVIDIA GeForce GT 1030"
    with qtbot.waitSignal(studio.session.engine_described):
        with_cuda.latest.go()
    assert said(tab, "devices.name") == "NVIDIA GeForce RTX 3060"


def test_neither_numpy_nor_pyqtgraph_is_needed_to_build_it():
    code = (
        "import sys\n"
        "from PySide6.QtWidgets import QApplication\n"
        "application = QApplication([])\n"
        "from gpu_studio.model.settings import Settings\n"
        "from gpu_studio.model.studio import Studio\n"
        "from gpu_studio.ui.devices_tab import DevicesTab\n"
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


# ── choosing ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [two_cards()])
def test_the_keyboard_walks_the_devices(qtbot, studio, with_cuda, tab):
    start(qtbot, studio, tab)
    devices = find(tab, QListView, "devices.table")
    assert devices.model().rowCount() == 3
    assert said(tab, "devices.name") == "NVIDIA GeForce GT 1030"
    qtbot.keyClick(devices, Qt.Key.Key_Down)
    assert said(tab, "devices.name") == "NVIDIA GeForce RTX 3060"
    assert said(tab, "devices.identity") == "nvidia-smi 1 = cuda:1"
    qtbot.keyClick(devices, Qt.Key.Key_Home)
    assert said(tab, "devices.name").startswith("AMD")
    assert said(tab, "devices.identity") == ""


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_card_that_computes_nonsense_is_no_usable_card(
    qtbot, studio, with_cuda, tab, monkeypatch
):
    start(qtbot, studio, tab)
    card = studio.sensors.inventory.cards[1]
    wrong = Finding(code="wrong_sum", sentence="It computes nonsense.", device_uuid=card.identity)
    findings = worst_first([wrong, *studio.doctor.findings])
    monkeypatch.setattr(studio.doctor, "_findings", findings)
    tab._select(card.identity)
    assert said(tab, "devices.verdict.sentence") == "It computes nonsense."
    assert any(
        said(tab, f"devices.finding.{number}.sentence") == "PyTorch can use your RTX 3060."
        for number in range(2)
    )
    tab._select(studio.sensors.inventory.cards[0].identity)
    assert said(tab, "devices.verdict.sentence") == "PyTorch can use your GT 1030."


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_click_chooses_a_device(qtbot, studio, with_cuda, tab):
    start(qtbot, studio, tab)
    devices = find(tab, QListView, "devices.table")
    place = devices.visualRect(devices.model().index(2, 0)).center()
    qtbot.mouseClick(devices.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert said(tab, "devices.name") == "NVIDIA GeForce RTX 3060"
    assert said(tab, "devices.verdict.sentence") == "PyTorch can use your RTX 3060."
    assert said(tab, "devices.finding.0.sentence").startswith("Your own scripts number the cards")


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_device_is_painted_in_its_colour_and_told_in_words(qtbot, studio, with_cuda, tab, theme):
    start(qtbot, studio, tab)
    devices = find(tab, QListView, "devices.table")
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


# ── the verdict ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_card_without_code_is_told_with_the_command(qtbot, studio, engines, tab):
    engines.scripts[DescribeEngine] = [WITHOUT_PASCAL]
    start(qtbot, studio, tab)
    # The banner over the tabs says it all; until it is closed, the verdict is its sentence alone.
    assert "no code for your GT 1030 (6.1)" in said(tab, "devices.verdict.sentence")
    assert find(tab, QWidget, "devices.verdict").property("tone") == "failure"
    assert not is_shown(tab, "devices.verdict.evidence")
    assert not is_shown(tab, "devices.verdict.command")
    studio.headlines.dismiss()
    qtbot.waitUntil(lambda: is_shown(tab, "devices.verdict.command"))
    assert is_shown(tab, "devices.verdict.evidence")
    assert "sm_75 sm_86" in said(tab, "devices.verdict.evidence")
    assert find(tab, QWidget, "devices.verdict").property("tone") == "failure"
    command = find(tab, QLineEdit, "devices.verdict.command")
    assert "cu126" in command.text()
    qtbot.mouseClick(find(tab, QPushButton, "devices.verdict.copy"), Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == command.text()


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_where_all_is_well_there_is_nothing_to_type(qtbot, studio, with_cuda, tab):
    start(qtbot, studio, tab)
    assert find(tab, QWidget, "devices.verdict").property("tone") == "good"
    assert not is_shown(tab, "devices.verdict.command")


# ── the sensors ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_sensors_are_curves_with_their_values_in_words(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    start(qtbot, studio, tab)
    cold = reading(inventory, 1.0, temperature_c=26.0, pstate=8)
    hot = reading(inventory, 2.0, temperature_c=40.0, pstate=0, utilization_percent=100.0)
    show_reading(qtbot, studio, sensor_source, cold)
    show_reading(qtbot, studio, sensor_source, hot)
    assert said(tab, "devices.sensor.temperature.value") == "40 °C"
    assert said(tab, "devices.sensor.temperature.change") == "+14 °C"
    assert said(tab, "devices.sensor.clock.value") == "227 MHz · P0"
    assert said(tab, "devices.sensor.clock.change") == "P8 → P0"
    plot = find(tab, LivePlot, "devices.sensor.temperature.plot")
    qtbot.waitUntil(lambda: plot.plot is not None)
    plot.refresh()
    xs, ys = plot._curves["device"].item.getOriginalDataset()
    assert (list(xs), list(ys)) == ([1.0, 2.0], [26.0, 40.0])
    low, high = plot.plot.viewRange()[0]
    assert (low, high) == (pytest.approx(-58.0), pytest.approx(2.0))
    assert "between 26" in plot.accessibleDescription().replace("\u202f", " ")


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_refused_sensor_says_so_in_place_of_a_curve(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    start(qtbot, studio, tab)
    for at_s in (1.0, 2.0):
        show_reading(
            qtbot, studio, sensor_source,
            reading(inventory, at_s, power_w=None, power_limit_w=19.0),
        )  # fmt: skip
    assert said(tab, "devices.sensor.power.value") == "n/a"
    assert said(tab, "devices.sensor.power.notice") == "This device does not report it."
    assert not is_shown(tab, "devices.sensor.power.plot")
    assert is_shown(tab, "devices.sensor.fan.plot")
    power = find(tab, QLabel, "devices.details.power")
    assert said(tab, "devices.details.power") == "n/a (limit 19 W)"
    assert "does not report it" in power.toolTip()
    assert power.property("role") == "muted"


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_sensor_that_answers_again_gets_its_curve_back(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    start(qtbot, studio, tab)
    for at_s in (1.0, 2.0):
        show_reading(qtbot, studio, sensor_source, reading(inventory, at_s, fan_percent=None))
    assert not is_shown(tab, "devices.sensor.fan.plot")
    show_reading(qtbot, studio, sensor_source, reading(inventory, 3.0))
    assert is_shown(tab, "devices.sensor.fan.plot")
    assert not is_shown(tab, "devices.sensor.fan.notice")


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_the_curves_are_a_table_too(qtbot, studio, with_cuda, tab, sensor_source, inventory):
    start(qtbot, studio, tab)
    for at_s, temperature_c in ((1.0, 30.0), (2.0, 40.0)):
        show_reading(
            qtbot, studio, sensor_source, reading(inventory, at_s, temperature_c=temperature_c)
        )
    toggle = find(tab, QPushButton, "devices.sensors.toggle")
    qtbot.mouseClick(toggle, Qt.MouseButton.LeftButton)
    view = find(tab, QTableView, "devices.sensors.table")
    assert view.isVisible()
    assert not is_shown(tab, "devices.sensor.temperature.plot")
    # As high as its rows: it neither scrolls nor leaves the place of the plots empty.
    rows_height = view.verticalHeader().length()
    assert rows_height <= view.viewport().height() <= rows_height + 10
    cells = [view.model().index(2, column).data() for column in range(6)]
    assert [cell.replace("\u202f", " ") for cell in cells] == [
        "Temperature", "40 °C", "+10 °C", "30 °C", "35 °C", "40 °C",
    ]  # fmt: skip
    qtbot.mouseClick(toggle, Qt.MouseButton.LeftButton)
    assert is_shown(tab, "devices.sensor.temperature.plot")
    assert toggle.text() == toggle.accessibleName() == "Show as table"


@pytest.mark.parametrize("inventory", [two_cards()])
def test_another_device_has_other_sensors_in_its_colour(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    start(qtbot, studio, tab)
    show_reading(qtbot, studio, sensor_source, reading(inventory, 1.0))
    assert is_shown(tab, "devices.sensor.fan")
    plot = find(tab, LivePlot, "devices.sensor.utilization.plot")
    assert plot._curves["device"].role == "gpu0"
    devices = find(tab, QListView, "devices.table")
    qtbot.keyClick(devices, Qt.Key.Key_Home)
    assert not is_shown(tab, "devices.sensor.fan")
    assert plot._curves["device"].role == "cpu"
    assert said(tab, "devices.sensor.utilization.value") == "12 %"


# ── what goes wrong ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_lost_card_says_so_instead_of_curves_and_processes(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    start(qtbot, studio, tab)
    show_reading(qtbot, studio, sensor_source, reading(inventory, 1.0))
    assert is_shown(tab, "devices.sensors")
    assert is_shown(tab, "devices.processes")
    lost = CardReading(
        uuid=inventory.cards[0].identity, telemetry=Telemetry(), error="It was lost."
    )
    show_reading(
        qtbot,
        studio,
        sensor_source,
        msgspec.structs.replace(reading(inventory, 2.0), cards=(lost,)),
    )
    assert said(tab, "devices.verdict.sentence") == "GT 1030: It was lost."
    assert not is_shown(tab, "devices.sensors")
    assert not is_shown(tab, "devices.processes.card")
    assert tab.findChild(QLabel, "devices.details.uuid") is not None
    show_reading(qtbot, studio, sensor_source, reading(inventory, 3.0))
    assert is_shown(tab, "devices.sensors")
    assert is_shown(tab, "devices.processes")


def test_silent_sensors_are_told(qtbot, studio, tab, sensor_source, monkeypatch):
    start(qtbot, studio, tab)
    monkeypatch.setattr(sensors_module, "_SILENT_AFTER_MS", 20)
    with qtbot.waitSignal(studio.sensors.silence_changed):
        sensor_source.send(reading(cpu_only(), 1.0))
    assert is_shown(tab, "devices.trouble")
    assert "stopped answering" in said(tab, "devices.trouble")
    assert is_shown(tab, "devices.sensors")
    monkeypatch.setattr(sensors_module, "_SILENT_AFTER_MS", 6000)
    show_reading(qtbot, studio, sensor_source, reading(cpu_only(), 2.0))
    assert not is_shown(tab, "devices.trouble")


@pytest.mark.parametrize(
    "inventory",
    [
        msgspec.structs.replace(
            cpu_only(),
            devices=(
                cpu_only().cpu,
                Device(kind="cuda", name="<b>Card</b>", pci_bus_id="0:1:0.0", unreadable="Gone."),
            ),
        )
    ],
)
def test_names_from_outside_are_shown_as_they_are(qtbot, studio, tab):
    start(qtbot, studio, tab)
    name = find(tab, QLabel, "devices.name")
    assert name.text() == "<b>Card</b>"
    assert name.textFormat() is Qt.TextFormat.PlainText


# ── processes ─────────────────────────────────────────────────────────────────────────────────


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
    start(qtbot, studio, tab)
    processes = (
        GpuProcess(pid=4711, name="python", user="you", memory_bytes=336 << 20),
        GpuProcess(pid=900, name="Xorg", user="root", kind="graphics", memory_bytes=400 << 20),
    )
    show_reading(qtbot, studio, sensor_source, with_processes(inventory, 1.0, *processes))
    view = find(tab, QTableView, "devices.processes")
    assert column(view, 1) == ["Xorg", "python  (this program's engine)"]
    header = view.horizontalHeader()
    assert view.model().headerData(4, Qt.Orientation.Horizontal) == "GPU memory ↓"
    place = QPoint(header.sectionViewportPosition(0) + 10, 10)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert column(view, 0) == ["900", "4711"]
    assert view.model().headerData(0, Qt.Orientation.Horizontal) == "PID ↑"
    assert view.model().headerData(4, Qt.Orientation.Horizontal) == "GPU memory"


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_no_process_is_a_sentence(qtbot, studio, with_cuda, tab, sensor_source, inventory):
    start(qtbot, studio, tab)
    show_reading(qtbot, studio, sensor_source, with_processes(inventory, 1.0))
    assert not is_shown(tab, "devices.processes")
    assert said(tab, "devices.processes.note") == "No program computes or draws on this card."
    one = GpuProcess(pid=1, name="python", memory_bytes=1)
    show_reading(qtbot, studio, sensor_source, with_processes(inventory, 2.0, one))
    assert is_shown(tab, "devices.processes")
    assert not is_shown(tab, "devices.processes.note")


# ── facts ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_facts_follow_the_readings_and_the_engine(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    start(qtbot, studio, tab)
    show_reading(qtbot, studio, sensor_source, reading(inventory, 1.0, fan_percent=35.0))
    value = find(tab, QLabel, "devices.details.fan")
    assert said(tab, "devices.details.fan") == "35 %"
    assert value.accessibleName().replace("\u202f", " ") == "Fan: 35 %"
    show_reading(qtbot, studio, sensor_source, reading(inventory, 2.0, fan_percent=60.0))
    assert find(tab, QLabel, "devices.details.fan") is value
    assert said(tab, "devices.details.fan") == "60 %"
    qtbot.waitUntil(lambda: said(tab, "devices.details.allocated") == "1 GiB")
    assert said(tab, "devices.details.reserved") == "2 GiB"
    assert said(tab, "devices.details.cuda_available") == "yes"


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_hidden_tab_asks_for_nothing_and_catches_up(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    start(qtbot, studio, tab)
    qtbot.waitUntil(lambda: said(tab, "devices.details.allocated") == "1 GiB")
    tab.hide()
    assert not tab._model._timer.isActive()
    show_reading(qtbot, studio, sensor_source, reading(inventory, 1.0, fan_percent=77.0))
    assert said(tab, "devices.details.fan") != "77 %"
    tab.show()
    assert said(tab, "devices.details.fan") == "77 %"
    assert said(tab, "devices.sensor.fan.value") == "77 %"
    assert tab._model._timer.isActive()


# ── copying ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [gt_1030()])
@pytest.mark.parametrize(
    ("form", "start_of_text"),
    [("text", "GPU Studio"), ("markdown", "## GPU Studio"), ("json", "{")],
)
def test_copying_masks_what_names_the_card(qtbot, studio, with_cuda, tab, form, start_of_text):
    start(qtbot, studio, tab)
    find(tab, QAction, f"devices.copy.{form}").trigger()
    copied = QGuiApplication.clipboard().text()
    assert copied.startswith(start_of_text)
    assert "GT 1030" in copied
    assert gt_1030_card().uuid not in copied
    assert "masked" in said(tab, "devices.copied")
    find(tab, QAction, "devices.copy.unmasked").trigger()
    assert QGuiApplication.clipboard().text() == copied
    find(tab, QAction, f"devices.copy.{form}").trigger()
    assert gt_1030_card().uuid in QGuiApplication.clipboard().text()
    assert said(tab, "devices.copied") == "Copied. Nothing is masked."


# ── how it fits ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [two_cards()])
@pytest.mark.parametrize("width", [740, 1000, 1600])
def test_nothing_is_cut_off_at_the_right(
    qtbot, studio, with_cuda, tab, sensor_source, inventory, width
):
    tab.resize(width, 560)
    start(qtbot, studio, tab)
    show_reading(qtbot, studio, sensor_source, reading(inventory, 1.0))
    page = find(tab, QWidget, "devices.details").parentWidget().parentWidget()
    area = page.parentWidget()
    qtbot.waitUntil(lambda: page.width() == area.width())
    cards = [w for w in tab.findChildren(QWidget) if w.objectName().count(".") == 2
             and w.objectName().startswith("devices.sensor.") and w.isVisible()]  # fmt: skip
    assert len(cards) == 9
    assert max(card.width() for card in cards) - min(card.width() for card in cards) <= 1
    assert all(card.mapTo(page, card.rect().topRight()).x() < area.width() for card in cards)


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_everything_to_press_has_a_name_and_is_reached_by_keyboard(
    qtbot, studio, engines, tab, sensor_source, inventory
):
    engines.scripts[DescribeEngine] = [WITHOUT_PASCAL]
    start(qtbot, studio, tab)
    show_reading(qtbot, studio, sensor_source, reading(inventory, 1.0))
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
