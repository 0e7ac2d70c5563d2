"""The segment map.

Snapshots from files.
"""

import pickle
from itertools import cycle, pairwise

import msgspec
import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QPushButton, QScrollArea, QToolTip

from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.memory.tank import Tank, TankPart
from gpu_studio.core.messages.memory_messages import ReadSegments, RunMemoryExperiment
from gpu_studio.model.pages import SEGMENTS
from gpu_studio.ui.memory.segment_map import SegmentMapView
from gpu_studio.ui.memory.segment_page import SegmentPage
from gpu_studio.ui.memory.tank import TankBar
from tests.driving.memory import MIB, run, start
from tests.driving.window import click, find, numbers, plain, sees, text
from tests.fakes.memory_answers import (
    memory_read,
    oom_finished,
    segments_read,
)


@pytest.fixture
def with_segments(scripts):
    scripts[ReadSegments] = lambda _engine, request: [
        segments_read(memory_read(request.device, allocated=15, reserved=20))
    ]


def test_the_segments_are_read_while_they_are_shown(tab, with_segments, engines, studio, qtbot):
    start(tab, studio, SEGMENTS)
    view = find(tab, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: view.blocks is not None)
    assert text(tab, "memory.segment_map.largest") == "Largest hole: 5 MiB"
    meaning = text(tab, "memory.segment_map.meaning")
    assert numbers(meaning) == ["5", "20"]
    assert "too small" in meaning
    described = view.accessibleDescription().replace("\u202f", " ")
    assert described == "1 segment, 3 blocks"
    asked = sum(isinstance(request, ReadSegments) for request in engines.requests)
    qtbot.waitUntil(
        lambda: sum(isinstance(one, ReadSegments) for one in engines.requests) >= asked + 3
    )


def test_the_map_is_walked_with_the_keyboard_and_reports_each_block(
    tab, with_segments, studio, qtbot
):
    def is_told(block):
        return f"Block {block} of 3" in text(tab, "memory.segment_map.block")

    start(tab, studio, SEGMENTS)
    view = find(tab, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: view.blocks is not None)
    view.setFocus()
    qtbot.waitUntil(lambda: is_told(1))
    assert "10 MiB" in text(tab, "memory.segment_map.block")
    qtbot.keyClick(view, Qt.Key.Key_End)
    facts = ("free", "5 MiB", "15 MiB", "20 MiB")
    assert all(fact in text(tab, "memory.segment_map.block") for fact in facts)
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
    qtbot.waitUntil(lambda: "7 MiB" in text(tab, "memory.segment_map.meaning"))
    assert "within the budget" in text(tab, "memory.segment_map.meaning")


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
    assert "Run an experiment" in described
    assert not sees(tab, "memory.segment_map.meaning"), "the map says it"


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
    qtbot.waitUntil(lambda: bool(text(tab, "memory.segment_map.block")))
    qtbot.keyClick(view, Qt.Key.Key_End)
    assert bar.value() == bar.maximum() > 0
    assert "at 0x0" not in text(tab, "memory.segment_map.block")
    qtbot.keyClick(view, Qt.Key.Key_Home)
    assert bar.value() == 0
    assert "at 0x0." in text(tab, "memory.segment_map.block")


@pytest.fixture
def page(tab, with_segments, studio):
    start(tab, studio, SEGMENTS)
    return tab.findChild(SegmentPage)


def test_a_snapshot_from_a_file_is_drawn_and_put_away_again(tab, page, tmp_path, qtbot):
    model = AllocatorModel(2 << 30)
    listed = [model.allocate(3 * MIB) for _ in range(8)]
    model.free(listed[3])
    snapshot = model.snapshot()
    snapshot["segments"][0]["blocks"][0]["frames"] = [
        {"filename": "/usr/lib/torch/nn/linear.py", "line": 9, "name": "forward"},
        {"filename": "/home/me/train.py", "line": 31, "name": "step"},
    ]
    path = tmp_path / "theirs.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    page.model.open_snapshot(path)
    opens = find(tab, "memory.segment_map.open", QPushButton)
    assert (opens.text(), opens.isEnabled()) == ("Reading…", False)  # a large one takes seconds
    view = find(tab, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: view.blocks is not None and len(view.blocks) == 2)
    qtbot.waitUntil(opens.isEnabled)
    assert text(tab, "memory.segment_map.moment") == "theirs.pickle"
    assert text(tab, "memory.segment_map.sums") == "Reserved 40 MiB, allocated 21 MiB"
    view.setFocus()
    qtbot.waitUntil(lambda: "train.py:31 in step" in text(tab, "memory.segment_map.block"))
    click(tab, "memory.segment_map.now")
    qtbot.waitUntil(lambda: len(view.blocks) == 1)
    assert not sees(tab, "memory.segment_map.now")


def test_after_an_experiment_its_failed_moment_is_shown_until_now_is_wanted(
    tab, with_segments, scripts, studio, qtbot
):
    failed = segments_read(memory_read(allocated=15, reserved=20, mark="oom"))
    scripts[RunMemoryExperiment] = [failed.read, failed, oom_finished()]
    run(tab, studio)
    qtbot.waitUntil(lambda: sees(tab, "memory.oom.segments"))
    scripts[ReadSegments] = lambda _engine, request: [
        segments_read(memory_read(request.device, reserved=20), block_states="222")
    ]
    tab.pages.go_to(SEGMENTS)
    assert text(tab, "memory.segment_map.moment") == "When the experiment ended"
    assert text(tab, "memory.segment_map.sums") == "Reserved 20 MiB, allocated 15 MiB"
    click(tab, "memory.segment_map.now")
    qtbot.waitUntil(lambda: "allocated 0 bytes" in text(tab, "memory.segment_map.sums"))
    assert text(tab, "memory.segment_map.moment") == ""


def test_anything_else_is_refused_with_the_reason(tab, page, tmp_path, qtbot):
    path = tmp_path / "theirs.pickle"
    path.write_bytes(b"no pickle")
    page.model.open_snapshot(path)
    qtbot.waitUntil(lambda: "theirs.pickle" in text(tab, "memory.segment_map.notice"))
    assert text(tab, "memory.segment_map.moment") == ""
    tab.model.experiment.results_changed.emit()  # there is something else to show
    assert not sees(tab, "memory.segment_map.notice")


SIZES = {"others": 338, "tensors": 100, "holes": 20, "free": 1538}
LABELS = ("Other programs", "Allocated", "Reserved, empty", "Free")
TANK = Tank(
    total_bytes=1996 * MIB,
    parts=tuple(
        TankPart(key=key, label=label, size_bytes=mib * MIB, explanation="explained")
        for (key, mib), label in zip(SIZES.items(), LABELS, strict=True)
    ),
)


@pytest.fixture
def bar(theme, qtbot):
    bar = TankBar(theme, name="tank")
    qtbot.addWidget(bar)
    bar.resize(900, 80)
    bar.show_tank(TANK)
    bar.show()
    qtbot.waitExposed(bar)
    return bar


def said(bar):
    return plain(bar.accessibleDescription())


def test_it_says_what_it_paints_in_proportion(bar):
    words = [line.split(":")[0] for line in said(bar).splitlines()]
    assert words == list(LABELS)
    assert "Other programs: 338 MiB (17 %), explained." in said(bar)
    stretches = bar.places.stretches
    assert stretches[0].left() >= 0
    assert stretches[-1].right() <= bar.width()
    assert all(a.right() < b.left() for a, b in pairwise(stretches))
    assert stretches[0].width() > stretches[1].width() > stretches[2].width()


def test_it_shows_what_is_pointed_at(bar, qtbot):
    for part, words in ((1, "Allocated: 100 MiB (5.0 %)"), (3, "Free: 1.50 GiB")):
        place = bar.places.stretches[part].center().toPoint()
        help_event = QHelpEvent(QEvent.Type.ToolTip, place, bar.mapToGlobal(place))
        QApplication.sendEvent(bar, help_event)
        assert plain(QToolTip.text()).startswith(words)
    QToolTip.hideText()


def test_a_narrow_one_takes_more_lines_for_its_names(bar, qtbot):
    wide = bar.height()
    bar.setFixedWidth(260)
    qtbot.waitUntil(lambda: bar.height() > wide)
    places = bar.places.labels
    assert max(place.right() for place in places) <= 260
    assert max(place.bottom() for place in places) <= bar.height()
    assert not any(a.intersects(b) for a, b in pairwise(places))


def test_the_names_of_a_bar_that_come_later_have_their_lines_from_the_beginning(theme, qtbot):
    """Else the plot below it moves as an experiment begins."""
    few = msgspec.structs.replace(TANK, parts=TANK.parts[-1:])
    bars = [TankBar(theme, name="tank", reserves=names) for names in (LABELS, ())]
    for bar in bars:
        qtbot.addWidget(bar)
        bar.resize(300, 80)
        bar.show_tank(few)
    reserved, other = (bar.height() for bar in bars)
    bars[0].show_tank(TANK)
    assert bars[0].height() == reserved > other
