"""Moving a model: every tensor's place, and the proof."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.placement_messages import PlaceModel
from gpu_studio.core.notice import Tone
from gpu_studio.model.switcher.device_choice import DeviceChoice
from gpu_studio.model.switcher.placement_model import PlacementModel
from gpu_studio.model.switcher.placement_table import (
    AFTER,
    BEFORE,
    NAME,
)
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import cpu_only, rtx_3060_card
from tests.fakes.scripted_engine import Pause
from tests.fakes.switching_answers import place_finished, place_row

SECOND = rtx_3060_card().uuid


def idle(qtbot, model):
    qtbot.waitUntil(lambda: model.parent().session.state.is_idle)


def cell(model, row, column, role=Qt.ItemDataRole.DisplayRole):
    return model.table.data(model.table.index(row, column), role)


def test_a_moved_model_is_a_table_with_its_proof(model, choice, engines, qtbot):
    choice.choose(SECOND)
    model.move("linear_10")
    assert model.is_moving
    assert not model.can_place
    qtbot.waitUntil(lambda: not model.is_moving)
    assert engines.requests[-1] == PlaceModel(model="linear_10", device="cuda:1")
    assert model.table.rowCount() == 2
    assert [cell(model, 0, column) for column in (NAME, BEFORE, AFTER)] == [
        "weight", "cpu", "cuda:1",
    ]  # fmt: skip
    assert model.notice.tone == Tone.GOOD
    assert "same input, same output" in model.notice.sentence


def test_another_move_replaces_the_table(model, qtbot):
    for _ in range(2):
        model.move("linear_10")
        qtbot.waitUntil(lambda: not model.is_moving)
        idle(qtbot, model)
    assert model.table.rowCount() == 2


def test_a_different_output_is_a_failure(model, scripts, qtbot):
    scripts[PlaceModel] = [place_finished(same_output=False, largest_difference=0.5)]
    model.move("linear_10")
    qtbot.waitUntil(lambda: not model.is_moving)
    assert model.notice.tone == Tone.FAILURE


@pytest.mark.parametrize(
    ("ending", "sentence"),
    [
        (
            RequestFailed(failure=Failure(FailureKind.NO_KERNEL, "No code for this card.")),
            "No code for this card. The Devices tab names the build",
        ),
        (EngineEnded(exit_code=-11), "signal 11"),
    ],
)
def test_a_move_that_fails_in_the_middle_keeps_its_rows(model, scripts, qtbot, ending, sentence):
    scripts[PlaceModel] = [place_row(), ending]
    model.move("linear_10")
    qtbot.waitUntil(lambda: not model.is_moving)
    assert sentence in model.notice.sentence
    assert model.notice.tone == Tone.FAILURE
    assert model.table.rowCount() == 1
    idle(qtbot, model)
    assert model.can_place


def test_a_fresh_engine_says_that_the_model_ended_with_the_old_one(model, qtbot):
    model.move("linear_10")
    qtbot.waitUntil(lambda: not model.is_moving)
    idle(qtbot, model)
    model.parent().session.restart()
    qtbot.waitUntil(lambda: "engine has ended" in model.notice.sentence)
    assert model.table.rowCount() == 2, "the result stays"
    assert model.notice.sentence.startswith("84")


def test_another_model_begins_with_an_empty_table(model, qtbot):
    model.move("linear_10")
    qtbot.waitUntil(lambda: not model.is_moving)
    model.forget()
    assert model.table.rowCount() == 0
    assert model.notice.sentence == ""


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_without_a_card_the_cpu_is_the_target(model, choice, engines, qtbot):
    assert [row.number for row in choice.rows] == ["cpu"]
    model.move("linear_10")
    qtbot.waitUntil(lambda: not model.is_moving)
    assert engines.requests[-1].device == "cpu"


def test_before_the_engine_is_there_nothing_can_be_done(scripts, studio, qtbot):
    scripts[DescribeEngine] = [Pause(), described_with_cuda()]
    choice = DeviceChoice(studio, studio)
    model = PlacementModel(studio, choice, studio)
    assert choice.rows == ()
    assert choice.chosen is None
    studio.start()
    qtbot.waitUntil(lambda: len(choice.rows) == 3)
    assert not choice.can_use
    assert not model.can_place
    assert not choice.can_show_only
    assert model.models == ()
