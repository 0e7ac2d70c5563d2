"""The options of ``gpu-studio check``; every mistake gets a one-sentence error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.cli.parser import device_address
from gpu_studio.cli.status import WrongUseError

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from gpu_studio.cli.check import CheckRequest
    from gpu_studio.cli.parser import Commands
    from gpu_studio.core.messages.check_messages import StageName

_ABOUT = """\
Check whether a card is sound: load, compute, layouts, memory, link, and a cool-down. Without a
card, the check runs on the CPU, so that you can see what it does. If a crash or a restart cuts a
check off, the same command continues it within a day. Exit status: 0 if the check passed, otherwise
1. A pass applies to what was tested and to nothing else."""


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    check = commands.add_parser(
        "check",
        help="check whether a card computes and remembers without errors",
        description=_ABOUT,
        allow_abbrev=False,
    )
    check.add_argument(
        "--device", metavar="D", type=device_address,
        help="cpu, or a card (default: the first card that PyTorch can use, otherwise cpu)",
    )  # fmt: skip
    check.add_argument(
        "--minutes", metavar="N", default="6",
        help="1 (a glance), 6 (normal, the default) or 480 (overnight)",
    )  # fmt: skip
    check.add_argument(
        "--stage", metavar="S[,S…]",
        help="only these: load, compute, layouts, memory, link, cool (default: all)",
    )  # fmt: skip
    check.add_argument(
        "--plant", metavar="KIND",
        help="make a fault on purpose, to see it found: bit, stuck, swap, drop, slow or throttle",
    )  # fmt: skip
    check.add_argument("--json", action="store_true", help="print JSON, one event per line")
    check.set_defaults(run=_run)


def _run(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.check import run_check

    return run_check(_request(options), log_path, as_json=options.json)


def _request(options: argparse.Namespace) -> CheckRequest:
    from gpu_studio.cli.check import CheckRequest
    from gpu_studio.core.check.stages import CHECK_MINUTES
    from gpu_studio.core.messages.check_messages import PLANT_KINDS

    lengths = {str(minutes): minutes for minutes in CHECK_MINUTES}
    if options.minutes not in lengths:
        raise WrongUseError(
            f"A check takes {' or '.join(lengths)} minutes, not “{options.minutes[:20]}”."
        )
    if options.plant is not None and options.plant not in PLANT_KINDS:
        raise WrongUseError(
            f"“{options.plant[:20]}” is no fault to make: choose {', '.join(PLANT_KINDS)}."
        )
    return CheckRequest(
        device=options.device,
        minutes=lengths[options.minutes],
        stages=_stages(options.stage),
        plant=options.plant,
    )


def _stages(text: str | None) -> tuple[StageName, ...]:
    from gpu_studio.core.check.stages import in_order
    from gpu_studio.core.messages.check_messages import STAGE_NAMES

    if text is None:
        return STAGE_NAMES
    names = text.replace(",", " ").split()
    wrong = [name for name in names if name not in STAGE_NAMES]
    if wrong or not names:
        named = f"“{wrong[0][:20]}” is no stage" if wrong else "Name a stage"
        raise WrongUseError(f"{named}: choose {', '.join(STAGE_NAMES)}.")
    return in_order(name for name in STAGE_NAMES if name in names)
