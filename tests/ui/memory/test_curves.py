"""The curves, their marks, and empty_cache."""

from __future__ import annotations

from gpu_studio.core.messages.memory_messages import EmptyCache, ReadMemory
from gpu_studio.model.memory.engine_memory import Mark
from gpu_studio.model.memory.memory_model import MemoryModel
from gpu_studio.model.pages import BREAK_IT, CURVES
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.memory import MIB, start
from tests.driving.window import click, find, numbers, text
from tests.fakes.memory_answers import (
    cache_emptied,
    memory_read,
)


def test_the_curves_are_allocated_and_reserved(tab, studio, qtbot):
    start(tab, studio)
    plot = find(tab, "memory.plot", LivePlot)
    assert set(plot.curve_keys) == {"allocated", "reserved"}
    xs, ys = tab._curves._lower()
    assert ys[-1] == 100 * MIB
    assert tab._curves._upper()[1][-1] == 120 * MIB
    assert len(xs) == len(ys)
    qtbot.waitUntil(lambda: "Now: 2" in plot.accessibleDescription())


def test_another_device_has_its_curves_once_the_page_is_shown(tab, studio, qtbot):
    """To draw them while nobody sees them is work in the turn that begins an experiment."""
    start(tab, studio)
    plot = find(tab, "memory.plot", LivePlot)
    qtbot.waitUntil(lambda: plot.plot is not None)
    before = plot.curve_keys
    tab.pages.go_to(BREAK_IT)
    tab.model.devices.choose("cpu")
    assert plot.curve_keys == before
    tab.pages.go_to(CURVES)
    assert plot.curve_keys == ("process",)


def test_empty_cache_by_its_button(tab, scripts, studio, qtbot):
    before = memory_read(allocated=100, reserved=336, releasable_bytes=128 * MIB)
    scripts[ReadMemory] = [before]
    scripts[EmptyCache] = [cache_emptied(before, 128)]
    start(tab, studio)
    qtbot.waitUntil(find(tab, "memory.empty_cache").isEnabled)
    foretold = text(tab, "memory.cache")
    assert numbers(foretold)[:2] == ["128", "236"]
    click(tab, "memory.empty_cache")
    qtbot.waitUntil(lambda: text(tab, "memory.cache") != foretold)
    assert "freed 128 MiB" in text(tab, "memory.cache")


def test_marks_that_are_near_share_the_room_for_a_label_and_failures_come_first(
    tab, studio, qtbot, monkeypatch
):
    start(tab, studio)
    plot = find(tab, "memory.plot", LivePlot)
    # A fixed time: in the right half of the axis, labels are left of their lines.
    monkeypatch.setattr(MemoryModel, "now_s", 29.5)
    now_s = 1.0  # the axis begins 30 s before the present time
    failure = Mark(at_s=now_s + 0.4, label="out of memory", is_failure=True)
    for mark in (Mark(at_s=now_s, label="experiment"), failure):
        tab.model.history.mark(mark)
    tab.model.marks_changed.emit()
    assert [(marker.label, marker.role) for marker in plot._markers] == [
        ("", "muted"), (failure.label, "failure"),
    ]  # fmt: skip
    tab.model.history.mark(Mark(at_s=now_s + 12, label="empty_cache"))
    tab.model.marks_changed.emit()
    assert plot._markers[-1].label == "empty_cache"
    freed = Mark(at_s=now_s + 12.2, label="freed", is_minor=True)  # in the middle of its label
    tab.model.history.mark(freed)
    tab.model.marks_changed.emit()
    assert plot._markers[-1].label == "empty_cache"
    assert len(plot._markers) == 3
