"""Work in a thread that goes on until somebody waits for the thread."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from gpu_studio.model.worker import Worker
from tests.patience import PATIENCE_S


class SlowWork:
    """Stands for a function that a worker or a task calls; it ends with an error.

    Attributes:
        has_begun: whether it was called.
        arguments: of the last call.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.has_begun = threading.Event()
        self.arguments: tuple[Any, ...] = ()
        self._may_end = threading.Event()
        self._waited_for: list[Worker] = []
        wait = Worker.wait

        def noted_wait(worker: Worker, longest_ms: int) -> bool:
            self._waited_for.append(worker)
            self._may_end.set()
            return wait(worker, longest_ms)

        monkeypatch.setattr(Worker, "wait", noted_wait)

    def __call__(self, *arguments: Any) -> Any:
        self.arguments = arguments
        self.has_begun.set()
        self._may_end.wait(PATIENCE_S)
        raise RuntimeError("the answer is no longer needed")

    def was_waited_for(self, owner: object) -> bool:
        """Return whether somebody waited for the end of an object's thread."""
        return any(owner in _owners(worker) and worker.isFinished() for worker in self._waited_for)


def _owners(worker: Worker) -> Iterator[object]:
    """Yield the worker's parent, the parent's parent, and so on."""
    owner = worker.parent()
    while owner is not None:
        yield owner
        owner = owner.parent()
