"""``gpu-studio memory oom``: the memory lab in a terminal, on a real card or a modelled one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli.answers import Interrupt, answers
from gpu_studio.cli.screen import Progress, note, say, say_bytes
from gpu_studio.cli.status import DONE, FAILED, INTERRUPTED
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.memory.modelled_cards import is_modelled
from gpu_studio.core.memory.outcome import explain_outcome
from gpu_studio.core.memory.presets import PRESETS
from gpu_studio.core.protocol import (
    EngineEnded,
    MemoryRead,
    OomFinished,
    RequestFailed,
    SegmentsRead,
    StageBegan,
    encode,
)
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.engine.memory.modelled import ModelledEngine

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.engine import Engine
    from gpu_studio.core.protocol import Event, RunMemoryExperiment


def list_presets(*, as_json: bool) -> int:
    """Print the experiments there are; return the exit status."""
    if as_json:
        say_bytes(msgspec.json.encode({"presets": PRESETS}) + b"\n")
        return DONE
    for preset in PRESETS:
        say(f"{preset.name:<16}{preset.title}: {preset.sentence}")
    return DONE


def engine_for(device: str, conf: str, log_path: Path) -> Engine:
    """Return the engine of a device, which starts with these allocator options."""
    environment = EngineEnvironment(allocator_configuration=conf or None)
    if is_modelled(device):
        return ModelledEngine(environment)
    return ProcessEngine(environment, log_path=log_path)


def run_oom(request: RunMemoryExperiment, conf: str, log_path: Path, *, as_json: bool) -> int:
    """Run an experiment; return the exit status."""
    engine, progress, last = engine_for(request.device, conf, log_path), Progress(), None
    try:
        with Interrupt().heard() as interrupt:
            for event in answers(engine, request, interrupt):
                last = event
                if as_json and not isinstance(event, SegmentsRead):
                    say_bytes(encode(event))
                _show(event, progress, as_json=as_json)
    finally:
        progress.clear()
        engine.close()
    if interrupt.is_asked:
        return INTERRUPTED
    return DONE if isinstance(last, OomFinished) else FAILED


def _show(event: Event, progress: Progress, *, as_json: bool) -> None:
    match event:
        case MemoryRead():
            if event.allocated_bytes is not None and event.reserved_bytes is not None:
                progress.show(
                    f"{format_bytes(event.allocated_bytes)} allocated, "
                    f"{format_bytes(event.reserved_bytes)} reserved"
                )
        case StageBegan():
            progress.clear()
            if not as_json:
                say(event.sentence)
        case OomFinished():
            progress.clear()
            if not as_json:
                _say_end(event)
        case RequestFailed():
            progress.clear()
            note(event.failure.message)
        case EngineEnded():
            progress.clear()
            note(describe_exit(event.exit_code))


def _say_end(finished: OomFinished) -> None:
    outcome = explain_outcome(finished)
    modelled = " (modelled, no card was asked)" if finished.modelled else ""
    for stage in finished.stages:
        say(f"  {stage.stage}: {stage.sentence}")
    say(f"{outcome.headline}{modelled}")
    say(outcome.sentence)
    say(outcome.next_step)
    if finished.snapshot_path:
        say(f"The snapshot is in {finished.snapshot_path}.")
