"""``gpu-studio memory``: explain an out-of-memory error, run the memory lab, see what fits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli.answers import Interrupt, answers, own_engine
from gpu_studio.cli.screen import Progress, note, say, say_bytes
from gpu_studio.cli.status import DONE, FAILED, INTERRUPTED, WrongUseError
from gpu_studio.core.engine import EngineEnvironment
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
from gpu_studio.core.memory.oom_reader import explain_oom_text
from gpu_studio.core.memory.oom_text import MOST_CHARACTERS
from gpu_studio.core.memory.outcome import outcome_told
from gpu_studio.core.memory.presets import PRESETS
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import (
    AllocationPlan,
    CacheEmptied,
    EmptyCache,
    MemoryRead,
    OomFinished,
    RunMemoryExperiment,
    SegmentsRead,
    StageBegan,
)
from gpu_studio.core.messages.placement_messages import PlaceTensors
from gpu_studio.core.protocol import encode
from gpu_studio.core.units import format_bytes
from gpu_studio.core.user_file import UnusableFileError, open_user_file
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.engine.memory.modelled_engine import ModelledEngine

if TYPE_CHECKING:
    from gpu_studio.core.engine import Engine
    from gpu_studio.core.memory.training import TrainingPlan
    from gpu_studio.core.messages.message import Event

# The most bytes that a character takes in any of the supported encodings.
_MOST_BYTES = 4 * MOST_CHARACTERS


def explain_file(name: str, *, last: bool, as_json: bool) -> int:
    """Explain the error in a file; return the exit status.

    Args:
        name: the file; ``-`` is standard input.
        last: explain the last of several errors instead of the first.
        as_json: print only the numbers, as JSON.

    Raises:
        WrongUseError: the file cannot be read.
    """
    found = explain_oom_text(_decoded(_content(name)), last=last)
    if found is None:
        note("This text has no PyTorch out-of-memory error.")
        if as_json:
            say_bytes(b"{}\n")
        return FAILED
    if found.errors > 1:
        which = "last" if last else "first"
        note(f"This text has {found.errors} errors; this is the {which}.")
    if as_json:
        say_bytes(msgspec.json.encode(found.numbers) + b"\n")
        return DONE
    say(found.headline)
    say(found.meaning)
    if found.tank is not None:
        say()
        for part, memory, share, meaning in found.tank.rows():
            say(f"  {part:<16}{memory:>12}{share:>8}  {meaning}")
        say("  The sizes come from the text, which has two decimals.")
    say()
    for number, step in enumerate(found.first_steps, 1):
        say(f"{number}. {step}")
    return DONE


def _content(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read(_MOST_BYTES)
    try:
        with open_user_file(Path(name)) as file:
            return file.read(_MOST_BYTES)
    except UnusableFileError as error:
        raise WrongUseError(f"Cannot open “{name[:80]}”: {error}.") from error
    except OSError as error:
        raise WrongUseError(f"Cannot read “{name[:80]}”: {error.strerror or error}.") from error


def _decoded(content: bytes) -> str:
    """Decode UTF-8, or the UTF-16 that a Windows shell writes to files."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    return content.decode("utf-8", "replace")


def list_presets(*, as_json: bool) -> int:
    """Print the experiments; return the exit status."""
    if as_json:
        say_bytes(msgspec.json.encode({"presets": PRESETS}) + b"\n")
        return DONE
    for preset in PRESETS:
        say(f"{preset.name:<16}{preset.title}: {preset.sentence}")
    return DONE


def free_cache(device: str, size: int, log_path: Path, *, as_json: bool) -> int:
    """Allocate on a card, drop the tensors, empty PyTorch's cache; return the exit status.

    Args:
        device: a card's address.
        size: the side of the matrices to allocate.
        log_path: the engine's log file.
        as_json: print every event instead of sentences.
    """
    with own_engine(log_path) as (engine, interrupt):
        for request in (
            PlaceTensors(device=device, size=size, dtype="float32"),
            EmptyCache(device=device),
        ):
            last: Event | None = None
            for last in answers(engine, request, interrupt):
                if as_json:
                    say_bytes(encode(last))
            if interrupt.is_asked:
                return INTERRUPTED
            if isinstance(last, RequestFailed):
                note(f"gpu-studio: {last.failure.message}")
                return FAILED
            if isinstance(last, EngineEnded):
                note(f"gpu-studio: {describe_exit(last.exit_code)}")
                return FAILED
    if isinstance(last, CacheEmptied) and not as_json:
        _say_emptied(last)
    return DONE


def _say_emptied(emptied: CacheEmptied) -> None:
    for when, read in (("Before", emptied.before), ("After", emptied.after)):
        allocated, reserved = (
            format_bytes(size or 0) for size in (read.allocated_bytes, read.reserved_bytes)
        )
        say(f"{when + ':':<8}{allocated} allocated, {reserved} reserved")
    say(
        f"empty_cache gave {format_bytes(emptied.freed_bytes)} back to the driver; before, "
        f"{format_bytes(emptied.predicted_bytes)} were in completely free segments."
    )
    say()
    for line in emptied.snippet.splitlines():
        say(line)


def engine_for(device: str, conf: str, log_path: Path) -> Engine:
    """Return an engine for a device; it starts with these allocator options."""
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
    outcome = outcome_told(finished)
    modelled = " (modeled; no card was used)" if finished.modelled else ""
    for stage in finished.stages:
        say(f"  {stage.stage}: {stage.sentence}")
    say(f"{outcome.headline}{modelled}")
    say(outcome.sentence)
    say(outcome.next_step)
    if finished.snapshot_path:
        say(f"The snapshot is in {finished.snapshot_path}.")


def list_cards(*, as_json: bool) -> int:
    """Print the modeled cards; return the exit status."""
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
    device: str,
    parameters: int,
    dtype: str,
    conf: str,
    log_path: Path,
    plan: TrainingPlan,
    *,
    as_json: bool,
) -> int:
    """Print what fits on a device; return the exit status.

    Raises:
        StudioError: no such card, or PyTorch cannot use it.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    card = card_at(device) if is_modelled(device) else _as_it_is(device, conf, log_path)
    fit = fit_on(card, conf)
    network = model_fit(card, parameters, dtype, conf, plan)
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
        say(f"{card.name}, modeled; assumes a CUDA context of {context}.")
    say(fit.sentence)
    say(network.sentence)
    return DONE


def _as_it_is(device: str, conf: str, log_path: Path) -> ModelledCardChoice:
    """Return a real card's present state: its size, and the memory already in use."""
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
        raise StudioError(FailureKind.INTERNAL, f"{device} does not report its memory.")
    return ModelledCardChoice(
        name=device,
        total_bytes=start.total_bytes,
        context_bytes=start.total_bytes - start.free_bytes,
    )
