"""Snapshots from files."""

from __future__ import annotations

import pickle

import pytest
from PySide6.QtWidgets import QPushButton

from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.ui.memory.segment_map import SegmentMapView
from gpu_studio.ui.memory.segment_page import SegmentPage
from tests.driving.memory import MIB, every_control_is_named, shown
from tests.driving.window import click, find, text
from tests.fakes.pc import cpu_only


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
