"""Choosing a card in two ways."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import (
    QComboBox,
    QLabel,
    QPushButton,
)

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.placement_messages import PlaceModel, PlaceTensors, UseDevice
from gpu_studio.model.pages import CHOOSE, PLACE, SWITCHER
from gpu_studio.ui.status import StatusLine
from tests.driving.window import click, find, text
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import gt_1030
from tests.fakes.scripted_engine import Pause
from tests.ui.switcher import answers
from tests.ui.switcher.answers import FIRST, MODELS, SECOND, radio

EVIL = "<b>bold</b> & co"


def test_before_the_engine_is_there_the_tab_says_so(unstarted, engines, studio, qtbot):
    assert "engine" in text(unstarted, "switcher.why")
    engines.scripts[DescribeEngine] = [Pause(), described_with_cuda(models=MODELS)]
    studio.start()
    qtbot.waitUntil(lambda: "engine" in text(unstarted, "switcher.why"))
    for name in ("switcher.activate", "switcher.visible_only", "switcher.move", "switcher.model"):
        assert not find(unstarted, name).isEnabled(), name
    qtbot.waitUntil(engines.latest.paused.is_set)
    engines.latest.go()
    qtbot.waitUntil(find(unstarted, "switcher.move").isEnabled)
    assert find(unstarted, "switcher.activate").isEnabled()
    assert find(unstarted, "switcher.why").isHidden()


def test_a_card_is_chosen_with_the_mouse_anywhere_on_it(tab, qtbot):
    qtbot.mouseClick(find(tab, f"switcher.card.{SECOND}"), Qt.MouseButton.LeftButton)
    assert radio(tab, SECOND).isChecked()
    assert not radio(tab, FIRST).isChecked()
    assert find(tab, f"switcher.card.{SECOND}").property("selected") is True
    assert find(tab, "switcher.move", QPushButton).text().endswith("cuda:1")


def test_a_card_is_chosen_with_the_keyboard(tab, qtbot):
    first = radio(tab, FIRST)
    assert first.isChecked()
    first.setFocus()

    def top_of(uuid: str) -> int:
        return radio(tab, uuid).mapTo(tab, QPoint()).y()

    # Qt goes to the button that lies below, so both must have their places.
    qtbot.waitUntil(lambda: top_of(FIRST) < top_of(SECOND))
    qtbot.keyClick(first, Qt.Key.Key_Down)
    assert radio(tab, SECOND).isChecked()
    assert find(tab, "switcher.move", QPushButton).text().endswith("cuda:1")


def test_choosing_a_device_writes_the_lines_that_name_it(placing, studio, qtbot):
    targets = find(placing, "switcher.target", QComboBox)
    targets.setFocus()
    qtbot.keyClick(targets, Qt.Key.Key_End)
    order = 'import os\n\nos.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"\n\nimport torch\n'
    studio.snippets.turn_to(SWITCHER)
    assert studio.snippets.snippet.startswith(order)
    assert 'torch.device("cuda:1")' in studio.snippets.snippet
    placing.pages.go_to(CHOOSE)
    radio(placing, "cpu").click()
    assert studio.snippets.snippet.startswith("import torch\n")
    assert 'torch.device("cpu")' in studio.snippets.snippet


def test_use_this_card(tab, engines, qtbot):
    radio(tab, SECOND).click()
    click(tab, "switcher.activate")
    qtbot.waitUntil(lambda: "RTX 3060" in text(tab, "switcher.said"))
    assert engines.requests[-1] == UseDevice(device="cuda:1")
    qtbot.waitUntil(lambda: "current" in radio(tab, SECOND).accessibleDescription())
    assert find(tab, "switcher.said_card").property("tone") == "good"


def test_what_is_lost_is_reported_before_one_card_is_shown_and_there_is_a_way_back(
    tab, engines, qtbot
):
    assert "lose" in text(tab, "switcher.explained")
    assert find(tab, "switcher.show_all").isHidden()
    radio(tab, SECOND).click()
    click(tab, "switcher.visible_only")
    assert engines.latest.environment.visible_devices == SECOND
    qtbot.waitUntil(lambda: radio(tab, FIRST).text() == "hidden")
    assert radio(tab, SECOND).text() == "cuda:0"
    qtbot.waitUntil(find(tab, "switcher.show_all").isEnabled)
    assert not find(tab, "switcher.visible_only").isEnabled()
    click(tab, "switcher.show_all")
    qtbot.waitUntil(lambda: radio(tab, SECOND).text() == "cuda:1")
    assert radio(tab, FIRST).text() == "cuda:0"
    assert find(tab, "switcher.show_all").isHidden()


def test_a_slow_start_is_reported_on_the_button_that_was_pressed(tab, engines, studio, qtbot):
    status = StatusLine(studio)
    qtbot.addWidget(status)
    radio(tab, SECOND).click()
    idle, ready = find(tab, "switcher.visible_only", QPushButton).text(), status.text()
    described = engines.scripts[DescribeEngine]
    engines.scripts[DescribeEngine] = lambda engine, request: [Pause(), *described(engine, request)]
    for name in ("switcher.visible_only", "switcher.show_all"):
        pressed = find(tab, name, QPushButton)
        before = pressed.text()
        click(tab, name)
        qtbot.waitUntil(lambda: engines.latest.paused.is_set())
        assert pressed.isVisible()
        assert not pressed.isEnabled()
        assert pressed.text() not in (before, "")
        assert pressed.text().endswith("…")
        assert pressed.accessibleName() == pressed.text()
        assert "PyTorch" in status.text().split("·")[0]
        assert status.text() != ready
        engines.latest.go()
        qtbot.waitUntil(lambda: studio.session.is_free and not tab.choice.pending)
        assert pressed.text() == before
    assert find(tab, "switcher.visible_only", QPushButton).text() == idle


def test_a_slow_answer_is_reported_on_the_button_that_was_pressed(placing, engines, qtbot):
    held = {
        "switcher.activate": (UseDevice, answers.use),
        "switcher.move": (PlaceModel, answers.place_model),
        "switcher.tensors.place": (PlaceTensors, answers.place_tensors),
    }
    for name, (kind, answer) in held.items():
        placing.pages.go_to(CHOOSE if name == "switcher.activate" else PLACE)
        engines.scripts[kind] = partial(hold, answer)
        pressed = find(placing, name, QPushButton)
        qtbot.waitUntil(pressed.isEnabled)
        before = pressed.text()
        engines.latest.paused.clear()
        click(placing, name)
        qtbot.waitUntil(engines.latest.paused.is_set)
        assert not pressed.isEnabled()
        assert pressed.text().endswith("…"), name
        engines.latest.go()
        qtbot.waitUntil(lambda pressed=pressed, before=before: pressed.text() == before)


def hold(answer, engine, request):
    return [Pause(), *answer(engine, request)]


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_name_from_outside_is_plain_text(unstarted, sensor_source, studio, qtbot):

    inventory = gt_1030()
    evil = msgspec.structs.replace(inventory.cards[0], name=EVIL)
    sensor_source._events[0] = msgspec.structs.replace(inventory, devices=(inventory.cpu, evil))
    studio.start()
    qtbot.waitUntil(lambda: studio.sensors.inventory is not None)
    card = find(unstarted, f"switcher.card.{FIRST}")
    names = [label for label in card.findChildren(QLabel) if label.text() == EVIL]
    assert len(names) == 1
    assert names[0].textFormat() is Qt.TextFormat.PlainText
