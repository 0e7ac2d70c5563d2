"""``gpu-studio pitfall``: the pitfalls in a terminal, with the same engine."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import Printer
from gpu_studio.cli.command import DONE, JSON_OBJECT, Command, Option, WrongUseError, did_you_mean
from gpu_studio.cli.engines import addresses, started_engine
from gpu_studio.cli.screen import print_line, print_list
from gpu_studio.core.devices.access import usable_cards
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.pitfall_messages import (
    PitfallDescription,
    PitfallFinished,
    PitfallOutcome,
    PitfallStarted,
    RunPitfall,
)
from gpu_studio.core.switcher.pitfall_words import format_figure, is_disturbed
from gpu_studio.core.switcher.pitfalls import PITFALLS

_PART_TITLES = {"broken": "Broken", "fixed": "Fixed"}


def _run(options: argparse.Namespace, log_path: Path) -> int:
    """Run a pitfall's broken and fixed code; return the exit status."""
    with started_engine(log_path, is_json=options.json) as (work, described):
        printer = _Printer(_find(options.name, described))
        device = options.device or next(iter(usable_cards(described)), addresses(described)[0])
        work.run([RunPitfall(name=options.name, device=device)], printer)
    done = printer.finished
    in_doubt = done is not None and is_disturbed(done.broken, done.fixed)
    return work.exit_status(is_done=done is not None, in_doubt=in_doubt)


class _Printer(Printer):
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
            _print_all(self._pitfall, event)


def _list(options: argparse.Namespace, _log_path: Path) -> int:
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


def _print_all(pitfall: PitfallDescription, finished: PitfallFinished) -> None:
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


_NAME = Option("name", "the pitfall; see “pitfall list”", metavar="NAME")
_ABOUT = (
    "Make a common mistake on purpose: see the real error or slow time, why it happens, and the "
    "result after the fix."
)
COMMAND = Command(
    about=_ABOUT + " “pitfall NAME” is short for “pitfall run NAME”.",
    parts={
        "run": Command(help="make a mistake, then fix it", about=_ABOUT, run=_run,
                       options=(_NAME, types.CARD_OR_CPU)),
        "list": Command(help="list the pitfalls", about="List the pitfalls.", run=_list,
                        json=JSON_OBJECT),
    },
    usual_part="run",
)  # fmt: skip
