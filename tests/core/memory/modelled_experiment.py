"""An experiment of the memory lab, run on a simulated card."""

import threading
from typing import Any

from gpu_studio.core.memory.experiment import check_experiment, run_experiment
from gpu_studio.core.memory.modelled_cards import card_at
from gpu_studio.core.memory.modelled_memory import ModelledMemory
from gpu_studio.core.messages.memory_messages import OomFinished, RunMemoryExperiment

MIB = 1 << 20
EXPANDABLE = "expandable_segments:True"


def experiment(preset: str, device: str = "model:1996", **changes: Any) -> RunMemoryExperiment:
    return RunMemoryExperiment(preset=preset, device=device, **changes)


def run(request: RunMemoryExperiment, conf: str = "") -> tuple[list[Any], OomFinished]:
    check_experiment(request)
    card = ModelledMemory(card_at(request.device), conf)
    events = list(run_experiment(request, card, threading.Event()))
    assert isinstance(events[-1], OomFinished)
    return events, events[-1]
