"""The terminal's commands and their options; bench and memory have files of their own."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

from gpu_studio.cli.status import WrongUseError
from gpu_studio.core.tensors import DTYPES

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TypeAlias

    # One command is added to these.
    Commands: TypeAlias = "argparse._SubParsersAction[OneLineParser]"

_ABOUT_DOCTOR = """\
Says whether PyTorch can use this PC's cards, and what to do where it cannot. A real kernel is run
on each card, in a process of its own. The exit status is 0 when a card can be used, 1 when not."""


def device_address(text: str) -> str:
    """Return a device's address; ``cuda`` alone is PyTorch's current card, at first number 0."""
    return "cuda:0" if text == "cuda" else text


class OneLineParser(argparse.ArgumentParser):
    """A parser whose mistakes are one line, without the usage in front."""

    def error(self, message: str) -> NoReturn:
        """Raise `WrongUseError`."""
        raise WrongUseError(message)


def add_devices(commands: Commands) -> None:
    """Add ``gpu-studio devices``."""
    devices = commands.add_parser(
        "devices",
        help="what is in this PC, and can PyTorch use it?",
        description="What is in this PC, and can PyTorch use it?",
        allow_abbrev=False,
    )
    devices.add_argument("--json", action="store_true", help="one JSON object on standard output")
    devices.set_defaults(run=_run_devices)


def _run_devices(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.devices import show_devices

    return show_devices(log_path, as_json=options.json)


def add_doctor(commands: Commands) -> None:
    """Add ``gpu-studio doctor``."""
    doctor = commands.add_parser(
        "doctor",
        help="why can PyTorch not use my card, and what next?",
        description=_ABOUT_DOCTOR,
        allow_abbrev=False,
    )
    doctor.add_argument("--json", action="store_true", help="one JSON object on standard output")
    doctor.add_argument(
        "--no-kernel",
        action="store_true",
        help="judge by lists and versions alone: makes no CUDA context",
    )
    doctor.set_defaults(run=_run_doctor)


def _run_doctor(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.doctor import examine

    return examine(log_path, as_json=options.json, with_kernel=not options.no_kernel)


def add_place(commands: Commands) -> None:
    """Add ``gpu-studio place``."""
    place = commands.add_parser(
        "place",
        help="move a model or a file of tensors to a device, with the proof",
        description="Move a model or a file of tensors to a device: each tensor's place before and "
        "after, what it cost, and the proof that nothing changed.",
        allow_abbrev=False,
    )
    place.add_argument(
        "thing", metavar="MODEL|FILE", nargs="?",
        help="linear_10, linear_1000, mlp, convnet, or a file that torch.save wrote",
    )  # fmt: skip
    place.add_argument(
        "--device", metavar="D", type=device_address, help="cpu, or a card such as cuda:0"
    )
    place.add_argument(
        "--dtype", metavar="D", default="",
        help="what floating-point tensors become: float16, bfloat16, float32, float64",
    )  # fmt: skip
    place.add_argument(
        "--then", metavar="D", type=device_address, action="append", default=[],
        help="move it on from there, for example back to cpu; may be given several times",
    )  # fmt: skip
    place.add_argument("--json", action="store_true", help="one event a line on standard output")
    place.add_argument("--list", action="store_true", help="list the built-in models and end")
    place.set_defaults(run=_run_place)


def _run_place(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.place import list_models, run_place

    if options.list:
        return list_models(log_path, as_json=options.json)
    if not options.thing:
        raise WrongUseError("Name a model or a file; “gpu-studio place --list” shows the models.")
    if not options.device:
        raise WrongUseError("Name a device with --device: cpu, or a card such as cuda:0.")
    if options.dtype and options.dtype not in DTYPES:
        raise WrongUseError(
            f"“{options.dtype[:20]}” is not a dtype of this program: choose {', '.join(DTYPES)}."
        )
    devices = (options.device, *options.then)
    return run_place(options.thing, devices, options.dtype, log_path, as_json=options.json)


def add_pitfall(commands: Commands) -> None:
    """Add ``gpu-studio pitfall``."""
    pitfall = commands.add_parser(
        "pitfall",
        help="fall into a common mistake on purpose, and see the fix",
        description="Fall into a common mistake on purpose: the real error or the real slow "
        "number, why, and the number with the fix.",
        allow_abbrev=False,
    )
    pitfall.add_argument("name", nargs="?", metavar="NAME", help="which one; see --list")
    pitfall.add_argument(
        "--device",
        metavar="D",
        type=device_address,
        help="cpu, or a card (default: the first that this PyTorch can use, else cpu)",
    )
    pitfall.add_argument("--json", action="store_true", help="one event a line on standard output")
    pitfall.add_argument("--list", action="store_true", help="list the pitfalls and end")
    pitfall.set_defaults(run=_run_pitfall)


def _run_pitfall(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.pitfall import list_pitfalls, run_pitfall

    if options.list:
        return list_pitfalls(log_path, as_json=options.json)
    if not options.name:
        raise WrongUseError("Name a pitfall; “gpu-studio pitfall --list” shows those there are.")
    return run_pitfall(options.name, options.device, log_path, as_json=options.json)
