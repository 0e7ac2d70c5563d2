"""Whose numbers the tank shows, and what is missing, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.memory.memory_model import ENGINE_NAMES, LAB, MAIN
from gpu_studio.model.memory.oom_experiment import OomState

if TYPE_CHECKING:
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.memory.memory_model import MemoryModel


def what_is_shown(model: MemoryModel, session: EngineSession) -> str:
    """Return the sentence.

    Args:
        model: the memory.
        session: the program's own engine.
    """
    chosen, state = model.chosen, session.state
    if chosen.is_modelled:
        return _of_modelled(model)
    if state is EngineState.FAILED:
        return "There is no engine. Start a fresh one from the Engine menu."
    if session.description is None:
        return "The engine is starting: PyTorch is being loaded, and its numbers come then."
    if not chosen.is_card:
        return _without_card(model)
    if chosen.address is None:
        return f"These are the driver's numbers: PyTorch cannot use this card. {chosen.reason}"
    if model.engine == LAB:
        return _of_lab(model)
    if not model.has_allocator_numbers:
        return (
            "PyTorch has not touched this card yet, so these are the driver's numbers. Its own "
            "begin with the first CUDA work: run an experiment, a benchmark, or move a model."
        )
    return "The driver's and PyTorch's numbers, read together by the engine."


def _of_modelled(model: MemoryModel) -> str:
    if model.is_held:
        return (
            "What the experiment had reached. All it took is freed again, and kept by the "
            "allocator for the next tensors."
        )
    return (
        "PyTorch's allocator on a card of this size, to the byte, by its rules alone. What "
        "CUDA itself takes is an assumption."
    )


def _of_lab(model: MemoryModel) -> str:
    if model.is_held:
        return (
            "What the experiment had reached. The lab's engine has ended since, and all it "
            "took is free again."
        )
    if model.experiment.state is OomState.IDLE:
        return f"The lab's engine has ended. Choose “{ENGINE_NAMES[MAIN]}” for the present."
    if model.experiment.state is OomState.WAITING:
        return "The lab's own engine starts: PyTorch is being loaded into it."
    return "The lab's engine at work. The program's own engine, if it uses the card, is named."


def _without_card(model: MemoryModel) -> str:
    if model.devices.has_usable_card:
        return "The PC's own memory. Choose a card to see PyTorch's allocator at work."
    return (
        "This PC's RAM. PyTorch's allocator has numbers of its own for CUDA cards only: "
        "choose a modelled one."
    )
