"""The segment map.

Snapshots from files.
"""

from __future__ import annotations

import pickle
from itertools import cycle

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QPushButton, QScrollArea

from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.messages.memory_messages import ReadSegments
from gpu_studio.model.pages import SEGMENTS
from gpu_studio.ui.memory.segment_map import SegmentMapView
from gpu_studio.ui.memory.segment_page import SegmentPage
from tests.driving.memory import MIB, every_control_is_named, shown, start
from tests.driving.window import click, find, numbers, text
from tests.fakes.memory_answers import (
    memory_read,
    segments_read,
)
from tests.fakes.pc import cpu_only


@pytest.fixture
def with_segments(scripts):
    scripts[ReadSegments] = lambda _engine, request: [
        segments_read(memory_read(request.device, allocated=15, reserved=20))
    ]


def test_the_segments_are_read_while_they_are_shown(tab, with_segments, engines, studio, qtbot):
    start(tab, studio, SEGMENTS)
    view = find(tab, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: view.blocks is not None)
    assert text(tab, "memory.largest").startswith("5 MiB")
    assert all(fact in text(tab, "memory.fragmentation") for fact in ("20 MiB", "75 %"))
    described = view.accessibleDescription().replace("\u202f", " ")
    assert all(fact in described for fact in ("1 segment", "3 blocks", "15 MiB"))
    asked = sum(isinstance(request, ReadSegments) for request in engines.requests)
    qtbot.waitUntil(
        lambda: sum(isinstance(one, ReadSegments) for one in engines.requests) >= asked + 3
    )


def test_the_map_is_walked_with_the_keyboard_and_reports_each_block(
    tab, with_segments, studio, qtbot
):
    def is_told(block):
        return numbers(text(tab, "memory.block"))[:2] == [str(block), "3"]

    start(tab, studio, SEGMENTS)
    view = find(tab, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: view.blocks is not None)
    view.setFocus()
    qtbot.waitUntil(lambda: is_told(1))
    assert "10 MiB" in text(tab, "memory.block")
    qtbot.keyClick(view, Qt.Key.Key_End)
    facts = ("free", "5 MiB", "5242880 bytes", "15 MiB", "20 MiB")
    assert all(fact in text(tab, "memory.block") for fact in facts)
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert is_told(2)
    middle = view.place_of(0).center().toPoint()
    places = cycle((middle, middle + QPoint(1, 0)))

    def is_told_when_pointed_at():
        qtbot.mouseMove(view, next(places))
        return is_told(1)

    qtbot.waitUntil(is_told_when_pointed_at)


def test_what_is_free_beyond_a_budget_is_no_fragmentation(tab, scripts, studio, qtbot):
    """20 MiB are free, and 7 within the budget: 5 of those 7 come in one piece."""
    scripts[ReadSegments] = lambda _engine, request: [
        segments_read(memory_read(request.device, allocated=15, reserved=20, limit_bytes=22 * MIB))
    ]
    start(tab, studio, SEGMENTS)
    qtbot.waitUntil(lambda: "29 %" in text(tab, "memory.fragmentation"))
    assert "7 MiB" in text(tab, "memory.fragmentation")


def test_without_segments_the_map_says_where_they_come_from(tab, scripts, studio, qtbot):
    scripts[ReadSegments] = lambda _engine, request: [
        segments_read(
            memory_read(request.device), addresses=(), sizes=(), is_small=(), is_expandable=(),
            block_counts=(), block_sizes=(), block_states="", largest_block_bytes=1658 * MIB,
            free_total_bytes=1658 * MIB,
        )
    ]  # fmt: skip
    start(tab, studio, SEGMENTS)
    view = find(tab, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: view.blocks is not None)
    assert len(view.blocks) == 0
    described = view.accessibleDescription()
    assert numbers(described) == []
    assert "Break it" in described


def test_the_keyboard_scrolls_through_many_segments(tab, scripts, studio, qtbot):
    count = 60
    scripts[ReadSegments] = lambda _engine, request: [
        segments_read(
            memory_read(request.device, allocated=0, reserved=2 * count),
            addresses=tuple(number * 2 * MIB for number in range(count)),
            sizes=(2 * MIB,) * count, is_small=(True,) * count, is_expandable=(False,) * count,
            block_counts=(1,) * count, block_sizes=(2 * MIB,) * count, block_states="2" * count,
        )
    ]  # fmt: skip
    start(tab, studio, SEGMENTS)
    view = find(tab, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: view.blocks is not None and len(view.blocks) == count)
    bar = find(tab, "memory.segments_area", QScrollArea).verticalScrollBar()
    view.setFocus()
    qtbot.waitUntil(lambda: bool(text(tab, "memory.block")))
    for key, is_above in ((Qt.Key.Key_PageDown, False), (Qt.Key.Key_PageDown, True)):
        qtbot.keyClick(view, key)
        assert (bar.value() > 0) is is_above
    assert "at 0x0" not in text(tab, "memory.block")
    for _ in range(count):
        qtbot.keyClick(view, Qt.Key.Key_Up)
    assert bar.value() == 0
    assert "at 0x0." in text(tab, "memory.block")


@pytest.fixture
def inventory():
    return cpu_only()


@pytest.fixture
def segments(memory, theme, qtbot):
    return shown(qtbot, SegmentPage(memory, theme))


def test_a_snapshot_from_a_file_is_drawn_and_put_away_again(segments, tmp_path, qtbot):
    model = AllocatorModel(2 << 30)
    listed = [model.allocate(3 * MIB) for _ in range(8)]
    model.free(listed[3])
    path = tmp_path / "theirs.pickle"
    path.write_bytes(pickle.dumps(model.snapshot()))
    segments.open_snapshot(path)
    opens = find(segments, "memory.snapshot.open", QPushButton)
    assert (opens.text(), opens.isEnabled()) == ("Reading…", False)  # a large one takes seconds
    view = find(segments, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: view.blocks is not None and len(view.blocks) == 2)
    qtbot.waitUntil(opens.isEnabled)
    assert "Open" in opens.text()
    assert text(segments, "memory.largest") == "theirs.pickle"
    assert all(fact in text(segments, "memory.fragmentation") for fact in ("21 MiB", "40 MiB"))
    click(segments, "memory.snapshot.close")
    assert view.blocks is None
    assert find(segments, "memory.snapshot.close").isHidden()


class Hostile:
    """Would run something if it were loaded."""

    def __reduce__(self):
        return (print, ("run",))


@pytest.mark.parametrize(
    "content", [pickle.dumps(Hostile()), b"", b"not a pickle", pickle.dumps({"segments": [1]})]
)
def test_anything_else_is_refused_with_the_reason(segments, tmp_path, qtbot, capsys, content):
    path = tmp_path / "theirs.pickle"
    path.write_bytes(content)
    segments.open_snapshot(path)
    qtbot.waitUntil(lambda: "theirs.pickle" in text(segments, "memory.snapshot.outcome"))
    assert find(segments, "memory.snapshot.outcome").isVisible()
    assert find(segments, "memory.segments", SegmentMapView).blocks is None
    assert capsys.readouterr().out == ""


def test_every_control_has_a_name_to_be_read_aloud(segments):
    every_control_is_named(segments)
