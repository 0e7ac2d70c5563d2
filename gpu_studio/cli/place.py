"""``gpu-studio place``: the Switcher's move in a terminal, with the same engine."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import CommandEngine, read_inventory, started_engine
from gpu_studio.cli.command import DONE, JSON_OBJECT, Command, Option, WrongUseError, did_you_mean
from gpu_studio.cli.other_pc import TARGET
from gpu_studio.cli.screen import TerminalTable, print_line, print_list
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.link import Link, widest_link
from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.placement_messages import (
    FileInspected,
    InspectFile,
    PlaceFinished,
    PlaceModel,
    PlaceRow,
)
from gpu_studio.core.switcher.models import MODELS
from gpu_studio.core.switcher.placement_words import describe_file, explain_move
from gpu_studio.core.tensors import DTYPES

_COLUMNS = (
    ("name", 24), ("shape", 16), ("type", 9), ("bytes", -11), ("before", 7), ("after", 7),
)  # fmt: skip


def _move(options: argparse.Namespace, log_path: Path) -> int:
    """Move a built-in model or a file's tensors; return the exit status."""
    with started_engine(log_path) as (work, described):
        for number, device in enumerate((options.device, *options.then)):
            request = _request(options.thing, device, options.dtype, described)
            status = _perform(work, request, log_path, as_json=options.json, is_first=number == 0)
            if status != DONE:
                break
        return status


def _list(options: argparse.Namespace, _log_path: Path) -> int:
    lines = (f"{model.name:<12} {model.title}: {model.sentence}" for model in MODELS)
    print_list("models", MODELS, lines, as_json=options.json)
    return DONE


def _request(thing: str, device: str, dtype: str, description: EngineDescribed) -> PlaceModel:
    names = [model.name for model in description.models]
    if thing in names:
        return PlaceModel(model=thing, device=device, dtype=dtype)
    path = Path(thing)
    if TARGET.pc is not None:
        where = TARGET.pc.name
        raise WrongUseError(
            f"“{thing[:60]}” is no model. A file cannot be placed on {where}: files stay where "
            f"they are. The models are {', '.join(names)}."
        )
    if not path.exists() and path.suffix not in (".pt", ".pth", ".bin", ".ckpt"):
        raise WrongUseError(
            f"“{thing[:60]}” is neither a model nor a file. The models are {', '.join(names)}."
            f"{did_you_mean(thing, names)}"
        )
    return PlaceModel(path=str(path.absolute()), device=device, dtype=dtype)


def _perform(
    work: CommandEngine, request: PlaceModel, log_path: Path, *, as_json: bool, is_first: bool
) -> int:
    if not is_first and not as_json:
        print_line()
    if request.path and is_first:
        last = _show(work, InspectFile(path=request.path), None, as_json=as_json)
        if not isinstance(last, FileInspected):
            return work.exit_status(is_done=False)
    last = _show(work, request, log_path, as_json=as_json)
    is_done = isinstance(last, PlaceFinished) and last.same_output is True
    return work.exit_status(is_done=is_done)


def _show(
    work: CommandEngine,
    request: PlaceModel | InspectFile,
    log_path: Path | None,
    *,
    as_json: bool,
) -> Event | None:
    """Print the events as they arrive; return the last one."""
    table, has_head = TerminalTable(_COLUMNS, ("bytes", "type", "shape")), False
    last: Event | None = None
    for last in work.printed_answers(request, as_json=as_json):
        if as_json:
            continue
        match last:
            case PlaceRow():
                if not has_head:
                    print_line(table.heading, style="dim")
                    has_head = True
                table.print_row(_cells(last))
            case FileInspected():
                print_line(describe_file(last))
            case PlaceFinished():
                print_line()
                print_line(explain_move(last, _link(request, log_path)))
    return last


def _link(request: PlaceModel | InspectFile, log_path: Path | None) -> Link | None:
    """Return the link to the card of a move; None for the CPU or if it is unknown."""
    if not isinstance(request, PlaceModel) or is_cpu(request.device) or log_path is None:
        return None
    try:
        inventory = read_inventory(log_path)
    except StudioError:
        return None
    cards = [card for card in inventory.cards if card.address == request.device]
    return widest_link(cards[0]) if cards else None


def _cells(row: PlaceRow) -> list[str]:
    shape = " × ".join(map(str, row.shape)) or "scalar"
    return [
        row.name, shape, row.dtype, str(row.bytes), row.device_before, row.device_after,
    ]  # fmt: skip


_OPTIONS = (
    Option(
        "thing", "a model (see “place list”), or a file of torch.save", metavar="MODEL|FILE"
    ),
    Option(
        "--device", "cpu, or a card such as cuda:0", metavar="D", type=types.device, required=True
    ),
    Option(
        "--dtype", "convert floating-point tensors to this dtype", choices=DTYPES, default=""
    ),
    Option(
        "--then", "then move it to another device, for example back to cpu; repeatable",
        metavar="D", type=types.device, action="append", default=[],
    ),
)  # fmt: skip
_ABOUT = (
    "Move a model or a tensor file to a device. Shows each tensor's device before and after, the "
    "time and memory, and proof that nothing changed."
)
COMMAND = Command(
    about=_ABOUT + " “place MODEL” is short for “place move MODEL”.",
    parts={
        "move": Command(help="move a model or a file's tensors", about=_ABOUT, run=_move,
                        options=_OPTIONS),
        "list": Command(help="list the built-in models", about="List the built-in models.",
                        run=_list, json=JSON_OBJECT),
    },
    usual_part="move",
)  # fmt: skip
