"""Moving a model: every tensor's place, and the proof."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.placement_messages import PlaceModel
from gpu_studio.core.notice import Tone
from gpu_studio.model.switcher.device_choice import DeviceChoice
from gpu_studio.model.switcher.placement_model import (
    AFTER,
    BEFORE,
    BYTES,
    DEVICE_ROLE,
    HEADINGS,
    NAME,
    SHAPE,
    PlacementModel,
    PlacementTable,
)
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import rtx_3060_card
from tests.fakes.scripted_engine import Pause
from tests.fakes.switching_answers import place_finished, place_row

SECOND = rtx_3060_card().uuid


def idle(qtbot, model):
    qtbot.waitUntil(lambda: model.parent().session.state.is_idle)


def cell(model, row, column, role=Qt.ItemDataRole.DisplayRole):
    return model.table.data(model.table.index(row, column), role)


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


def plain(text):
    return text.replace("\u202f", " ")


def test_the_table_writes_numbers_to_the_right_and_names_its_devices(qapp):
    table = PlacementTable()
    table.append(place_row("conv.weight", (32, 3, 3, 3)))
    table.append(place_row("count", (), dtype="int64", bytes=8, kind="buffer"))
    heads = [table.headerData(i, Qt.Orientation.Horizontal) for i in range(table.columnCount())]
    assert tuple(heads) == HEADINGS
    assert table.data(table.index(0, SHAPE)) == "32 × 3 × 3 × 3"
    assert table.data(table.index(1, SHAPE)) == "scalar"
    assert plain(table.data(table.index(0, BYTES))) == "3,456"
    right = Qt.AlignmentFlag.AlignRight
    for at in (
        table.data(table.index(0, BYTES), Qt.ItemDataRole.TextAlignmentRole),
        table.headerData(BYTES, Qt.Orientation.Horizontal, Qt.ItemDataRole.TextAlignmentRole),
    ):
        assert at & right
    assert table.data(table.index(0, BEFORE), DEVICE_ROLE) == "cpu"
    assert table.data(table.index(0, AFTER), DEVICE_ROLE) == "cuda:0"
    assert table.data(table.index(0, NAME), DEVICE_ROLE) is None
    assert "not learned" in table.data(table.index(1, NAME), Qt.ItemDataRole.ToolTipRole)
    table.append(place_row("<img>", (1,)))  # a name in somebody's file
    assert "&lt;img&gt;" in table.data(table.index(2, NAME), Qt.ItemDataRole.ToolTipRole)


def test_the_tool_tip_says_what_is_learned_and_nothing_of_a_files_tensor(qapp):
    table = PlacementTable()
    for kind in ("parameter", "buffer", "tensor"):
        table.append(place_row("w", (2,), kind=kind))
    tips = [table.data(table.index(row, NAME), Qt.ItemDataRole.ToolTipRole) for row in range(3)]
    assert tips == [
        "w: parameter (learned in training), float32", "w: buffer (kept, but not learned), float32",
        "w: tensor, float32",
    ]  # fmt: skip


def test_a_view_is_told_of_every_row(qapp, qtbot):
    table = PlacementTable()
    with qtbot.waitSignal(table.rowsInserted) as added:
        table.append(place_row("w", (2,)))
    assert added.args[1:] == [0, 0]
    with qtbot.waitSignal(table.modelReset):
        table.clear()
