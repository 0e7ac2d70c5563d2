"""Placing tensors, a model and a file, as a person does it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QPushButton,
    QTableView,
)

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.messages.placement_messages import InspectFile, PlaceModel, PlaceTensors
from gpu_studio.model.pages import PLACE
from gpu_studio.model.switcher.placement_model import AFTER, KIND, TYPE
from gpu_studio.ui.switcher.place_page import PlacePage
from tests.driving.window import click, find, text
from tests.fakes.descriptions import described
from tests.fakes.pc import cpu_only
from tests.ui.switcher.answers import MODELS, SECOND, free, radio


def test_a_model_is_moved_and_proved(placing, engines, qtbot):
    table = find(placing, "switcher.placement", QTableView)
    assert not table.isVisible()
    assert find(placing, "switcher.move", QPushButton).text() in text(placing, "switcher.hint")
    models = find(placing, "switcher.model", QComboBox)
    models.setFocus()
    qtbot.keyClick(models, Qt.Key.Key_Down)
    assert text(placing, "switcher.about_model") == MODELS[1].sentence
    targets = find(placing, "switcher.target", QComboBox)
    qtbot.keyClick(targets, Qt.Key.Key_End)
    assert radio(placing, SECOND).isChecked()  # the Choose page follows
    find(placing, "switcher.dtype", QComboBox).setCurrentText("float16")
    click(placing, "switcher.move")
    qtbot.waitUntil(lambda: "same output" in text(placing, "switcher.proof"))
    asked = PlaceModel(model="convnet", device="cuda:1", dtype="float16")
    assert engines.requests[-1] == asked
    assert table.isVisible()
    assert table.model().index(1, AFTER).data() == "cuda:1"
    assert find(placing, "switcher.proof_card").property("tone") == "good"
    qtbot.keyClick(models, Qt.Key.Key_Up)
    assert not table.isVisible()
    assert find(placing, "switcher.proof_card").isHidden()


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_without_a_card_the_same_table_has_the_cpu_as_its_target_and_says_why(tab, qtbot):
    assert "CPU" in text(tab, "switcher.why")
    assert described().cuda_reason in text(tab, "switcher.why")
    assert not find(tab, "switcher.activate").isEnabled()
    assert not find(tab, "switcher.visible_only").isEnabled()
    tab.pages.go_to(PLACE)
    assert radio(tab, "cpu").isChecked()
    click(tab, "switcher.move")
    table = find(tab, "switcher.placement", QTableView)
    qtbot.waitUntil(lambda: table.model().rowCount() == 2)
    assert table.model().index(0, AFTER).data() == "cpu"


def test_devices_in_the_table_take_their_own_ink(placing, theme, qtbot):
    from PySide6.QtGui import QPalette
    from PySide6.QtWidgets import QStyleOptionViewItem

    radio(placing, SECOND).click()
    click(placing, "switcher.move")
    table = find(placing, "switcher.placement", QTableView)
    qtbot.waitUntil(lambda: table.model().rowCount() == 2)
    inks = []
    for column in range(AFTER + 1):
        option = QStyleOptionViewItem()
        table.itemDelegate().initStyleOption(option, table.model().index(0, column))
        inks.append(option.palette.color(QPalette.ColorRole.Text).name().upper())
    assert inks[-2:] == [theme.colour("cpu_ink"), theme.colour("gpu1_ink")]
    assert inks[0] not in inks[-2:]


def test_a_narrow_tab_keeps_the_devices_in_sight(placing, qtbot):
    table = find(placing, "switcher.placement", QTableView)
    click(placing, "switcher.move")
    qtbot.waitUntil(table.isVisible)
    assert not table.isColumnHidden(KIND)
    placing.resize(770, 520)
    assert table.isColumnHidden(KIND)
    assert table.isColumnHidden(TYPE)
    qtbot.waitUntil(lambda: table.horizontalScrollBar().maximum() == 0)
    assert placing.minimumSizeHint().width() <= 770
    placing.resize(1400, 900)
    assert not table.isColumnHidden(TYPE)


def test_the_three_steps_stand_side_by_side(placing):
    cards = [find(placing, f"switcher.{name}_card") for name in ("identify", "tensors", "move")]
    assert len({card.y() for card in cards}) == 1
    assert [card.x() for card in cards] == sorted(card.x() for card in cards)
    widths = [card.width() for card in cards]
    assert max(widths) - min(widths) <= 1


@pytest.mark.parametrize("width", [770, 1400])
def test_no_choice_is_cut_off(placing, qtbot, width):
    models = find(placing, "switcher.model", QComboBox)
    dtypes = find(placing, "switcher.dtype", QComboBox)
    placing.resize(width, 560)
    is_below = width == 770
    qtbot.waitUntil(lambda: (models.geometry().bottom() < dtypes.y()) is is_below)
    sizes = find(placing, "switcher.tensors.size", QComboBox)
    for box in (models, sizes, find(placing, "switcher.tensors.dtype", QComboBox)):
        room = box.width() - 40  # the arrow and what the style sheet keeps free
        assert box.fontMetrics().horizontalAdvance(box.currentText()) <= room, box.objectName()


def test_tensors_are_placed_on_the_chosen_device(placing, engines, studio, qtbot):
    targets = find(placing, "switcher.target", QComboBox)
    targets.setCurrentIndex(2)
    targets.activated.emit(2)
    find(placing, "switcher.tensors.size", QComboBox).setCurrentIndex(0)
    click(placing, "switcher.tensors.place")
    qtbot.waitUntil(lambda: "product" in text(placing, "switcher.proof"))
    assert "cuda:1" in text(placing, "switcher.proof")
    assert engines.requests[-1] == PlaceTensors(device="cuda:1", size=256, dtype="float32")
    assert find(placing, "switcher.placement", QTableView).model().rowCount() == 1
    click(placing, "switcher.move")
    qtbot.waitUntil(lambda: "same output" in text(placing, "switcher.proof"))
    assert "product" not in text(placing, "switcher.proof")
    assert find(placing, "switcher.placement", QTableView).model().rowCount() == 2


def test_a_file_is_inspected_before_it_can_be_moved(placing, engines, studio, qtbot):
    page = placing.findChild(PlacePage)
    page.open_path("")  # no file was chosen
    page.open_path("/home/me/mine.pt")
    qtbot.waitUntil(lambda: "weights_only" in text(placing, "switcher.about_model"))
    about = text(placing, "switcher.about_model")
    assert all(fact in about for fact in ("2 KiB", "2 tensors", "1 KiB"))
    models = find(placing, "switcher.model", QComboBox)
    assert models.currentText() == "mine.pt"
    assert not any(isinstance(request, PlaceModel) for request in engines.requests)
    click(placing, "switcher.move")
    free(qtbot, studio)
    assert "file" in text(placing, "switcher.proof")
    assert engines.requests[-1] == PlaceModel(path="/home/me/mine.pt", device="cuda:0")


def test_a_refused_file_says_why_and_the_model_stays(placing, engines, studio, qtbot):
    failure = Failure(FailureKind.FILE_REFUSED, "“evil.pt” has code in it.")
    engines.scripts[InspectFile] = [RequestFailed(failure=failure)]
    placing.findChild(PlacePage).open_path("evil.pt")
    qtbot.waitUntil(lambda: text(placing, "switcher.about_model") == failure.message)
    assert find(placing, "switcher.about_model").property("tone") == "failure"
    models = find(placing, "switcher.model", QComboBox)
    assert models.currentText() == "Linear(10, 10)"
    models.activated.emit(0)
    assert text(placing, "switcher.about_model") == "One layer."
