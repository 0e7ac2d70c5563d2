"""What the tab has in threads ends before the tab does: Qt aborts on a thread without an owner."""

from __future__ import annotations

import pytest

from gpu_studio.model.memory import opened_snapshot
from gpu_studio.model.memory.fit_question import FitQuestion
from gpu_studio.model.memory.opened_snapshot import OpenedSnapshot
from gpu_studio.model.pages import FIT, SEGMENTS
from gpu_studio.model.worker import Worker
from tests.driving.memory import start
from tests.fakes.slow_work import SlowWork


@pytest.fixture
def slow_work(monkeypatch):
    return SlowWork(monkeypatch)


def test_the_end_waits_for_what_fits_and_asks_no_more(tab, studio, slow_work, monkeypatch, qtbot):
    monkeypatch.setattr(FitQuestion, "_answer", slow_work)
    start(tab, studio)
    tab.pages.go_to(FIT)
    qtbot.waitUntil(slow_work.has_begun.is_set)
    question = tab.findChild(FitQuestion)
    studio.close()
    assert slow_work.was_waited_for(question)
    slow_work.has_begun.clear()
    question.ask(None)
    qtbot.waitUntil(lambda: not question.findChildren(Worker))
    assert not slow_work.has_begun.is_set()


def test_the_end_waits_for_a_snapshot(tab, studio, slow_work, monkeypatch, qtbot, tmp_path):
    monkeypatch.setattr(opened_snapshot, "ask", slow_work)
    start(tab, studio)
    tab.pages.go_to(SEGMENTS)
    snapshot = tab.findChild(OpenedSnapshot)
    snapshot.open(tmp_path / "snapshot.pickle")
    qtbot.waitUntil(slow_work.has_begun.is_set)
    studio.close()
    assert slow_work.was_waited_for(snapshot)
    *_, is_over = slow_work.arguments
    assert is_over()
