"""``gpu-studio place``: the Switcher's move in a terminal, with the same engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli.answers import answers, describe, describe_alone, own_engine, take_inventory
from gpu_studio.cli.screen import Progress, TerminalTable, note, say, say_bytes
from gpu_studio.cli.status import DONE, FAILED, INTERRUPTED, WrongUseError
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.link import Link, widest_link
from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.placement_messages import (
    FileInspected,
    InspectFile,
    PlaceFinished,
    PlaceModel,
    PlaceRow,
)
from gpu_studio.core.protocol import encode
from gpu_studio.core.switcher.placement_words import describe_file, explain_move

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.cli.answers import Interrupt
    from gpu_studio.core.engine import Engine
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.message import Event

_COLUMNS = (
    ("name", 24), ("shape", 16), ("type", 9), ("bytes", -11), ("before", 7), ("after", 7),
)  # fmt: skip


def run_place(
    thing: str, devices: Sequence[str], dtype: str, log_path: Path, *, as_json: bool
) -> int:
    """Move a built-in model or a file's tensors; return the exit status.

    Args:
        thing: the model's name, or a path.
        devices: the target devices, one after the other.
        dtype: the new dtype of floating-point tensors; empty changes none.
        log_path: the engine's log file.
        as_json: print every event instead of a table.

    Raises:
        WrongUseError: `thing` is neither a model nor a file.
        StudioError: the engine does not start.
    """
    with Progress() as progress, own_engine(log_path) as (engine, interrupt):
        progress.show("Starting PyTorch …")
        description = describe(engine, interrupt)
        progress.clear()
        for number, device in enumerate(devices):
            request = _request(thing, device, dtype, description)
            status = _perform(
                engine, request, interrupt, log_path, as_json=as_json, is_first=number == 0
            )
            if status != DONE:
                break
        return status


def list_models(log_path: Path, *, as_json: bool) -> int:
    """Print the built-in models that can be moved; return the exit status."""
    models = describe_alone(log_path).models
    if as_json:
        say_bytes(msgspec.json.encode({"models": models}) + b"\n")
        return DONE
    for model in models:
        say(f"{model.name:<12} {model.title}: {model.sentence}")
    return DONE


def _request(thing: str, device: str, dtype: str, description: EngineDescribed) -> PlaceModel:
    names = [model.name for model in description.models]
    if thing in names:
        return PlaceModel(model=thing, device=device, dtype=dtype)
    path = Path(thing)
    if not path.exists() and path.suffix not in (".pt", ".pth", ".bin", ".ckpt"):
        raise WrongUseError(
            f"“{thing[:60]}” is neither a model nor a file. The models are {', '.join(names)}."
        )
    return PlaceModel(path=str(path.absolute()), device=device, dtype=dtype)


def _perform(
    engine: Engine,
    request: PlaceModel,
    interrupt: Interrupt,
    log_path: Path,
    *,
    as_json: bool,
    is_first: bool,
) -> int:
    if not is_first and not as_json:
        say()
    if request.path and is_first:
        last = _show(engine, InspectFile(path=request.path), interrupt, as_json=as_json)
        if not isinstance(last, FileInspected):
            return INTERRUPTED if interrupt.is_asked else FAILED
    last = _show(engine, request, interrupt, as_json=as_json, log_path=log_path)
    if interrupt.is_asked:
        return INTERRUPTED
    return DONE if isinstance(last, PlaceFinished) and last.same_output else FAILED


def _show(
    engine: Engine,
    request: PlaceModel | InspectFile,
    interrupt: Interrupt,
    *,
    as_json: bool,
    log_path: Path | None = None,
) -> Event | None:
    """Print the events as they arrive; return the last one."""
    table, last = TerminalTable(_COLUMNS), None
    has_head = False
    for event in answers(engine, request, interrupt):
        last = event
        if as_json:
            say_bytes(encode(event))
        elif isinstance(event, PlaceRow):
            if not has_head:
                say(table.heading)
                has_head = True
            say(table.row(_cells(event)))
        elif isinstance(event, FileInspected):
            say(describe_file(event))
        elif isinstance(event, PlaceFinished):
            say()
            say(explain_move(event, _link(request, log_path)))
        if isinstance(event, RequestFailed):
            note(f"gpu-studio: {event.failure.message}")
        elif isinstance(event, EngineEnded):
            note(f"gpu-studio: {describe_exit(event.exit_code)}")
    return last


def _link(request: PlaceModel | InspectFile, log_path: Path | None) -> Link | None:
    """Return the link to the card of a move; None for the CPU or if it is unknown."""
    if not isinstance(request, PlaceModel) or is_cpu(request.device) or log_path is None:
        return None
    try:
        inventory = take_inventory(log_path)
    except StudioError:
        return None
    cards = [card for card in inventory.cards if card.address == request.device]
    return widest_link(cards[0]) if cards else None


def _cells(row: PlaceRow) -> list[str]:
    shape = " × ".join(map(str, row.shape)) or "scalar"
    return [
        row.name, shape, row.dtype, str(row.bytes), row.device_before, row.device_after,
    ]  # fmt: skip
