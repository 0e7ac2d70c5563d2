"""``gpu-studio pitfall``: the pitfalls in a terminal, with the same engine."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli.answers import answers, describe, describe_alone, own_engine
from gpu_studio.cli.screen import Progress, note, say, say_bytes
from gpu_studio.cli.status import DONE, FAILED, INTERRUPTED, WrongUseError
from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.pitfall_messages import (
    PitfallFailed,
    PitfallFinished,
    PitfallStarted,
    RunPitfall,
)
from gpu_studio.core.protocol import encode
from gpu_studio.core.switcher.pitfall_words import format_figure
from gpu_studio.core.switcher.usable_cards import usable_cards

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.cli.answers import Interrupt
    from gpu_studio.core.engine import Engine
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.pitfall_messages import PitfallDescription, PitfallOutcome

_WIDTH = 78
_PART_TITLES = {"broken": "Broken", "fixed": "Fixed"}


def run_pitfall(name: str, device: str | None, log_path: Path, *, as_json: bool) -> int:
    """Run a pitfall's broken and fixed code; return the exit status.

    Raises:
        WrongUseError: there is no such pitfall.
        StudioError: the engine does not start.
    """
    with Progress() as progress, own_engine(log_path) as (engine, interrupt):
        progress.show("Starting PyTorch …")
        description = describe(engine, interrupt)
        pitfall = _find(name, description)
        device = device or next(iter(usable_cards(description)), "cpu")
        progress.clear()
        request = RunPitfall(name=name, device=device)
        return _perform(engine, request, pitfall, interrupt, progress, as_json=as_json)


def list_pitfalls(log_path: Path, *, as_json: bool) -> int:
    """Print the pitfalls; return the exit status."""
    pitfalls = describe_alone(log_path).pitfalls
    if as_json:
        say_bytes(msgspec.json.encode({"pitfalls": pitfalls}) + b"\n")
        return DONE
    for pitfall in pitfalls:
        say(f"{pitfall.name:<25} {pitfall.sentence}")
    return DONE


def _find(name: str, description: EngineDescribed) -> PitfallDescription:
    for pitfall in description.pitfalls:
        if pitfall.name == name:
            return pitfall
    names = ", ".join(pitfall.name for pitfall in description.pitfalls)
    raise WrongUseError(f"There is no pitfall “{name[:40]}”: choose {names}.")


def _perform(
    engine: Engine,
    request: RunPitfall,
    pitfall: PitfallDescription,
    interrupt: Interrupt,
    progress: Progress,
    *,
    as_json: bool,
) -> int:
    status = FAILED
    for event in answers(engine, request, interrupt):
        progress.clear()
        if as_json:
            say_bytes(encode(event))
        match event:
            case PitfallStarted():
                progress.show(f"{pitfall.title}: {event.part} …")
            case PitfallFinished():
                status = DONE
                if not as_json:
                    _say_all(pitfall, event)
            case PitfallFailed() | RequestFailed():
                note(f"gpu-studio: {event.failure.message}")
            case EngineEnded():
                note(f"gpu-studio: {describe_exit(event.exit_code)}")
    return INTERRUPTED if interrupt.is_asked else status


def _say_all(pitfall: PitfallDescription, finished: PitfallFinished) -> None:
    say(f"{pitfall.title}, with {finished.device}")
    for outcome in (finished.broken, finished.fixed):
        if outcome is not None:
            _say_outcome(outcome)
        if outcome is finished.broken:
            say()
            _say_wrapped(f"Why: {pitfall.why}")
            if pitfall.remark:
                _say_wrapped(f"Note: {pitfall.remark}")
            _say_wrapped(f"The fix: {pitfall.remedy}")
    if finished.comparison:
        say()
        _say_wrapped(finished.comparison)


def _say_outcome(outcome: PitfallOutcome) -> None:
    say()
    _say_wrapped(f"{_PART_TITLES[outcome.part]}: {outcome.sentence}")
    for line in outcome.error.splitlines():
        _say_wrapped(line, indent="    ")
    for figure in outcome.figures:
        say(f"    {figure.title}: {format_figure(figure)}")
    if outcome.stand_in:
        _say_wrapped(f"({outcome.stand_in})", indent="    ")


def _say_wrapped(text: str, indent: str = "") -> None:
    for line in textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent):
        say(line)
