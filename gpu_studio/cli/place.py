"""``gpu-studio place``: the Switcher's move in a terminal, with the same engine."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import Printer
from gpu_studio.cli.command import DONE, JSON_OBJECT, Command, Option, WrongUseError, did_you_mean
from gpu_studio.cli.engines import started_engine
from gpu_studio.cli.other_pc import TARGET
from gpu_studio.cli.screen import TerminalTable, print_line, print_list
from gpu_studio.cli.sensors import read_inventory
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
    with started_engine(log_path, is_json=options.json) as (work, described):
        moves = [
            _request(options.thing, device, options.dtype, described)
            for device in (options.device, *options.then)
        ]
        printer = _Printer(log_path)
        work.run(printer.steps(moves), printer)
    return work.exit_status(is_done=printer.moves == len(moves))


class _Printer(Printer):
    """The tensors of each move, and what it did; a move that failed is the last one."""

    def __init__(self, log_path: Path) -> None:
        self._log_path = log_path
        self._table = TerminalTable(_COLUMNS, ("bytes", "type", "shape"))
        self._has_head = self._is_good = True
        self._device = ""
        self.moves = 0

    def steps(self, moves: Sequence[PlaceModel]) -> Iterator[InspectFile | PlaceModel]:
        """Yield what is in the file, then each move."""
        if moves[0].path:
            yield InspectFile(path=moves[0].path)
        for move in moves:
            if self._is_good:
                self._has_head, self._device = False, move.device
                yield move

    def end(self, last: Event) -> None:
        is_moved = isinstance(last, PlaceFinished) and last.same_output is True
        self._is_good = is_moved or isinstance(last, FileInspected)
        self.moves += is_moved

    def show(self, event: Event) -> None:
        match event:
            case PlaceRow():
                if not self._has_head:
                    if self.moves:
                        print_line()
                    print_line(self._table.heading, style="dim")
                    self._has_head = True
                self._table.print_row(_cells(event))
            case FileInspected():
                print_line(describe_file(event))
            case PlaceFinished():
                print_line()
                print_line(explain_move(event, _link(self._device, self._log_path)))


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


def _link(device: str, log_path: Path) -> Link | None:
    """Return the link to the card of a move; None for the CPU or if it is unknown."""
    if is_cpu(device):
        return None
    try:
        inventory = read_inventory(log_path)
    except StudioError:
        return None
    cards = [card for card in inventory.cards if card.address == device]
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
