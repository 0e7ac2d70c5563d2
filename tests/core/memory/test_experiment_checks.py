"""Which experiments of the memory lab are refused before anything is allocated."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.experiment import check_experiment, run_experiment
from gpu_studio.core.memory.modelled_cards import card_at
from gpu_studio.core.memory.modelled_memory import ModelledMemory
from gpu_studio.core.messages.memory_messages import (
    AllocationPlan,
    RunMemoryExperiment,
)
from tests.core.memory.modelled_experiment import MIB, experiment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"preset": "gt1031"}, "is not a preset"),
        ({"preset": "custom"}, "needs a plan"),
        ({"plan": AllocationPlan(size=0)}, "size, 0, is out of range"),
        ({"plan": AllocationPlan(size=1, count=0)}, "count, 0, is out of range"),
        ({"plan": AllocationPlan(size=1, dtype="int3")}, "“int3” is not a supported dtype"),
        ({"preset": "leak", "budget_bytes": 0}, "budget in bytes, 0, is out of range"),
        ({"preset": "leak", "budget_bytes": 1, "whole_card": True}, "not both"),
        ({"preset": "leak", "watch_s": float("nan")}, "out of range"),
        ({"preset": "leak", "watch_s": -1.0}, "out of range"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], words: str):
    parameters = {"preset": "custom", "device": "model:1996", **changes}
    with pytest.raises(StudioError, match=words):
        check_experiment(RunMemoryExperiment(**parameters))


def test_too_little_room_for_fragmentation_is_reported():
    request = experiment("fragmentation", budget_bytes=100 * MIB)
    with pytest.raises(StudioError, match="needs 224"):
        list(run_experiment(request, ModelledMemory(card_at("model:1996")), threading.Event()))


def test_the_folder_of_the_snapshot_is_checked_first(tmp_path: Path):
    """A minute of filling a card would be for nothing; and no folder is made unasked."""
    missing = tmp_path / "a" / "b"
    for path, words in (
        (missing / "snapshot.pickle", f"the folder {missing} does not exist. Create it first"),
        (tmp_path, f"{tmp_path} is a folder. Name a file in it"),
    ):
        with pytest.raises(StudioError) as caught:
            check_experiment(experiment("gt1030", snapshot_path=str(path)))
        assert str(caught.value) == f"Cannot write the snapshot: {words}."
    assert list(tmp_path.iterdir()) == []
    check_experiment(experiment("gt1030", snapshot_path=str(tmp_path / "snapshot.pickle")))
    check_experiment(experiment("gt1030", snapshot_path="snapshot.pickle"))
