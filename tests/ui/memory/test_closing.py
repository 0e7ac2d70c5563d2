"""What the tab has in threads ends before the tab does: Qt aborts on a thread without an owner."""

from __future__ import annotations

import pytest

from gpu_studio.model.memory import fit_model, segment_model
from gpu_studio.model.memory.fit_model import ERROR, FitModel
from gpu_studio.model.memory.segment_model import SegmentModel
from gpu_studio.model.pages import FIT, SEGMENTS
from gpu_studio.model.worker import Worker
from tests.driving.memory import start
from tests.fakes.slow_work import SlowWork


@pytest.fixture
def slow_work(monkeypatch):
    return SlowWork(monkeypatch)


def test_the_end_waits_for_what_fits_and_asks_no_more(tab, studio, slow_work, monkeypatch, qtbot):
    monkeypatch.setattr(fit_model, "read_error", slow_work)
    start(tab, studio)
    tab.pages.go_to(FIT)
    fit = tab.findChild(FitModel)
    fit.choose(way=ERROR, text="CUDA out of memory")
    qtbot.waitUntil(slow_work.has_begun.is_set)
    studio.close()
    assert slow_work.was_waited_for(fit)
    slow_work.has_begun.clear()
    fit.choose(text="CUDA error: out of memory")
    qtbot.waitUntil(lambda: not fit.findChildren(Worker))
    assert not slow_work.has_begun.is_set()


def test_the_end_waits_for_a_snapshot(tab, studio, slow_work, monkeypatch, qtbot, tmp_path):
    monkeypatch.setattr(segment_model, "ask", slow_work)
    start(tab, studio)
    tab.pages.go_to(SEGMENTS)
    snapshot = tab.findChild(SegmentModel)
    snapshot.open_snapshot(tmp_path / "snapshot.pickle")
    qtbot.waitUntil(slow_work.has_begun.is_set)
    studio.close()
    assert slow_work.was_waited_for(snapshot)
    *_, is_over = slow_work.arguments
    assert is_over()
