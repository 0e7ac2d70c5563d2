"""``gpu-studio place``, ``pitfall`` and ``run``: the window's Switcher, by the same engine."""

from __future__ import annotations

import argparse
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import Printer
from gpu_studio.cli.command import (
    JSON_OBJECT,
    Option,
    WrongUseError,
    command,
    group,
    no_such,
)
from gpu_studio.cli.output import TerminalTable, give, note, print_line
from gpu_studio.cli.pc import TARGET, addresses, read_inventory, started_engine
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.access import usable_cards
from gpu_studio.core.devices.devices import Inventory, Reading
from gpu_studio.core.devices.link import Link, widest_link
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages import pitfall_messages as pitfalls
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.placement_messages import PlaceFinished, PlaceModel, PlaceRow
from gpu_studio.core.switcher import program_start as start
from gpu_studio.core.switcher.pitfall_words import format_figure, is_disturbed
from gpu_studio.core.switcher.pitfalls import PITFALLS
from gpu_studio.core.switcher.placement_words import MODELS, explain_move
from gpu_studio.core.switcher.start_watch import StartWatch
from gpu_studio.core.tensors import DTYPES
from gpu_studio.hardware.client import SensorReader
from gpu_studio.process.child_call import call_child
from gpu_studio.process.started_program import StartFailedError, shell_status, start_program

# ── place ────────────────────────────────────────────────────────────────────────────────────────

_COLUMNS = (
    ("name", 24), ("shape", 16), ("type", 9), ("bytes", -11), ("before", 7), ("after", 7),
)  # fmt: skip


@command(
    Option("model", "a model (see “place list”)", metavar="MODEL"),
    Option(
        "--device", "cpu, or a card such as cuda:0", metavar="D", type=types.device, required=True
    ),
    Option("--dtype", "convert floating-point tensors to this dtype", choices=DTYPES, default=""),
    Option(
        "--then", "then move it to another device, for example back to cpu; repeatable",
        metavar="D", type=types.device, action="append", default=[],
    ),
)  # fmt: skip
def _move(options: argparse.Namespace, log_path: Path) -> int:
    """Move a model to a device.

    Shows each tensor's device before and after, the time and memory, and proof that nothing
    changed.
    """
    model, names = options.model, [one.name for one in MODELS]
    if model not in names:
        raise no_such("model", model, names)
    moves = [
        PlaceModel(model=model, device=device, dtype=options.dtype)
        for device in (options.device, *options.then)
    ]
    with started_engine(log_path, is_json=options.json) as (work, _described):
        printer = _MovePrinter(log_path)
        work.run(printer.steps(moves), printer)
    return work.exit_status(is_done=printer.moves == len(moves))


@command(json=JSON_OBJECT)
def _list_models(options: argparse.Namespace, _log_path: Path) -> None:
    """List the built-in models."""
    lines = (f"{model.name:<12} {model.title}: {model.sentence}" for model in MODELS)
    give("models", MODELS, lines, options, name="models")


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
                shape = " × ".join(map(str, event.shape)) or "scalar"
                self._table.print_row(
                    [event.name, shape, event.dtype, str(event.bytes), event.device_before,
                     event.device_after]
                )  # fmt: skip
            case PlaceFinished():
                print_line()
                print_line(explain_move(event, _link(self._device, self._log_path)))


def _link(device: str, log_path: Path) -> Link | None:
    """Return the link to the card of a move; None for the CPU or if it is unknown."""
    if is_cpu(device):
        return None
    try:
        cards = read_inventory(log_path).cards
    except StudioError:
        return None
    return next((widest_link(card) for card in cards if card.address == device), None)


# ── pitfall ──────────────────────────────────────────────────────────────────────────────────────


@command(
    Option("name", "the pitfall; see “pitfall list”", metavar="NAME"),
    types.CARD_OR_CPU,
)
def _run_pitfall(options: argparse.Namespace, log_path: Path) -> int:
    """Make a common mistake on purpose, then fix it.

    See the real error or slow time, why it happens, and the result after the fix.
    """
    with started_engine(log_path, is_json=options.json) as (work, described):
        printer = _PitfallPrinter(_find(options.name, described))
        device = options.device or next(iter(usable_cards(described)), addresses(described)[0])
        work.run([pitfalls.RunPitfall(name=options.name, device=device)], printer)
    done = printer.finished
    in_doubt = done is not None and is_disturbed(done.broken, done.fixed)
    return work.exit_status(is_done=done is not None, in_doubt=in_doubt)


@command(json=JSON_OBJECT)
def _list_pitfalls(options: argparse.Namespace, _log_path: Path) -> None:
    """List the pitfalls."""
    lines = (f"{pitfall.name:<25} {pitfall.sentence}" for pitfall in PITFALLS)
    give("pitfalls", PITFALLS, lines, options, name="pitfalls")


class _PitfallPrinter(Printer):
    """The two parts of a pitfall."""

    def __init__(self, pitfall: pitfalls.PitfallDescription) -> None:
        self._pitfall = pitfall
        self.finished: pitfalls.PitfallFinished | None = None

    def apply(self, event: Event) -> str:
        if isinstance(event, pitfalls.PitfallFinished):
            self.finished = event
        if isinstance(event, pitfalls.PitfallStarted):
            return f"{self._pitfall.title}: {event.part} …"
        return ""

    def show(self, event: Event) -> None:
        if isinstance(event, pitfalls.PitfallFinished):
            for line in _pitfall_lines(self._pitfall, event):
                print_line(line)


def _find(name: str, description: EngineDescribed) -> pitfalls.PitfallDescription:
    known = {pitfall.name: pitfall for pitfall in description.pitfalls}
    if name not in known:
        raise no_such("pitfall", name, known)
    return known[name]


def _pitfall_lines(
    pitfall: pitfalls.PitfallDescription, finished: pitfalls.PitfallFinished
) -> Iterator[str]:
    yield f"{pitfall.title}, with {finished.device}"
    for outcome in filter(None, (finished.broken, finished.fixed)):
        yield ""
        yield f"{outcome.part.capitalize()}: {outcome.sentence}"
        yield from (f"    {line}" for line in outcome.error.splitlines())
        yield from (f"    {one.title}: {format_figure(one)}" for one in outcome.figures)
        if outcome.stand_in:
            yield f"    ({outcome.stand_in})"
        if outcome is finished.broken:
            yield ""
            yield f"Why: {pitfall.why}"
            if pitfall.remark:
                yield f"Note: {pitfall.remark}"
            yield f"The fix: {pitfall.remedy}"
    for sentence in filter(None, (finished.comparison, finished.untested)):
        yield ""
        yield sentence


# ── run ──────────────────────────────────────────────────────────────────────────────────────────

_LOOK_EVERY_S = 1.0


@command(
    Option(
        "--on-card", "a number, a UUID or “cpu”; a wrong one lists them", metavar="CARD",
        required=True,
    ),
    Option("--print", "only print the line for cmd, PowerShell and sh", action="store_true"),
    Option(
        "program", "a program, a .bat or a shortcut, and its arguments",
        nargs=argparse.REMAINDER, metavar="-- COMMAND",
    ),
    json="",
)  # fmt: skip
def _start(options: argparse.Namespace, log_path: Path) -> int | None:
    """Start a program so that it uses one card and no other, and say whether it does.

    Its exit status is this command's.
    """
    words = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not words:
        message = "Name the program to start after “--”: run --on-card 0 -- ollama serve"
        raise WrongUseError(message)
    if TARGET.pc is not None:
        message = "A program is started on this PC only: run the command there."
        raise WrongUseError(message)
    inventory = read_inventory(log_path)
    target, variables = _chosen(options.on_card, inventory)
    if options.print:
        for shell, line in start.shell_lines(variables, words).items():
            print_line(f"{shell}:")
            print_line(f"    {line}")
        return None
    set_words = " ".join(f"{name}={value}" for name, value in variables.items())
    note(f"Starting on the {target.title}: {set_words}")
    return _follow(words, variables, target, inventory, log_path)


def _chosen(word: str, inventory: Inventory) -> tuple[start.StartTarget, dict[str, str]]:
    known = start.vulkan_devices(call_child, {})
    try:
        target = start.target_named(word, start.targets(inventory.cards, known or ()))
    except ValueError as error:
        raise WrongUseError(str(error)) from None
    drawing = start.drawing_variables(target, inventory.cards)
    order = start.vulkan_devices(call_child, drawing) if known is not None and drawing else known
    return target, start.start_variables(target, inventory.cards, order)


def _follow(
    words: list[str],
    variables: dict[str, str],
    target: start.StartTarget,
    inventory: Inventory,
    log_path: Path,
) -> int:
    """Start it, and wait until it ends: what ends this command in a terminal reaches it too."""
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    kept = [(one, signal.getsignal(one)) for one in numbers]
    try:
        # Ctrl+C goes to both: the program decides. An ignored signal would stay so in it.
        signal.signal(signal.SIGINT, lambda *_: None)
        child = start_program(words, variables, start.CHOOSING)
        for one in numbers[1:]:
            signal.signal(one, lambda number, _frame: child.send_signal(number))
        watching = (child, target, inventory, log_path)
        threading.Thread(target=_watch, args=watching, daemon=True).start()
        return shell_status(child.wait())
    except StartFailedError as error:
        raise StudioError(FailureKind.INTERNAL, str(error)) from error
    finally:
        for one, handler in kept:
            signal.signal(one, handler)


def _watch(
    child: subprocess.Popen[bytes], target: start.StartTarget, inventory: Inventory, log_path: Path
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


COMMANDS = {
    "place": group(
        "Move a model to a device, and see that nothing changed. “place MODEL” is "
        "short for “place move MODEL”.",
        {"move": _move, "list": _list_models},
        usual_part="move",
    ),
    "pitfall": group(
        "Make a common mistake on purpose, and see the fix. “pitfall NAME” is short for “pitfall "
        "run NAME”.",
        {"run": _run_pitfall, "list": _list_pitfalls},
        usual_part="run",
    ),
    "run": _start,
}
