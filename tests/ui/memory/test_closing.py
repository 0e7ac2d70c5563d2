"""What the tab has in threads ends before the tab does: Qt aborts on a thread without an owner."""

from __future__ import annotations

import threading

import pytest

from gpu_studio.core.memory import fit, snapshot_file
from gpu_studio.model.memory.fit_question import FitQuestion
from gpu_studio.model.memory.opened_snapshot import OpenedSnapshot
from gpu_studio.model.worker import Worker
from gpu_studio.ui.memory_tab import FIT, SEGMENTS
from tests.driving.memory import start
from tests.patience import PATIENCE_S


class SlowWork:
    """Begins, and goes on until somebody waits for a thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.has_begun = threading.Event()
        self._may_end = threading.Event()
        self._waited_for: list[tuple[Worker, object]] = []
        wait = Worker.wait

        def noted_wait(worker: Worker, longest_ms: int) -> bool:
            self._waited_for.append((worker, worker.parent().parent()))  # of its task
            self._may_end.set()
            return wait(worker, longest_ms)

        monkeypatch.setattr(Worker, "wait", noted_wait)

    def __call__(self, *_arguments: object) -> None:
        self.has_begun.set()
        self._may_end.wait(PATIENCE_S)
        raise RuntimeError("the answer is no longer needed")

    def was_waited_for(self, owner: object) -> bool:
        return any(whose is owner and worker.isFinished() for worker, whose in self._waited_for)


@pytest.fixture
def slow_work(monkeypatch):
    return SlowWork(monkeypatch)


def test_the_end_waits_for_what_fits_and_asks_no_more(tab, studio, slow_work, monkeypatch, qtbot):
    monkeypatch.setattr(fit, "fit_on", slow_work)
    start(tab, studio)
    tab.show_page(FIT)
    qtbot.waitUntil(slow_work.has_begun.is_set)
    question = tab.findChild(FitQuestion)
    studio.close()
    assert slow_work.was_waited_for(question)
    slow_work.has_begun.clear()
    question.ask(None)
    qtbot.waitUntil(lambda: not question.findChildren(Worker))
    assert not slow_work.has_begun.is_set()


def test_the_end_waits_for_a_snapshot(tab, studio, slow_work, monkeypatch, qtbot, tmp_path):
    monkeypatch.setattr(snapshot_file, "open_snapshot", slow_work)
    start(tab, studio)
    tab.show_page(SEGMENTS)
    snapshot = tab.findChild(OpenedSnapshot)
    snapshot.open(tmp_path / "snapshot.pickle")
    qtbot.waitUntil(slow_work.has_begun.is_set)
    studio.close()
    assert slow_work.was_waited_for(snapshot)
