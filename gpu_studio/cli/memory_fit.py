"""``gpu-studio memory fit``: what fits on a card, as the allocator's model says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli.answers import Interrupt, answers
from gpu_studio.cli.memory_oom import engine_for
from gpu_studio.cli.screen import say, say_bytes
from gpu_studio.cli.status import DONE
from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.fit import fit_on, model_fit
from gpu_studio.core.memory.modelled_cards import (
    ModelledCardChoice,
    card_at,
    is_modelled,
    modelled_card_table,
    modelled_cards,
)
from gpu_studio.core.protocol import (
    AllocationPlan,
    EngineEnded,
    MemoryRead,
    RequestFailed,
    RunMemoryExperiment,
)
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from pathlib import Path


def list_cards(*, as_json: bool) -> int:
    """Print the cards that can be modelled; return the exit status."""
    cards, table = modelled_cards(), modelled_card_table()
    if as_json:
        told = [
            {"name": c.name, "device": c.address, "total_bytes": c.total_bytes,
             "context_bytes": c.context_bytes}
            for c in cards
        ]  # fmt: skip
        say_bytes(msgspec.json.encode({"cards": told}) + b"\n")
        return DONE
    for card in cards:
        context = format_bytes(card.context_bytes)
        say(f"{card.address:<14}{card.name:<30}{format_bytes(card.total_bytes)}, context {context}")
    say()
    say(table.source)
    say(table.context_source)
    return DONE


def show_fit(
    device: str, parameters: int, dtype: str, conf: str, log_path: Path, *, as_json: bool
) -> int:
    """Print what fits on a device; return the exit status.

    Raises:
        StudioError: there is no such card, or it cannot be used.
        KeyboardInterrupt: Ctrl-C was pressed while a card was asked.
    """
    card = card_at(device) if is_modelled(device) else _as_it_is(device, conf, log_path)
    fit = fit_on(card, conf)
    network = model_fit(card, parameters, dtype, conf)
    if as_json:
        told = {
            "type": "fit_finished", "device": device, "modelled": is_modelled(device),
            **msgspec.structs.asdict(fit), **msgspec.structs.asdict(network),
            "taken_bytes": card.context_bytes, "sentence": f"{fit.sentence} {network.sentence}",
        }  # fmt: skip
        say_bytes(msgspec.json.encode(told) + b"\n")
        return DONE
    if is_modelled(device):
        context = format_bytes(card.context_bytes)
        say(f"{card.name}, modelled; its CUDA context is assumed to take {context}.")
    say(fit.sentence)
    say(network.sentence)
    return DONE


def _as_it_is(device: str, conf: str, log_path: Path) -> ModelledCardChoice:
    """Return a real card as it is now: its size, and all that is taken of it."""
    plan = AllocationPlan(size=1, count=1)
    request = RunMemoryExperiment(preset="custom", device=device, plan=plan)
    engine = engine_for(device, conf, log_path)
    start: MemoryRead | None = None
    try:
        with Interrupt().heard() as interrupt:
            for event in answers(engine, request, interrupt):
                if interrupt.is_asked:
                    raise KeyboardInterrupt
                match event:
                    case MemoryRead():
                        start = start or event
                    case RequestFailed():
                        raise StudioError(event.failure.kind, event.failure.message)
                    case EngineEnded():
                        message = describe_exit(event.exit_code)
                        raise StudioError(FailureKind.ENGINE_ENDED, message)
    finally:
        engine.close()
    if start is None or start.total_bytes is None or start.free_bytes is None:
        raise StudioError(FailureKind.INTERNAL, f"{device} does not tell its memory.")
    return ModelledCardChoice(
        name=device,
        total_bytes=start.total_bytes,
        context_bytes=start.total_bytes - start.free_bytes,
    )
