"""``gpu-studio place``: the Switcher's move in a terminal, with the same engine."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import Printer
from gpu_studio.cli.command import DONE, JSON_OBJECT, Command, Option, WrongUseError, did_you_mean
from gpu_studio.cli.engines import started_engine
from gpu_studio.cli.screen import TerminalTable, print_line, print_list
from gpu_studio.cli.sensors import read_inventory
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.link import Link, widest_link
from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.placement_messages import PlaceFinished, PlaceModel, PlaceRow
from gpu_studio.core.switcher.models import MODELS
from gpu_studio.core.switcher.placement_words import explain_move
from gpu_studio.core.tensors import DTYPES

_COLUMNS = (
    ("name", 24), ("shape", 16), ("type", 9), ("bytes", -11), ("before", 7), ("after", 7),
)  # fmt: skip


def _move(options: argparse.Namespace, log_path: Path) -> int:
    """Move a built-in model; return the exit status."""
    model, names = options.model, [one.name for one in MODELS]
    if model not in names:
        raise WrongUseError(
            f"“{model[:60]}” is not a model. The models are {', '.join(names)}."
            f"{did_you_mean(model, names)}"
        )
    moves = [
        PlaceModel(model=model, device=device, dtype=options.dtype)
        for device in (options.device, *options.then)
    ]
    with started_engine(log_path, is_json=options.json) as (work, _described):
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

    def steps(self, moves: Sequence[PlaceModel]) -> Iterator[PlaceModel]:
        """Yield each move."""
        for move in moves:
            if self._is_good:
                self._has_head, self._device = False, move.device
                yield move

    def end(self, last: Event) -> None:
        self._is_good = isinstance(last, PlaceFinished) and last.same_output is True
        self.moves += self._is_good

    def show(self, event: Event) -> None:
        match event:
            case PlaceRow():
                if not self._has_head:
                    if self.moves:
                        print_line()
                    print_line(self._table.heading, style="dim")
                    self._has_head = True
                self._table.print_row(_cells(event))
            case PlaceFinished():
                print_line()
                print_line(explain_move(event, _link(self._device, self._log_path)))


def _list(options: argparse.Namespace, _log_path: Path) -> int:
    lines = (f"{model.name:<12} {model.title}: {model.sentence}" for model in MODELS)
    print_list("models", MODELS, lines, as_json=options.json)
    return DONE


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
    Option("model", "a model (see “place list”)", metavar="MODEL"),
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
    "Move a model to a device. Shows each tensor's device before and after, the "
    "time and memory, and proof that nothing changed."
)
COMMAND = Command(
    about=_ABOUT + " “place MODEL” is short for “place move MODEL”.",
    parts={
        "move": Command(help="move a model", about=_ABOUT, run=_move,
                        options=_OPTIONS),
        "list": Command(help="list the built-in models", about="List the built-in models.",
                        run=_list, json=JSON_OBJECT),
    },
    usual_part="move",
)  # fmt: skip
