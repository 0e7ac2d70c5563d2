from __future__ import annotations

from itertools import cycle, pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QInputDialog,
    QMessageBox,
    QPushButton,
    QSlider,
    QTableView,
)

from gpu_studio.core.protocol import (
    AllocationPlan,
    DescribeEngine,
    EmptyCache,
    EngineEnded,
    ReadMemory,
    ReadSegments,
    RunMemoryExperiment,
)
from gpu_studio.model.memory_history import Mark
from gpu_studio.ui.memory.oom_panel import OomPanel
from gpu_studio.ui.memory.segment_map import SegmentMapView
from gpu_studio.ui.memory.tank import TankBar
from gpu_studio.ui.memory_tab import CURVES, LAB_PAGE, SEGMENTS, MemoryTab
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.memory_answers import (
    cache_emptied,
    memory_read,
    no_context,
    oom_finished,
    segments_read,
)
from tests.fakes.pc import cpu_only, gt_1030, reading, two_cards
from tests.fakes.scripted_engine import Pause
from tests.ui.by_name import click, find, text

MIB = 1 << 20
ERROR = (
    "CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 1.95 GiB of "
    "which 634.00 MiB is free. 1.17 GiB allowed; Of the allocated memory 1.00 GiB is allocated by "
    "PyTorch, and 0 bytes is reserved by PyTorch but unallocated."
)


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


def start(qtbot, tab, studio, page=CURVES):
    studio.start()
    tab.show_page(page)
    qtbot.waitUntil(lambda: tab.model.latest is not None)


def run(qtbot, tab, studio):
    start(qtbot, tab, studio, LAB_PAGE)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    click(qtbot, tab, "memory.oom.run")


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
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 5)
    assert text(tab, "memory.title") == "GT 1030  ·  2 GiB"
    spoken = bar.accessibleDescription().replace("\u202f", " ")
    assert "Tensors 100 MiB" in spoken
    assert "Reserved, empty 20 MiB" in spoken
    stretches = bar.places.stretches
    assert stretches[0].left() >= 0
    assert stretches[-1].right() <= bar.width()
    assert all(a.right() < b.left() for a, b in pairwise(stretches))
    assert stretches[1].width() > stretches[2].width() > stretches[3].width()


def test_the_tank_is_walked_with_the_keyboard(tab, studio, qtbot):
    start(qtbot, tab, studio)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 5)
    bar.setFocus()
    qtbot.keyClick(bar, Qt.Key.Key_Home)
    assert text(tab, "memory.sentence").startswith("Kept by driver: 52 MiB (2.5 %)")
    qtbot.keyClick(bar, Qt.Key.Key_Right)
    assert text(tab, "memory.sentence").startswith("Not told: 338 MiB (17 %)")
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
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 5)
    middle = bar.places.stretches[2].center().toPoint()
    qtbot.mouseMove(bar, middle)
    qtbot.waitUntil(lambda: text(tab, "memory.sentence").startswith("Tensors"))
    qtbot.mouseMove(bar, QPoint(bar.width() - 4, 10))
    qtbot.waitUntil(lambda: text(tab, "memory.sentence").startswith("Free"))


def test_the_tank_has_a_table(tab, studio, qtbot):
    start(qtbot, tab, studio)
    click(qtbot, tab, "memory.tank.numbers")
    table = find(tab, "memory.tank.table", QTableView)
    qtbot.waitUntil(lambda: table.isVisible() and table.model().rowCount() == 5)
    cells = [table.model().index(2, column).data() for column in range(4)]
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
def test_without_a_card_the_modelled_gt_1030_is_there_and_named_as_such(
    tab, engines, studio, qtbot
):
    start(qtbot, tab, studio)
    qtbot.waitUntil(lambda: text(tab, "memory.title") == "GT 1030, 2 GiB")
    assert find(tab, "memory.modelled").isVisible()
    assert find(tab, "memory.card", QComboBox).currentText() == "Modelled: GT 1030, 2 GiB"
    assert isinstance(engines.requests[-1], (ReadMemory, DescribeEngine))
    tab.show_page(LAB_PAGE)
    assert find(tab, "memory.oom.run").isEnabled()
    assert text(tab, "memory.oom.budget.words") == "¾ of what is free, about 1.41 GiB"


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_the_ram_is_live_and_an_experiment_wants_a_card(tab, studio, qtbot):
    start(qtbot, tab, studio)
    qtbot.waitUntil(lambda: tab.model.chosen.is_modelled)
    cards = find(tab, "memory.card", QComboBox)
    cards.setFocus()
    qtbot.keyClick(cards, Qt.Key.Key_Home)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: text(tab, "memory.title") == "This PC's RAM  ·  32 GiB")
    qtbot.waitUntil(lambda: bar.tank is not None and bar.tank.parts[1].key == "engine")
    assert find(tab, "memory.plot", LivePlot).curve_keys == ("process",)
    assert "choose a modelled one" in text(tab, "memory.sentence")
    assert find(tab, "memory.empty_cache").isHidden()
    assert find(tab, "memory.modelled").isHidden()
    tab.show_page(LAB_PAGE)
    for name in ("size", "count", "dtype", "budget", "preset", "run", "stop"):
        assert not find(tab, f"memory.oom.{name}").isEnabled(), name
    assert "Choose a modelled card above" in text(tab, "memory.oom.reason")


@pytest.mark.parametrize("inventory", [two_cards()])
def test_two_cards_are_chosen_between(tab, engines, studio, qtbot):
    start(qtbot, tab, studio)
    cards = find(tab, "memory.card", QComboBox)
    assert [cards.itemText(i) for i in range(3)] == [
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


def test_a_card_of_ones_own_size(tab, studio, monkeypatch, qtbot):
    start(qtbot, tab, studio)
    monkeypatch.setattr(QInputDialog, "getInt", lambda *_arguments: (3000, True))
    cards = find(tab, "memory.card", QComboBox)
    cards.setFocus()
    qtbot.keyClick(cards, Qt.Key.Key_End)
    qtbot.waitUntil(lambda: tab.model.chosen.address == "model:3000")
    assert cards.currentText() == "Modelled: A card with 3000 MiB"


# ── the segment map ──────────────────────────────────────────────────────────────────────────


@pytest.fixture
def with_segments(scripts):
    scripts[ReadSegments] = lambda _engine, request: [
        segments_read(memory_read(request.device, allocated=15, reserved=20))
    ]


def test_the_segments_are_read_while_they_are_looked_at(tab, with_segments, engines, studio, qtbot):
    start(qtbot, tab, studio, SEGMENTS)
    view = find(tab, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: view.blocks is not None)
    assert text(tab, "memory.largest") == "5 MiB in one piece"
    assert "of 20 MiB free in all: 75 % fragmented" in text(tab, "memory.fragmentation")
    assert "1 segment with 3 blocks: 15 MiB allocated" in view.accessibleDescription().replace(
        "\u202f", " "
    )
    asked = sum(isinstance(request, ReadSegments) for request in engines.requests)
    qtbot.waitUntil(
        lambda: sum(isinstance(one, ReadSegments) for one in engines.requests) >= asked + 3,
        timeout=2000,
    )


def test_the_map_is_walked_with_the_keyboard_and_tells_each_block(
    tab, with_segments, studio, qtbot
):
    start(qtbot, tab, studio, SEGMENTS)
    view = find(tab, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: view.blocks is not None)
    view.setFocus()
    qtbot.waitUntil(lambda: text(tab, "memory.block").startswith("Block 1 of 3: allocated, 10 MiB"))
    blocks = find(tab, "memory.blocks", QTableView).model()
    assert blocks.rowCount() == 3
    assert [blocks.index(2, column).data().replace("\u202f", " ") for column in range(3)] == [
        "15 MiB", "5 MiB", "free",
    ]  # fmt: skip
    qtbot.keyClick(view, Qt.Key.Key_End)
    assert "free, 5 MiB (5242880 bytes), 15 MiB into the large segment of 20 MiB" in text(
        tab, "memory.block"
    )
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert text(tab, "memory.block").startswith("Block 2 of 3")
    middle = view.places.block(0).center().toPoint()
    places = cycle((middle, middle + QPoint(1, 0)))

    def is_told_when_pointed_at():
        qtbot.mouseMove(view.viewport(), next(places))
        return text(tab, "memory.block").startswith("Block 1 of 3")

    qtbot.waitUntil(is_told_when_pointed_at)


def test_what_is_free_beyond_a_budget_is_no_fragmentation(tab, scripts, studio, qtbot):
    """20 MiB are free, and 7 within the budget: 5 of those 7 come in one piece."""
    scripts[ReadSegments] = lambda _engine, request: [
        segments_read(memory_read(request.device, allocated=15, reserved=20, limit_bytes=22 * MIB))
    ]
    start(qtbot, tab, studio, SEGMENTS)
    qtbot.waitUntil(
        lambda: (
            "of 7 MiB free within the budget: 29 % fragmented" in text(tab, "memory.fragmentation")
        )
    )


def test_without_segments_the_map_says_where_they_come_from(tab, scripts, studio, qtbot):
    scripts[ReadSegments] = lambda _engine, request: [
        segments_read(
            memory_read(request.device), addresses=(), sizes=(), is_small=(), is_expandable=(),
            block_counts=(), block_sizes=(), block_states="", largest_block_bytes=1658 * MIB,
            free_total_bytes=1658 * MIB,
        )
    ]  # fmt: skip
    start(qtbot, tab, studio, SEGMENTS)
    view = find(tab, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: view.blocks is not None)
    assert "has not asked this card for memory yet" in view.accessibleDescription()


# ── the experiments ──────────────────────────────────────────────────────────────────────────


def test_the_first_preset_is_the_experiment_of_the_post(tab, studio, qtbot):
    start(qtbot, tab, studio, LAB_PAGE)
    preset = find(tab, "memory.oom.preset", QComboBox)
    assert preset.currentData() == "gt1030"
    assert "Radosław Śmigielski" in text(tab, "memory.oom.source")
    assert text(tab, "memory.oom.size.words") == "8192 × 8192 = 256 MiB"
    assert text(tab, "memory.oom.count.words") == "until it breaks"
    assert find(tab, "memory.oom.dtype", QComboBox).currentText() == "float32"
    # Three quarters of what is left for an engine of its own: 3/4 of 1538 MiB, in steps of 16.
    budget = "¾ of what is free, about 1.12 GiB"
    qtbot.waitUntil(lambda: text(tab, "memory.oom.budget.words") == budget)
    assert find(tab, "memory.oom", OomPanel).budget_bytes is None, "the engine knows better"


def test_a_moved_slider_makes_the_experiment_ones_own(tab, studio, qtbot):
    start(qtbot, tab, studio, LAB_PAGE)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    assert find(tab, "memory.oom.steps").isHidden()
    size = find(tab, "memory.oom.size", QSlider)
    size.setFocus()
    qtbot.keyClick(size, Qt.Key.Key_Left)
    assert text(tab, "memory.oom.size.words").startswith("5792 × 5792 = 128 MiB")
    assert size.accessibleName().startswith("Tensor size: 5792")
    assert find(tab, "memory.oom.preset", QComboBox).currentText() == "Your own"
    assert find(tab, "memory.oom.steps").isVisible()
    qtbot.keyClick(find(tab, "memory.oom.count", QSlider), Qt.Key.Key_Home)
    assert text(tab, "memory.oom.count.words").startswith("1 = 128 MiB")
    qtbot.keyClick(find(tab, "memory.oom.growth", QSlider), Qt.Key.Key_Right)
    assert text(tab, "memory.oom.growth.words") == "+ 8 a side"
    find(tab, "memory.oom.frees", QCheckBox).click()
    assert find(tab, "memory.oom", OomPanel).plan == AllocationPlan(
        size=5792, count=1, dtype="float32", frees_every_second=True, growth=8
    )


def test_a_preset_that_chooses_its_tensors_itself_has_no_sliders(tab, studio, qtbot):
    start(qtbot, tab, studio, LAB_PAGE)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    preset = find(tab, "memory.oom.preset", QComboBox)
    preset.setFocus()
    qtbot.keyClick(preset, Qt.Key.Key_Down)
    assert text(tab, "memory.oom.size.words").startswith("256 × 256 = 256 KiB")
    qtbot.keyClick(preset, Qt.Key.Key_Down)
    assert preset.currentData() == "one_big"
    assert find(tab, "memory.oom.sliders").isHidden()
    qtbot.keyClick(preset, Qt.Key.Key_Home)
    assert find(tab, "memory.oom.sliders").isVisible()
    assert text(tab, "memory.oom.size.words").startswith("8192")


def test_a_budget_moved_by_hand_stays(tab, studio, qtbot):
    start(qtbot, tab, studio, LAB_PAGE)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    budget = find(tab, "memory.oom.budget", QSlider)
    before = budget.value()
    budget.setFocus()
    qtbot.keyClick(budget, Qt.Key.Key_Left)
    moved = budget.value()
    assert moved == before - 1
    assert text(tab, "memory.oom.budget.words") == "1.11 GiB of 1.95 GiB"
    tab.model.memory_changed.emit()
    assert budget.value() == moved
    qtbot.keyClick(budget, Qt.Key.Key_End)
    assert find(tab, "memory.oom", OomPanel).budget_bytes < 1996 * MIB - 64 * MIB


def test_the_whole_card_is_filled_only_after_a_confirmation(
    tab, scripts, engines, studio, monkeypatch, qtbot
):
    asked = []

    def answer(button):
        def exec_(box):
            asked.append(box.informativeText())
            return button

        return exec_

    scripts[RunMemoryExperiment] = [oom_finished("card_full")]
    start(qtbot, tab, studio, LAB_PAGE)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    find(tab, "memory.oom.whole_card", QCheckBox).click()
    assert not find(tab, "memory.oom.budget").isEnabled()
    assert text(tab, "memory.oom.budget.words") == "all of 1.95 GiB"
    monkeypatch.setattr(QMessageBox, "exec", answer(QMessageBox.StandardButton.Cancel))
    click(qtbot, tab, "memory.oom.run")
    assert "turn black" in asked[0]
    assert tab.model.experiment.request is None
    monkeypatch.setattr(QMessageBox, "exec", answer(QMessageBox.StandardButton.Yes))
    click(qtbot, tab, "memory.oom.run")
    qtbot.waitUntil(lambda: len(tab.model.experiment.results) == 1)
    request = engines.requests[-1]
    assert (request.whole_card, request.budget_bytes) == (True, None)


def test_a_modelled_card_is_filled_without_asking(tab, scripts, studio, monkeypatch, qtbot):
    monkeypatch.setattr(QMessageBox, "exec", lambda box: pytest.fail("nothing can be filled"))
    scripts[RunMemoryExperiment] = [oom_finished("card_full", device="model:1996", modelled=True)]
    start(qtbot, tab, studio, LAB_PAGE)
    tab.model.devices.choose("model:1996")
    find(tab, "memory.oom.whole_card", QCheckBox).click()
    click(qtbot, tab, "memory.oom.run")
    qtbot.waitUntil(lambda: len(tab.model.experiment.results) == 1)
    assert text(tab, "memory.oom.conf") == "PYTORCH'S DEFAULT · MODELLED"


def test_the_experiment_runs_and_tells_its_end(tab, scripts, engines, studio, qtbot):
    scripts[RunMemoryExperiment] = lambda engine, request: [
        memory_read(mark="start"),
        memory_read(allocated=1024, reserved=1024, mark="oom"),
        Pause(),
        memory_read(reserved=1024, mark="freed"),
        oom_finished("over_budget", error_text=ERROR),
    ]
    run(qtbot, tab, studio)
    qtbot.waitUntil(lambda: "1 GiB allocated" in text(tab, "memory.oom.outcome"))
    assert find(tab, "memory.oom.invitation").isHidden()
    assert not find(tab, "memory.oom.run").isEnabled()
    assert find(tab, "memory.oom.stop").isEnabled()
    bar = find(tab, "memory.tank", TankBar)
    assert next(p.size_bytes for p in bar.tank.parts if p.key == "tensors") == 1024 * MIB
    engines.latest.go()
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    assert text(tab, "memory.oom.headline") == "Over the budget."
    assert "Tensor 5 asked for 256 MiB when 1 GiB were allocated" in text(tab, "memory.oom.outcome")
    assert "Raise it" in text(tab, "memory.oom.next")
    assert find(tab, "memory.oom.result").property("tone") == "amber"
    assert "had reached. The lab's engine has ended" in text(tab, "memory.sentence")
    assert find(tab, "memory.engine", QComboBox).currentText() == "The lab's engine"
    assert "The tank of the error" in text(tab, "memory.oom.tank_words")
    drawn = find(tab, "memory.oom.tank", TankBar).tank
    assert {part.key: part.size_bytes // MIB for part in drawn.parts} == {
        "driver": 52, "not_told": 338, "tensors": 1024, "holes": 0, "free": 634,
    }  # fmt: skip
    numbers = find(tab, "memory.oom.numbers", QTableView).model()
    rows = {
        numbers.index(r, 0).data(): numbers.index(r, 1).data() for r in range(numbers.rowCount())
    }
    assert rows["Tensors at the end"] == "4"
    assert rows["Reserved"].replace("\u202f", " ") == "1 GiB"


def test_an_error_that_the_counters_do_not_agree_with_is_drawn_as_its_text_tells_it(
    tab, scripts, studio, qtbot
):
    """Another process took 100 MiB between the error and the reading."""
    scripts[RunMemoryExperiment] = lambda engine, request: [
        memory_read(mark="start"),
        memory_read(allocated=1024, reserved=1024, mark="oom", free_bytes=534 * MIB),
        oom_finished(error_text=ERROR),
    ]
    run(qtbot, tab, studio)
    drawn = find(tab, "memory.oom.tank", TankBar)
    qtbot.waitUntil(lambda: drawn.tank is not None)
    assert {part.key: part.size_bytes // MIB for part in drawn.tank.parts} == {
        "not_told": 338, "tensors": 1024, "holes": 0, "free": 634,
    }  # fmt: skip
    assert text(tab, "memory.oom.tank_words").endswith("to two decimals.")


def test_the_engine_selector_goes_back_to_the_programs_own(tab, scripts, studio, qtbot):
    scripts[RunMemoryExperiment] = [
        memory_read(allocated=1024, reserved=1024, mark="oom"), oom_finished()
    ]  # fmt: skip
    run(qtbot, tab, studio)
    engine = find(tab, "memory.engine", QComboBox)
    qtbot.waitUntil(engine.isVisible)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    engine.setFocus()
    qtbot.keyClick(engine, Qt.Key.Key_Home)
    qtbot.waitUntil(lambda: "read together" in text(tab, "memory.sentence"))
    assert engine.currentText() == "The program's engine"


def test_the_same_with_expandable_segments_stands_beside_it(tab, scripts, engines, studio, qtbot):
    scripts[RunMemoryExperiment] = [
        memory_read(allocated=1024, reserved=1024, mark="oom"), oom_finished("fragmented")
    ]  # fmt: skip
    run(qtbot, tab, studio)
    qtbot.waitUntil(find(tab, "memory.oom.compare").isEnabled)
    assert text(tab, "memory.oom.headline") == "Fragmented."
    assert find(tab, "memory.oom.other.result").isHidden()
    scripts[RunMemoryExperiment] = [
        memory_read(allocated=1280, reserved=1280),
        oom_finished("fits", tensors=5, conf="expandable_segments:True"),
    ]  # fmt: skip
    click(qtbot, tab, "memory.oom.compare")
    qtbot.waitUntil(lambda: text(tab, "memory.oom.other.headline") == "Everything fits.")
    assert text(tab, "memory.oom.headline") == "Fragmented."
    assert text(tab, "memory.oom.other.conf") == "EXPANDABLE_SEGMENTS:TRUE"
    numbers = find(tab, "memory.oom.numbers", QTableView)
    assert not numbers.isColumnHidden(2)
    assert [numbers.model().index(0, column).data() for column in (1, 2)] == ["4", "5"]
    qtbot.waitUntil(lambda: find(tab, "memory.oom.run").isEnabled())
    assert not find(tab, "memory.oom.compare").isEnabled()


def test_both_results_fit_into_the_smallest_window(tab, scripts, studio, qtbot):
    scripts[RunMemoryExperiment] = [
        memory_read(allocated=1024, reserved=1024, mark="oom"),
        oom_finished("fragmented", error_text=ERROR),
    ]
    tab.resize(744, 560)  # what a window of 1024 pixels leaves beside the code
    run(qtbot, tab, studio)
    qtbot.waitUntil(find(tab, "memory.oom.compare").isEnabled)
    scripts[RunMemoryExperiment] = [
        memory_read(allocated=1280, reserved=1280, mark="held"),
        oom_finished("fits", tensors=5, conf="expandable_segments:True"),
    ]
    click(qtbot, tab, "memory.oom.compare")
    other = find(tab, "memory.oom.other.tank", TankBar)
    qtbot.waitUntil(lambda: other.isVisible() and other.tank is not None)
    assert find(tab, "memory.oom.tank", TankBar).isVisible()
    page = find(tab, "memory.oom.other.result").parentWidget().parentWidget()
    qtbot.waitUntil(lambda: page.width() <= page.parentWidget().width())


def test_a_recorded_snapshot_is_saved_where_one_likes(
    tab, scripts, studio, tmp_path, monkeypatch, qtbot
):
    def recording(_engine, request):
        assert request.snapshot_path
        Path(request.snapshot_path).write_bytes(b"recorded")
        yield oom_finished(snapshot_path=request.snapshot_path)

    scripts[RunMemoryExperiment] = recording
    start(qtbot, tab, studio, LAB_PAGE)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    find(tab, "memory.oom.record", QCheckBox).click()
    click(qtbot, tab, "memory.oom.run")
    save = find(tab, "memory.snapshot.save")
    qtbot.waitUntil(save.isVisible)
    place = tmp_path / "mine.pickle"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_a: (str(place), ""))
    click(qtbot, tab, "memory.snapshot.save")
    assert place.read_bytes() == b"recorded"
    assert "Saved as" in text(tab, "memory.snapshot.saved")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_a: (str(tmp_path), ""))
    click(qtbot, tab, "memory.snapshot.save")
    assert "could not be saved" in text(tab, "memory.snapshot.saved")


def test_stop_stops_it(tab, scripts, engines, studio, qtbot):
    scripts[RunMemoryExperiment] = lambda engine, request: [
        memory_read(mark="start"),
        Pause(),
        oom_finished("stopped", tensors=1),
    ]
    run(qtbot, tab, studio)
    qtbot.waitUntil(lambda: engines.latest.paused.is_set())
    click(qtbot, tab, "memory.oom.stop")
    qtbot.waitUntil(lambda: text(tab, "memory.oom.headline") == "Stopped.")
    assert "1 tensor of 256 MiB was on the card" in text(tab, "memory.oom.outcome")


def test_an_engine_that_dies_in_the_middle_is_told(tab, scripts, studio, qtbot):
    scripts[RunMemoryExperiment] = lambda engine, request: [
        memory_read(allocated=512, reserved=512),
        EngineEnded(exit_code=-9),
    ]
    run(qtbot, tab, studio)
    qtbot.waitUntil(lambda: text(tab, "memory.oom.headline") == "The engine died.")
    assert "Traceback" not in text(tab, "memory.oom.outcome")
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)


# ── looks ────────────────────────────────────────────────────────────────────────────────────


def test_every_control_has_a_name_to_be_read_aloud(tab):
    kinds = (QPushButton, QSlider, QComboBox, QCheckBox, TankBar, LivePlot, SegmentMapView)
    for kind in kinds:
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
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 5)
    light = bar.grab().toImage().pixelColor(bar.width() - 10, 16)
    settings.change(theme="dark")
    dark = bar.grab().toImage().pixelColor(bar.width() - 10, 16)
    assert light.lightness() > 200
    assert dark.lightness() < 60
    settings.change(theme="light")


def test_marks_that_are_near_share_the_room_for_a_label_and_failures_come_first(tab, studio, qtbot):
    start(qtbot, tab, studio)
    plot = find(tab, "memory.plot", LivePlot)
    now_s = tab.model.now_s
    for at_s, label in ((now_s, "experiment"), (now_s + 0.4, "out of memory")):
        mark = Mark(at_s=at_s, label=label, is_failure=label == "out of memory")
        tab.model.history.mark(mark)
    tab.model.marks_changed.emit()
    assert [(marker.label, marker.role) for marker in plot._markers] == [
        ("", "muted"),
        ("out of memory", "failure"),
    ]
    tab.model.history.mark(Mark(at_s=now_s + 12, label="empty_cache"))
    tab.model.marks_changed.emit()
    assert plot._markers[-1].label == "empty_cache"
    tab.model.history.mark(Mark(at_s=now_s + 12.2, label="freed"))  # in the middle of its label
    tab.model.marks_changed.emit()
    assert plot._markers[-1].label == "empty_cache"
    assert len(plot._markers) == 3


def test_active_and_requested_are_shown_on_request(tab, studio, qtbot):
    start(qtbot, tab, studio)
    plot = find(tab, "memory.plot", LivePlot)
    click(qtbot, tab, "memory.plot.more")
    assert set(plot.curve_keys) == {"allocated", "reserved", "active", "requested"}
    click(qtbot, tab, "memory.plot.more")
    assert set(plot.curve_keys) == {"allocated", "reserved"}


def test_a_narrow_tank_takes_more_lines_for_its_names(tab, studio, qtbot):
    start(qtbot, tab, studio)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 5)
    wide = bar.height()
    bar.setFixedWidth(260)
    qtbot.waitUntil(lambda: bar.height() > wide)
    places = bar.places.labels
    assert max(place.right() for place in places) <= 260
    assert max(place.bottom() for place in places) <= bar.height()
    assert not any(a.intersects(b) for a, b in pairwise(places))
