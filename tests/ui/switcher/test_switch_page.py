"""Switching to a device and moving to it, as a person does it."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QPalette
from PySide6.QtWidgets import QComboBox, QLabel, QPushButton, QStyleOptionViewItem, QTableView

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.placement_messages import PlaceModel, UseDevice
from tests.driving.pages import settle
from tests.driving.window import click, find, places, text
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import gt_1030, gt_1030_card, reading, rtx_3060_card
from tests.fakes.scripted_engine import Pause
from tests.fakes.switching_answers import MODELS, place_finished, place_model, place_row, use_device

FIRST, SECOND = gt_1030_card().uuid, rtx_3060_card().uuid
EVIL = "<b>bold</b> & co"


def button(identity):
    return f"switcher.activate.{identity}"


def test_before_pytorch_is_there_the_tab_says_so(unstarted, engines, studio, qtbot):
    assert "PyTorch" in text(unstarted, "switcher.why")
    engines.scripts[DescribeEngine] = [Pause(), described_with_cuda(models=MODELS, device_count=2)]
    studio.start()
    qtbot.waitUntil(lambda: unstarted.findChild(QPushButton, button(SECOND)) is not None)
    for name in (button(SECOND), "switcher.move", "switcher.model"):
        assert not find(unstarted, name).isEnabled(), name
    qtbot.waitUntil(engines.latest.paused.is_set)
    engines.latest.go()
    qtbot.waitUntil(find(unstarted, "switcher.move").isEnabled)
    assert find(unstarted, button(SECOND)).isEnabled()


def test_a_card_of_12_gib_stands_whole_in_a_window_of_900_by_520(
    tab, sensor_source, inventory, qtbot
):
    tab.resize(900, 450)
    sensor_source.send(reading(inventory, 1.0))
    facts = find(tab, f"switcher.facts.{SECOND}", QLabel)
    qtbot.waitUntil(lambda: "of 12" in facts.text())
    settle()
    assert facts.height() < 2 * facts.fontMetrics().lineSpacing()
    here = places(tab)
    assert here[button(SECOND)].y() == here[f"switcher.visible_only.{SECOND}"].y()


def test_a_device_that_is_used_has_a_mark_and_no_button_and_nothing_moves(tab, studio, qtbot):
    assert find(tab, f"switcher.mark.{FIRST}").isVisible()
    assert find(tab, button(FIRST)).isHidden()
    stays = [button("cpu"), f"switcher.visible_only.{SECOND}", "switcher.model", "switcher.move"]
    settle()  # the layout of the first paint may still be on its way
    before = places(tab)
    click(tab, button(SECOND))
    qtbot.waitUntil(lambda: "same output" in find(tab, "switcher.proof", QLabel).text())
    qtbot.waitUntil(lambda: studio.session.is_free)
    assert "RTX 3060" in text(tab, "switcher.said")
    assert find(tab, "switcher.result_card").property("tone") == "good"
    assert find(tab, f"switcher.card.{SECOND}").property("tone") == "good"
    assert find(tab, f"switcher.mark.{SECOND}").isVisible()
    assert find(tab, f"switcher.mark.{FIRST}").isHidden()
    assert find(tab, button(FIRST)).isVisible()
    after = places(tab)
    assert [after[name].y() for name in stays] == [before[name].y() for name in stays]


def test_a_slow_answer_is_told_on_the_button_that_was_pressed(tab, engines, qtbot):
    for name, kind, answer in (
        (button(SECOND), UseDevice, use_device), ("switcher.move", PlaceModel, place_model),
    ):  # fmt: skip
        pressed = find(tab, name, QPushButton)
        qtbot.waitUntil(pressed.isEnabled)
        engines.scripts[kind] = partial(hold, answer)
        engines.latest.paused.clear()
        click(tab, name)
        qtbot.waitUntil(engines.latest.paused.is_set)
        assert pressed.isVisible()
        assert not pressed.isEnabled()
        assert pressed.text().endswith("…"), name
        engines.scripts[kind] = answer
        engines.latest.go()
        qtbot.waitUntil(find(tab, "switcher.move").isEnabled)
    assert find(tab, "switcher.move", QPushButton).text() == "Move to cuda:1"


def hold(answer, engine, request):
    return [Pause(), *answer(engine, request)]


def test_a_model_is_chosen_with_the_keyboard_moved_and_its_devices_have_their_colors(
    tab, engines, theme, qtbot
):
    view = find(tab, "switcher.placement", QTableView)
    assert not view.isVisible()
    assert find(tab, "switcher.move", QPushButton).text() in text(tab, "switcher.why")
    models = find(tab, "switcher.model", QComboBox)
    models.setFocus()
    qtbot.keyClick(models, Qt.Key.Key_Down)
    assert text(tab, "switcher.about_model") == MODELS[1].sentence
    find(tab, "switcher.dtype", QComboBox).setCurrentText("float16")
    click(tab, "switcher.move")
    qtbot.waitUntil(lambda: "same output" in find(tab, "switcher.proof", QLabel).text())
    assert engines.requests[-1] == PlaceModel(model="convnet", device="cuda:0", dtype="float16")
    assert view.isVisible()
    inks = []
    for column in (0, 4, 5):
        option = QStyleOptionViewItem()
        view.itemDelegate().initStyleOption(option, view.model().index(0, column))
        inks.append(option.palette.color(QPalette.ColorRole.Text).name().upper())
    assert inks[1:] == [theme.colour("cpu_ink"), theme.colour("gpu0_ink")]
    assert inks[0] not in inks[1:]


def test_the_table_has_its_numbers_at_the_right_and_a_name_from_a_file_is_no_html(
    tab, engines, qtbot
):
    engines.scripts[PlaceModel] = [place_row("<img>"), place_finished()]
    click(tab, "switcher.move")
    view = find(tab, "switcher.placement", QTableView)
    qtbot.waitUntil(view.isVisible)
    name, size = (view.model().index(0, at) for at in (0, 3))
    assert size.data(Qt.ItemDataRole.TextAlignmentRole) & Qt.AlignmentFlag.AlignRight
    assert not name.data(Qt.ItemDataRole.TextAlignmentRole) & Qt.AlignmentFlag.AlignRight
    assert "&lt;img&gt;: parameter" in name.data(Qt.ItemDataRole.ToolTipRole)


def test_the_devices_stand_side_by_side_above_a_narrow_page(tab, qtbot):
    cards = [find(tab, f"switcher.card.{identity}") for identity in (FIRST, SECOND, "cpu")]
    qtbot.waitUntil(lambda: len({card.y() for card in cards}) == 1)
    tab.resize(1400, 800)
    qtbot.waitUntil(lambda: len({card.x() for card in cards}) == 1)


def test_the_code_of_the_device_is_copied(tab, qtbot):
    click(tab, "switcher.copy")
    assert 'torch.device("cuda:0")' in QGuiApplication.clipboard().text()


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
