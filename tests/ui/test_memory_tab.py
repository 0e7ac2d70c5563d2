from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QComboBox, QPushButton, QSlider, QTableView, QWidget

from gpu_studio.core.protocol import (
    BreakMemory,
    DescribeEngine,
    EmptyCache,
    EngineEnded,
    ReadMemory,
)
from gpu_studio.model.memory_history import Mark
from gpu_studio.ui.live_plot import LivePlot
from gpu_studio.ui.memory_tab import MemoryTab
from gpu_studio.ui.tank import TankBar
from tests.fakes import (
    Pause,
    cache_emptied,
    cpu_only,
    described,
    described_with_cuda,
    gt_1030,
    memory_read,
    no_context,
    oom_finished,
    reading,
    two_cards,
)
from tests.ui.by_name import click, find, text

MIB = 1 << 20


@pytest.fixture
def inventory():
    return gt_1030()


@pytest.fixture
def scripts(engines, inventory):
    cuda = described_with_cuda(device_count=len(inventory.cards))
    engines.scripts |= {
        DescribeEngine: [cuda if inventory.cards else described()],
        ReadMemory: lambda _engine, request: [
            memory_read(request.device, allocated=100, reserved=120)
        ],
    }
    return engines.scripts


@pytest.fixture
def tab(scripts, studio, theme, qtbot):
    """The tab, shown, with its engine and sensors not yet started."""
    tab = MemoryTab(studio, theme)
    qtbot.addWidget(tab)
    tab.resize(980, 700)
    tab.show()
    qtbot.waitExposed(tab)
    return tab


def start(qtbot, tab, studio):
    studio.start()
    qtbot.waitUntil(lambda: tab.model.latest is not None)


def test_before_the_engine_is_there_the_tab_says_so(tab, scripts, engines, studio, qtbot):
    scripts[DescribeEngine] = [Pause(), described_with_cuda()]
    studio.start()
    qtbot.waitUntil(lambda: studio.sensors.inventory is not None)
    assert "starting" in text(tab, "memory.sentence")
    assert "starting" in text(tab, "memory.oom.reason")
    assert not find(tab, "memory.oom.run").isEnabled()
    assert not find(tab, "memory.empty_cache").isEnabled()
    qtbot.waitUntil(engines.latest.paused.is_set)
    engines.latest.go()
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    assert find(tab, "memory.oom.reason").isHidden()


def test_a_card_is_shown_as_a_tank_that_says_in_words_what_it_paints(tab, studio, qtbot):
    start(qtbot, tab, studio)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 4)
    assert text(tab, "memory.title") == "GT 1030  ·  2 GiB"
    spoken = bar.accessibleDescription().replace("\u202f", " ")
    assert "Tensors 100 MiB" in spoken
    assert "Reserved, empty 20 MiB" in spoken
    stretches = bar.stretches()
    assert stretches[0].left() >= 0
    assert stretches[-1].right() <= bar.width()
    assert all(a.right() < b.left() for a, b in pairwise(stretches))
    assert stretches[1].width() > stretches[2].width()


def test_the_tank_is_walked_with_the_keyboard(tab, studio, qtbot):
    start(qtbot, tab, studio)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 4)
    bar.setFocus()
    qtbot.keyClick(bar, Qt.Key.Key_Home)
    assert text(tab, "memory.sentence").startswith("Other programs, driver: 390 MiB (19 %)")
    qtbot.keyClick(bar, Qt.Key.Key_Right)
    assert text(tab, "memory.sentence").startswith("Tensors: 100 MiB")
    qtbot.keyClick(bar, Qt.Key.Key_End)
    qtbot.keyClick(bar, Qt.Key.Key_Right)
    assert text(tab, "memory.sentence").startswith("Free: 1.50 GiB")
    qtbot.keyClick(bar, Qt.Key.Key_Left)
    assert text(tab, "memory.sentence").startswith("Reserved, empty: 20 MiB")
    tab.grab()
    bar.clearFocus()
    assert "read together" in text(tab, "memory.sentence")


def test_the_tank_tells_what_is_pointed_at(tab, studio, qtbot):
    start(qtbot, tab, studio)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 4)
    middle = bar.stretches()[1].center().toPoint()
    qtbot.mouseMove(bar, middle)
    qtbot.waitUntil(lambda: text(tab, "memory.sentence").startswith("Tensors"))
    qtbot.mouseMove(bar, QPoint(bar.width() - 4, 10))
    qtbot.waitUntil(lambda: text(tab, "memory.sentence").startswith("Free"))


def test_the_tank_has_a_table(tab, studio, qtbot):
    start(qtbot, tab, studio)
    click(qtbot, tab, "memory.tank.numbers")
    table = find(tab, "memory.tank.table", QTableView)
    qtbot.waitUntil(lambda: table.isVisible() and table.model().rowCount() == 4)
    cells = [table.model().index(1, column).data() for column in range(4)]
    assert cells[0] == "Tensors"
    assert cells[1].startswith("100")
    click(qtbot, tab, "memory.tank.numbers")
    assert not table.isVisible()


def test_the_curves_are_allocated_and_reserved_and_have_a_table(tab, studio, qtbot):
    start(qtbot, tab, studio)
    plot = find(tab, "memory.plot", LivePlot)
    assert set(plot.curve_keys) == {"allocated", "reserved"}
    xs, ys = tab._curves._lower()
    assert ys[-1] == 100 * MIB
    assert tab._curves._upper()[1][-1] == 120 * MIB
    assert len(xs) == len(ys)
    qtbot.waitUntil(lambda: "Now: 2" in plot.accessibleDescription())
    click(qtbot, tab, "memory.plot.as_table")
    table = find(tab, "memory.table", QTableView)
    qtbot.waitUntil(lambda: table.isVisible() and table.model().rowCount() > 0)
    assert not plot.isVisible()
    assert table.model().index(0, 1).data().startswith("100")


def test_it_polls_while_it_is_looked_at_and_not_while_hidden(tab, engines, studio, qtbot):
    start(qtbot, tab, studio)

    def polls():
        return sum(isinstance(request, ReadMemory) for request in engines.requests)

    qtbot.waitUntil(lambda: polls() >= 3)
    tab.hide()
    assert not tab._polls.isActive()
    tab.show()
    assert tab._polls.isActive()


def test_empty_cache_by_its_button(tab, scripts, studio, qtbot):
    before = memory_read(allocated=100, reserved=336, releasable_bytes=128 * MIB)
    scripts[ReadMemory] = [before]
    scripts[EmptyCache] = [cache_emptied(before, 128)]
    start(qtbot, tab, studio)
    qtbot.waitUntil(find(tab, "memory.empty_cache").isEnabled)
    assert "can free 128 MiB of the 236 MiB" in text(tab, "memory.cache")
    click(qtbot, tab, "memory.empty_cache")
    qtbot.waitUntil(lambda: "freed 128 MiB, as it said" in text(tab, "memory.cache"))


def test_without_a_context_it_says_when_numbers_begin(tab, scripts, studio, sensor_source, qtbot):
    scripts[ReadMemory] = [no_context()]
    start(qtbot, tab, studio)
    sensor_source.send(reading(gt_1030()))
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None)
    assert [part.key for part in bar.tank.parts] == ["others", "free"]
    assert "begin with the first CUDA work" in text(tab, "memory.sentence")
    assert not find(tab, "memory.empty_cache").isEnabled()
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)


# ── on a PC without a card ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_without_a_card_the_engine_process_is_live_and_the_experiment_says_why_not(
    tab, studio, qtbot
):
    start(qtbot, tab, studio)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None)
    assert [part.label for part in bar.tank.parts] == [
        "Other programs", "This program's engine", "Free",
    ]  # fmt: skip
    assert find(tab, "memory.plot", LivePlot).curve_keys == ("process",)
    assert text(tab, "memory.title") == "This PC's RAM  ·  32 GiB"
    assert "only for a CUDA card" in text(tab, "memory.sentence")
    assert find(tab, "memory.oom.size").isVisible()
    for name in ("size", "count", "dtype", "budget", "preset", "run", "stop"):
        assert not find(tab, f"memory.oom.{name}").isEnabled(), name
    assert "This PyTorch was built without CUDA." in text(tab, "memory.oom.reason")
    assert find(tab, "memory.empty_cache").isHidden()


@pytest.mark.parametrize("inventory", [two_cards()])
def test_two_cards_are_chosen_between(tab, engines, studio, qtbot):
    start(qtbot, tab, studio)
    cards = find(tab, "memory.card", QComboBox)
    assert [cards.itemText(i) for i in range(cards.count())] == [
        "This PC's RAM", "cuda:0 GT 1030", "cuda:1 RTX 3060",
    ]  # fmt: skip
    assert cards.currentIndex() == 1
    cards.setFocus()
    qtbot.keyClick(cards, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: text(tab, "memory.title").startswith("RTX 3060"))
    qtbot.waitUntil(lambda: engines.requests[-1] == ReadMemory(device="cuda:1"))
    qtbot.keyClick(cards, Qt.Key.Key_Home)
    qtbot.waitUntil(lambda: text(tab, "memory.title").startswith("This PC's RAM"))
    assert "Choose a card above" in text(tab, "memory.oom.reason")


# ── the experiment ───────────────────────────────────────────────────────────────────────────


def test_the_first_preset_is_the_experiment_of_the_post(tab, studio, qtbot):
    start(qtbot, tab, studio)
    preset = find(tab, "memory.oom.preset", QComboBox)
    assert preset.currentText() == "The GT 1030 experiment: 8192 × 8192 float32 until it breaks"
    assert "Radosław Śmigielski" in text(tab, "memory.oom.source")
    assert text(tab, "memory.oom.size.words") == "8192 × 8192 = 256 MiB"
    assert text(tab, "memory.oom.count.words") == "until it breaks"
    assert find(tab, "memory.oom.dtype", QComboBox).currentText() == "float32"
    # Three quarters of what CUDA calls free, PyTorch's own share with it: 3/4 of 1658 MiB.
    qtbot.waitUntil(lambda: text(tab, "memory.oom.budget.words") == "1.20 GiB of 1.95 GiB")


def test_a_moved_slider_makes_the_experiment_ones_own(tab, studio, qtbot):
    start(qtbot, tab, studio)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    size = find(tab, "memory.oom.size", QSlider)
    size.setFocus()
    qtbot.keyClick(size, Qt.Key.Key_Left)
    assert text(tab, "memory.oom.size.words").startswith("5792 × 5792 = 128 MiB")
    assert size.accessibleName().startswith("Tensor size: 5792")
    assert find(tab, "memory.oom.preset", QComboBox).currentText() == "Your own"
    count = find(tab, "memory.oom.count", QSlider)
    qtbot.keyClick(count, Qt.Key.Key_Home)
    assert text(tab, "memory.oom.count.words").startswith("1 = 128 MiB")


def test_a_budget_moved_by_hand_stays(tab, studio, qtbot):
    start(qtbot, tab, studio)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    budget = find(tab, "memory.oom.budget", QSlider)
    before = budget.value()
    budget.setFocus()
    qtbot.keyClick(budget, Qt.Key.Key_Left)
    moved = budget.value()
    assert moved == before - 1
    tab.model.memory_changed.emit()
    assert budget.value() == moved
    qtbot.keyClick(budget, Qt.Key.Key_End)
    assert tab.findChild(QWidget, "memory.oom").budget_bytes < 1996 * MIB - 64 * MIB


def test_the_experiment_runs_and_tells_its_end(tab, scripts, engines, studio, qtbot):
    scripts[BreakMemory] = lambda engine, request: [
        memory_read(mark="start"),
        memory_read(allocated=1024, reserved=1024, mark="oom"),
        Pause(),
        memory_read(reserved=1024, mark="freed"),
        oom_finished("over_budget"),
    ]
    start(qtbot, tab, studio)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    click(qtbot, tab, "memory.oom.run")
    qtbot.waitUntil(lambda: "1 GiB allocated" in text(tab, "memory.oom.outcome"))
    assert not find(tab, "memory.oom.run").isEnabled()
    assert find(tab, "memory.oom.stop").isEnabled()
    bar = find(tab, "memory.tank", TankBar)
    assert bar.tank.parts[1].size_bytes == 1024 * MIB, "it fills while it runs"
    engines.latest.go()
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    assert text(tab, "memory.oom.headline") == "Over the budget."
    assert "Tensor 5 asked for 256 MiB when 1 GiB were allocated" in text(tab, "memory.oom.outcome")
    assert "Raise it" in text(tab, "memory.oom.next")
    assert find(tab, "memory.oom.result").property("tone") == "amber"
    assert "what the experiment had reached" in text(tab, "memory.sentence")


def test_stop_stops_it(tab, scripts, engines, studio, qtbot):
    scripts[BreakMemory] = lambda engine, request: [
        memory_read(mark="start"),
        Pause(),
        oom_finished("stopped", tensors=1),
    ]
    start(qtbot, tab, studio)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    click(qtbot, tab, "memory.oom.run")
    qtbot.waitUntil(engines.latest.paused.is_set)
    click(qtbot, tab, "memory.oom.stop")
    qtbot.waitUntil(lambda: text(tab, "memory.oom.headline") == "Stopped.")
    assert "1 tensor of 256 MiB was on the card" in text(tab, "memory.oom.outcome")


def test_an_engine_that_dies_in_the_middle_is_told_and_replaced(tab, scripts, studio, qtbot):
    scripts[BreakMemory] = lambda engine, request: [
        memory_read(allocated=512, reserved=512),
        EngineEnded(exit_code=-9),
    ]
    start(qtbot, tab, studio)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    click(qtbot, tab, "memory.oom.run")
    qtbot.waitUntil(lambda: text(tab, "memory.oom.headline") == "The engine died.")
    assert "Traceback" not in text(tab, "memory.oom.outcome")
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)


def test_the_preset_can_be_chosen_again(tab, studio, qtbot):
    start(qtbot, tab, studio)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    preset = find(tab, "memory.oom.preset", QComboBox)
    preset.setFocus()
    qtbot.keyClick(preset, Qt.Key.Key_Down)
    assert find(tab, "memory.oom.dtype", QComboBox).currentText() == "float16"
    assert text(tab, "memory.oom.size.words") == "8192 × 8192 = 128 MiB"
    qtbot.keyClick(preset, Qt.Key.Key_End)
    assert "sliders" in text(tab, "memory.oom.source")
    qtbot.keyClick(preset, Qt.Key.Key_Home)
    assert text(tab, "memory.oom.size.words") == "8192 × 8192 = 256 MiB"


# ── looks ────────────────────────────────────────────────────────────────────────────────────


def test_every_control_has_a_name_to_be_read_aloud(tab):
    for kind in (QPushButton, QSlider, QComboBox, TankBar, LivePlot):
        for widget in tab.findChildren(kind):
            assert widget.accessibleName(), widget.objectName()
            assert widget.objectName(), widget


@pytest.mark.parametrize("inventory", [two_cards()])
def test_it_fits_the_smallest_window(tab, studio, qtbot):
    start(qtbot, tab, studio)
    assert tab.minimumSizeHint().width() <= 780
    assert tab.minimumSizeHint().height() <= 520


def test_it_is_painted_again_in_the_other_theme(tab, studio, settings, qtbot):
    start(qtbot, tab, studio)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 4)
    light = bar.grab().toImage().pixelColor(bar.width() - 10, 16)
    settings.change(theme="dark")
    dark = bar.grab().toImage().pixelColor(bar.width() - 10, 16)
    assert light.lightness() > 200
    assert dark.lightness() < 60
    settings.change(theme="light")


def test_marks_that_are_near_share_the_room_for_a_label_and_failures_come_first(
    tab, scripts, studio, qtbot
):
    scripts[BreakMemory] = lambda engine, request: [
        memory_read(mark="start"),
        memory_read(allocated=1024, reserved=1024, mark="oom", taken_at_s=10.4),
        memory_read(reserved=1024, mark="freed", taken_at_s=10.5),
        oom_finished(),
    ]
    start(qtbot, tab, studio)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    click(qtbot, tab, "memory.oom.run")
    plot = find(tab, "memory.plot", LivePlot)
    qtbot.waitUntil(lambda: len(plot._markers) == 2)
    assert [(label, role) for _at_s, label, role, *_ in plot._markers] == [
        ("", "muted"),
        ("out of memory", "failure"),
    ]
    tab.model.history.mark(Mark(at_s=tab.model.now_s + 12, label="empty_cache"))
    tab.model.marks_changed.emit()
    assert plot._markers[-1][1] == "empty_cache"
