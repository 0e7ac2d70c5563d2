"""``gpu-studio place``, ``pitfall`` and ``run``: the window's Switcher, by the same engine."""

from __future__ import annotations

import argparse
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import Printer
from gpu_studio.cli.command import DONE, JSON_OBJECT, Command, Option, WrongUseError, did_you_mean
from gpu_studio.cli.output import TerminalTable, note, print_line, print_list
from gpu_studio.cli.pc import TARGET, SensorWatch, addresses, read_inventory, started_engine
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.access import usable_cards
from gpu_studio.core.devices.devices import Inventory, Reading
from gpu_studio.core.devices.link import Link, widest_link
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.pitfall_messages import (
    PitfallDescription,
    PitfallFinished,
    PitfallOutcome,
    PitfallStarted,
    RunPitfall,
)
from gpu_studio.core.messages.placement_messages import PlaceFinished, PlaceModel, PlaceRow
from gpu_studio.core.switcher.models import MODELS
from gpu_studio.core.switcher.pitfall_words import format_figure, is_disturbed
from gpu_studio.core.switcher.pitfalls import PITFALLS
from gpu_studio.core.switcher.placement_words import explain_move
from gpu_studio.core.switcher.program_start import (
    CHOOSING,
    StartTarget,
    VulkanDevice,
    drawing_variables,
    shell_lines,
    start_variables,
    target_named,
    targets,
)
from gpu_studio.core.switcher.start_watch import StartWatch
from gpu_studio.core.tensors import DTYPES
from gpu_studio.hardware.client import SensorReader
from gpu_studio.process.child_call import ChildCall
from gpu_studio.process.started_program import StartFailedError, shell_status, start_program

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
        printer = _MovePrinter(log_path)
        work.run(printer.steps(moves), printer)
    return work.exit_status(is_done=printer.moves == len(moves))


class _MovePrinter(Printer):
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


def _list_models(options: argparse.Namespace, _log_path: Path) -> int:
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


_PLACE_OPTIONS = (
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
_PLACE_ABOUT = (
    "Move a model to a device. Shows each tensor's device before and after, the "
    "time and memory, and proof that nothing changed."
)
_PLACE = Command(
    about=_PLACE_ABOUT + " “place MODEL” is short for “place move MODEL”.",
    parts={
        "move": Command(help="move a model", about=_PLACE_ABOUT, run=_move,
                        options=_PLACE_OPTIONS),
        "list": Command(help="list the built-in models", about="List the built-in models.",
                        run=_list_models, json=JSON_OBJECT),
    },
    usual_part="move",
)  # fmt: skip


_PART_TITLES = {"broken": "Broken", "fixed": "Fixed"}


def _run_pitfall(options: argparse.Namespace, log_path: Path) -> int:
    """Run a pitfall's broken and fixed code; return the exit status."""
    with started_engine(log_path, is_json=options.json) as (work, described):
        printer = _PitfallPrinter(_find(options.name, described))
        device = options.device or next(iter(usable_cards(described)), addresses(described)[0])
        work.run([RunPitfall(name=options.name, device=device)], printer)
    done = printer.finished
    in_doubt = done is not None and is_disturbed(done.broken, done.fixed)
    return work.exit_status(is_done=done is not None, in_doubt=in_doubt)


class _PitfallPrinter(Printer):
    """The two parts of a pitfall."""

    def __init__(self, pitfall: PitfallDescription) -> None:
        self._pitfall = pitfall
        self.finished: PitfallFinished | None = None

    def apply(self, event: Event) -> str:
        if isinstance(event, PitfallFinished):
            self.finished = event
        if isinstance(event, PitfallStarted):
            return f"{self._pitfall.title}: {event.part} …"
        return ""

    def show(self, event: Event) -> None:
        if isinstance(event, PitfallFinished):
            _print_pitfall(self._pitfall, event)


def _list_pitfalls(options: argparse.Namespace, _log_path: Path) -> int:
    lines = (f"{pitfall.name:<25} {pitfall.sentence}" for pitfall in PITFALLS)
    print_list("pitfalls", PITFALLS, lines, as_json=options.json)
    return DONE


def _find(name: str, description: EngineDescribed) -> PitfallDescription:
    for pitfall in description.pitfalls:
        if pitfall.name == name:
            return pitfall
    names = [pitfall.name for pitfall in description.pitfalls]
    near = did_you_mean(name, names)
    raise WrongUseError(f"There is no pitfall “{name[:40]}”: choose {', '.join(names)}.{near}")


def _print_pitfall(pitfall: PitfallDescription, finished: PitfallFinished) -> None:
    print_line(f"{pitfall.title}, with {finished.device}")
    for outcome in (finished.broken, finished.fixed):
        if outcome is not None:
            _print_outcome(outcome)
        if outcome is finished.broken:
            print_line()
            print_line(f"Why: {pitfall.why}")
            if pitfall.remark:
                print_line(f"Note: {pitfall.remark}")
            print_line(f"The fix: {pitfall.remedy}")
    for sentence in filter(None, (finished.comparison, finished.untested)):
        print_line()
        print_line(sentence)


def _print_outcome(outcome: PitfallOutcome) -> None:
    print_line()
    print_line(f"{_PART_TITLES[outcome.part]}: {outcome.sentence}")
    for line in outcome.error.splitlines():
        print_line(f"    {line}")
    for figure in outcome.figures:
        print_line(f"    {figure.title}: {format_figure(figure)}")
    if outcome.stand_in:
        print_line(f"    ({outcome.stand_in})")


_PITFALL_NAME = Option("name", "the pitfall; see “pitfall list”", metavar="NAME")
_PITFALL_ABOUT = (
    "Make a common mistake on purpose: see the real error or slow time, why it happens, and the "
    "result after the fix."
)
_PITFALL = Command(
    about=_PITFALL_ABOUT + " “pitfall NAME” is short for “pitfall run NAME”.",
    parts={
        "run": Command(help="make a mistake, then fix it", about=_PITFALL_ABOUT, run=_run_pitfall,
                       options=(_PITFALL_NAME, types.CARD_OR_CPU)),
        "list": Command(help="list the pitfalls", about="List the pitfalls.", run=_list_pitfalls,
                        json=JSON_OBJECT),
    },
    usual_part="run",
)  # fmt: skip


_VULKAN = "gpu_studio.hardware.vulkan"
_LONGEST_VULKAN_S, _MOST_BYTES = 10.0, 1 << 20
_LOOK_EVERY_S = 1.0


def _start(options: argparse.Namespace, log_path: Path) -> int:
    """Start the program and wait for it; return its exit status."""
    command = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not command:
        message = "Name the program to start after “--”: run --on-card 0 -- ollama serve"
        raise WrongUseError(message)
    if TARGET.pc is not None:
        message = "A program is started on this PC only: run the command there."
        raise WrongUseError(message)
    with SensorWatch(log_path) as sensors:
        inventory = sensors.inventory()
    target, variables = _chosen(options.on_card, inventory)
    if options.print:
        for shell, line in shell_lines(variables, command).items():
            print_line(f"{shell}:")
            print_line(f"    {line}")
        return DONE
    set_words = " ".join(f"{name}={value}" for name, value in variables.items())
    note(f"Starting on the {target.title}: {set_words}")
    return _follow(command, variables, target, inventory, log_path)


def _chosen(word: str, inventory: Inventory) -> tuple[StartTarget, dict[str, str]]:
    known = _vulkan({})
    try:
        target = target_named(word, targets(inventory.cards, known or ()))
    except ValueError as error:
        raise WrongUseError(str(error)) from None
    drawing = drawing_variables(target, inventory.cards)
    order = _vulkan(drawing) if known is not None and drawing else known
    return target, start_variables(target, inventory.cards, order)


def _vulkan(variables: dict[str, str]) -> list[VulkanDevice] | None:
    """Return what Vulkan lists with these variables; None if its drivers do not answer."""
    found = ChildCall(_VULKAN).run(
        msgspec.json.encode(variables), longest_s=_LONGEST_VULKAN_S, most_bytes=_MOST_BYTES
    )
    if found.exit_code != 0:
        return None
    return msgspec.json.decode(found.content, type=list[VulkanDevice])


def _follow(
    command: list[str],
    variables: dict[str, str],
    target: StartTarget,
    inventory: Inventory,
    log_path: Path,
) -> int:
    """Start it, and wait until it ends: what ends this command in a terminal reaches it too."""
    kept = [(one, signal.getsignal(one)) for one in _passed_on()]
    try:
        # Ctrl+C goes to both: the program decides. An ignored signal would stay so in it.
        signal.signal(signal.SIGINT, lambda *_: None)
        child = start_program(command, variables, CHOOSING)
        for one, _ in kept[1:]:
            signal.signal(one, lambda number, _frame: child.send_signal(number))
        watching = threading.Thread(
            target=_watch, args=(child, target, inventory, log_path), daemon=True
        )
        watching.start()
        return shell_status(child.wait())
    except StartFailedError as error:
        raise StudioError(FailureKind.INTERNAL, str(error)) from error
    finally:
        for one, handler in kept:
            signal.signal(one, handler)


def _passed_on() -> list[signal.Signals]:
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


def _watch(
    child: subprocess.Popen[bytes], target: StartTarget, inventory: Inventory, log_path: Path
) -> None:
    """Say once whether the program uses the card: as soon as it does, or after half a minute."""
    began_s = time.monotonic()
    watch = StartWatch(target, child.pid, inventory.cards, is_wsl=inventory.is_wsl)
    reader = SensorReader(period_s=_LOOK_EVERY_S, log_path=log_path)
    try:
        for event in reader.readings():
            if child.poll() is not None:
                return
            if isinstance(event, Reading):
                watch.look(event, time.monotonic() - began_s)
                if watch.is_settled:
                    note(watch.notice.sentence)
                    return
    finally:
        reader.close()


_RUN = Command(
    about=(
        "Start a program so that it uses one card and no other, and say whether it does. Its exit "
        "status is this command's."
    ),
    run=_start,
    options=(
        Option("--on-card", "a number, a UUID or “cpu”; a wrong one lists them", metavar="CARD",
               required=True),
        Option("--print", "only print the line for cmd, PowerShell and sh", action="store_true"),
        Option("program", "a program, a .bat or a shortcut, and its arguments",
               nargs=argparse.REMAINDER, metavar="-- COMMAND"),
    ),
    json="",
)  # fmt: skip
COMMANDS = {"place": _PLACE, "pitfall": _PITFALL, "run": _RUN}
