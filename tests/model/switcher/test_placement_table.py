"""The table of placed tensors, cell by cell."""

from __future__ import annotations

from PySide6.QtCore import Qt

from gpu_studio.model.switcher.placement_table import (
    AFTER,
    BEFORE,
    BYTES,
    DEVICE_ROLE,
    HEADINGS,
    NAME,
    SHAPE,
    PlacementTable,
)
from tests.fakes.switching_answers import place_row


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


def test_a_table_that_was_cleared_begins_again(qapp):
    table = PlacementTable()
    for name in ("a", "b"):
        table.append(place_row(name, (2,)))
    table.clear()
    assert table.rowCount() == 0
    table.append(place_row("c", (2,), device_after="cuda:1"))
    assert table.data(table.index(0, NAME)) == "c"
    assert table.data(table.index(0, AFTER), DEVICE_ROLE) == "cuda:1"


def test_a_view_is_told_of_every_row(qapp, qtbot):
    table = PlacementTable()
    with qtbot.waitSignal(table.rowsInserted) as added:
        table.append(place_row("w", (2,)))
    assert added.args[1:] == [0, 0]
    with qtbot.waitSignal(table.modelReset):
        table.clear()
