"""The tank: whose memory it is, in a bar, in words and in a table."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import (
    QComboBox,
    QInputDialog,
)

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.memory_messages import ReadMemory, RunMemoryExperiment
from gpu_studio.model.pages import BREAK_IT
from gpu_studio.ui.eliding import ElidingCombo
from gpu_studio.ui.memory.tank import TankBar
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.devices import show_reading
from tests.driving.memory import run, start
from tests.driving.window import find, plain, sees, text
from tests.fakes.memory_answers import (
    memory_read,
    no_context,
    oom_finished,
)
from tests.fakes.pc import cpu_only, gt_1030, long_names, reading, two_cards


def test_a_card_is_shown_as_a_tank_that_says_in_words_what_it_paints(tab, studio, qtbot):
    start(tab, studio)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 5)
    assert text(tab, "memory.title") == "GT 1030  ·  2 GiB"
    spoken = bar.accessibleDescription().replace("\u202f", " ")
    assert "Tensors 100 MiB" in spoken
    assert "20 MiB" in spoken
    stretches = bar.places.stretches
    assert stretches[0].left() >= 0
    assert stretches[-1].right() <= bar.width()
    assert all(a.right() < b.left() for a, b in pairwise(stretches))
    assert stretches[1].width() > stretches[2].width() > stretches[3].width()


@pytest.mark.parametrize("inventory", [long_names()])
@pytest.mark.parametrize("width", [900, 1280])
def test_a_long_name_of_a_card_stands_whole_beside_free_room(tab, studio, qtbot, width):
    start(tab, studio)
    cards = find(tab, "memory.card", ElidingCombo)
    tab.resize(width, 700)
    qtbot.waitUntil(lambda: "1650 with Max-Q Design" in cards.currentText())
    qtbot.waitUntil(lambda: not cards.is_elided)


def test_the_programs_on_the_card_are_named_with_their_memory(tab, studio, sensor_source, qtbot):
    start(tab, studio)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 5)
    assert not sees(tab, "memory.programs")
    show_reading(studio, sensor_source, reading(gt_1030(), 1.0))
    qtbot.waitUntil(lambda: sees(tab, "memory.programs"))
    assert "Xorg 90 MiB" in plain(text(tab, "memory.programs"))
    simulated = find(tab, "memory.card", QComboBox)
    simulated.setCurrentIndex(simulated.count() - 2)
    simulated.activated.emit(simulated.count() - 2)
    assert sees(tab, "memory.modelled")
    assert not sees(tab, "memory.programs")


def test_the_tank_is_walked_with_the_keyboard(tab, studio, qtbot):
    start(tab, studio)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 5)
    bar.setFocus()
    for key, result in (
        (Qt.Key.Key_Home, ": 52 MiB (2.5 %)"),  # of the driver
        (Qt.Key.Key_Right, ": 338 MiB (17 %)"),  # of what is not known
        (Qt.Key.Key_Right, "Tensors: 100 MiB"),
        (Qt.Key.Key_End, "Free: 1.50 GiB"),
        (Qt.Key.Key_Right, "Free: 1.50 GiB"),
        (Qt.Key.Key_Left, ": 20 MiB"),  # of what is reserved and empty
    ):
        qtbot.keyClick(bar, key)
        assert result in text(tab, "memory.sentence")
    tab.grab()
    bar.clearFocus()
    assert "20 MiB" not in text(tab, "memory.sentence")


def test_without_a_context_it_says_when_numbers_begin(tab, scripts, studio, sensor_source, qtbot):
    scripts[ReadMemory] = [no_context()]
    start(tab, studio)
    sensor_source.send(reading(gt_1030()))
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None)
    assert [part.key for part in bar.tank.parts] == ["others", "free"]
    assert "not used this card" in text(tab, "memory.sentence")
    assert not find(tab, "memory.empty_cache").isEnabled()
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_without_a_card_the_modelled_gt_1030_is_there_and_named_as_such(
    tab, engines, studio, qtbot
):
    start(tab, studio)
    qtbot.waitUntil(lambda: text(tab, "memory.title") == "GT 1030, 2 GiB")
    assert find(tab, "memory.modelled").isVisible()
    assert find(tab, "memory.card", QComboBox).currentText().startswith("Simulated")
    assert isinstance(engines.requests[-1], (ReadMemory, DescribeEngine))
    tab.pages.go_to(BREAK_IT)
    assert find(tab, "memory.oom.run").isEnabled()
    assert "1.95 GiB" in text(tab, "memory.oom.budget")


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_the_ram_is_live_and_an_experiment_wants_a_card(tab, studio, qtbot):
    start(tab, studio)
    qtbot.waitUntil(lambda: tab.model.chosen.is_modelled)
    cards = find(tab, "memory.card", QComboBox)
    cards.setFocus()
    qtbot.keyClick(cards, Qt.Key.Key_Home)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: text(tab, "memory.title") == "This PC's RAM  ·  32 GiB")
    qtbot.waitUntil(lambda: bar.tank is not None and bar.tank.parts[1].key == "engine")
    assert find(tab, "memory.plot", LivePlot).curve_keys == ("process",)
    assert "simulate" in text(tab, "memory.sentence")
    assert find(tab, "memory.empty_cache").isHidden()
    assert find(tab, "memory.modelled").isHidden()
    tab.pages.go_to(BREAK_IT)
    for name in ("size", "count", "dtype", "preset", "run", "stop"):
        assert not find(tab, f"memory.oom.{name}").isEnabled(), name
    assert "simulate" in text(tab, "memory.oom.reason")


@pytest.mark.parametrize("inventory", [two_cards()])
def test_two_cards_are_chosen_between(tab, engines, studio, qtbot):
    start(tab, studio)
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
    tab.pages.go_to(BREAK_IT)
    assert "card" in text(tab, "memory.oom.reason")
    assert not find(tab, "memory.oom.run").isEnabled()


def test_the_engine_selector_goes_back_to_the_programs_own(tab, scripts, studio, qtbot):
    scripts[RunMemoryExperiment] = [
        memory_read(allocated=1024, reserved=1024, mark="oom"), oom_finished()
    ]  # fmt: skip
    run(tab, studio)
    engine = find(tab, "memory.engine", QComboBox)
    qtbot.waitUntil(engine.isVisible)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    ended = text(tab, "memory.sentence")
    engine.setFocus()
    qtbot.keyClick(engine, Qt.Key.Key_Home)
    assert engine.currentIndex() == 0
    qtbot.waitUntil(lambda: text(tab, "memory.sentence") not in ("", ended))


def test_a_narrow_tank_takes_more_lines_for_its_names(tab, studio, qtbot):
    start(tab, studio)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 5)
    wide = bar.height()
    bar.setFixedWidth(260)
    qtbot.waitUntil(lambda: bar.height() > wide)
    places = bar.places.labels
    assert max(place.right() for place in places) <= 260
    assert max(place.bottom() for place in places) <= bar.height()
    assert not any(a.intersects(b) for a, b in pairwise(places))


def test_the_tank_reports_what_is_pointed_at(tab, studio, qtbot):
    start(tab, studio)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 5)
    middle = bar.places.stretches[2].center().toPoint()
    qtbot.mouseMove(bar, middle)
    qtbot.waitUntil(lambda: text(tab, "memory.sentence").startswith("Tensors"))
    qtbot.mouseMove(bar, QPoint(bar.width() - 4, 10))
    qtbot.waitUntil(lambda: text(tab, "memory.sentence").startswith("Free"))


def test_a_card_of_ones_own_size(tab, studio, monkeypatch, qtbot):
    start(tab, studio)
    monkeypatch.setattr(QInputDialog, "getInt", lambda *_arguments: (3000, True))
    cards = find(tab, "memory.card", QComboBox)
    cards.setFocus()
    qtbot.keyClick(cards, Qt.Key.Key_End)
    qtbot.waitUntil(lambda: tab.model.chosen.address == "model:3000")
    assert "3000 MiB" in cards.currentText()


def test_it_is_painted_again_in_the_other_theme(tab, studio, settings, qtbot):
    start(tab, studio)
    bar = find(tab, "memory.tank", TankBar)
    qtbot.waitUntil(lambda: bar.tank is not None and len(bar.tank.parts) == 5)
    light = bar.grab().toImage().pixelColor(bar.width() - 10, 16)
    settings.change(theme="dark")
    dark = bar.grab().toImage().pixelColor(bar.width() - 10, 16)
    assert light.lightness() > 200
    assert dark.lightness() < 60
    settings.change(theme="light")
