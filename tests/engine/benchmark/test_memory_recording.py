"""What is refused before a workload's memory is recorded; recording itself needs a card."""

from __future__ import annotations

import threading

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.memory_messages import RecordMemory
from gpu_studio.engine.benchmark.memory_recording import record_memory


@pytest.mark.parametrize(
    ("place", "changes", "words"),
    [
        ("history.pickle", {}, "The CPU has none"),
        ("no/history.pickle", {}, "does not exist"),
        ("", {}, "is a folder"),
        ("history.pickle", {"dtype": "int8"}, "int8"),
    ],
)
def test_what_cannot_be_recorded_is_refused(tmp_path, place, changes, words):
    parameters = {"workload": "train_step", "device": "cpu", "size": 32, "dtype": "float32"}
    request = RecordMemory(**{**parameters, **changes}, snapshot_path=str(tmp_path / place))
    with pytest.raises(StudioError, match=words):
        record_memory(request, threading.Event())
    assert list(tmp_path.iterdir()) == []
