"""The terminal's commands and options; bench and memory have separate files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

from gpu_studio.cli.status import WrongUseError
from gpu_studio.core.tensors import DTYPES

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TypeAlias

    # The subparsers to which each add_… function adds its command.
    Commands: TypeAlias = "argparse._SubParsersAction[OneLineParser]"

_ABOUT_DOCTOR = """\
Checks whether PyTorch can use your cards, and says what to do if it cannot. Runs a real kernel on
each card, in a separate process. Exit status: 0 if PyTorch can use a card, otherwise 1."""


def device_address(text: str) -> str:
    """Return a device's address; ``cuda`` alone is PyTorch's current card, initially number 0."""
    return "cuda:0" if text == "cuda" else text


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage text."""

    def error(self, message: str) -> NoReturn:
        """Raise `WrongUseError`."""
        raise WrongUseError(message)


def add_devices(commands: Commands) -> None:
    """Add ``gpu-studio devices``."""
    devices = commands.add_parser(
        "devices",
        help="list the devices in this PC, and whether PyTorch can use them",
        description="List the devices in this PC, and whether PyTorch can use them.",
        allow_abbrev=False,
    )
    devices.add_argument("--json", action="store_true", help="print one JSON object")
    devices.set_defaults(run=_run_devices)


def _run_devices(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.devices import show_devices

    return show_devices(log_path, as_json=options.json)


def add_doctor(commands: Commands) -> None:
    """Add ``gpu-studio doctor``."""
    doctor = commands.add_parser(
        "doctor",
        help="find out why PyTorch cannot use your card, and what to do next",
        description=_ABOUT_DOCTOR,
        allow_abbrev=False,
    )
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    doctor.add_argument(
        "--no-kernel",
        action="store_true",
        help="check versions and capabilities only; creates no CUDA context",
    )
    doctor.set_defaults(run=_run_doctor)


def _run_doctor(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.doctor import examine

    return examine(log_path, as_json=options.json, with_kernel=not options.no_kernel)


def add_engine(commands: Commands) -> None:
    """Add ``gpu-studio engine``."""
    engine = commands.add_parser(
        "engine",
        help="list or install the builds of PyTorch that GPU Studio uses",
        description="List the installed builds of PyTorch and the one for this PC's cards. With a "
        "build, install it and use it from now on.",
        allow_abbrev=False,
    )
    engine.add_argument(
        "build", metavar="BUILD", nargs="?", default="",
        help="install cpu, cu126, cu130, or auto: the build for this PC's cards",
    )  # fmt: skip
    engine.add_argument("--json", action="store_true", help="print JSON, one object per line")
    engine.set_defaults(run=_run_engine)


def _run_engine(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.engine import install_engine, list_engines

    if options.build:
        return install_engine(options.build, log_path, as_json=options.json)
    return list_engines(log_path, as_json=options.json)


def add_place(commands: Commands) -> None:
    """Add ``gpu-studio place``."""
    place = commands.add_parser(
        "place",
        help="move a model or a tensor file to a device, and check that nothing changed",
        description="Move a model or a tensor file to a device. Shows each tensor's device before "
        "and after, the time and memory, and proof that nothing changed.",
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
        help="convert floating-point tensors to float16, bfloat16, float32 or float64",
    )  # fmt: skip
    place.add_argument(
        "--then", metavar="D", type=device_address, action="append", default=[],
        help="then move it to another device, for example back to cpu; repeatable",
    )  # fmt: skip
    place.add_argument("--json", action="store_true", help="print JSON, one event per line")
    place.add_argument("--list", action="store_true", help="list the built-in models and exit")
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
            f"“{options.dtype[:20]}” is not a supported dtype: choose {', '.join(DTYPES)}."
        )
    devices = (options.device, *options.then)
    return run_place(options.thing, devices, options.dtype, log_path, as_json=options.json)


def add_pitfall(commands: Commands) -> None:
    """Add ``gpu-studio pitfall``."""
    pitfall = commands.add_parser(
        "pitfall",
        help="make a common mistake on purpose, and see the fix",
        description="Make a common mistake on purpose: see the real error or slow time, why it "
        "happens, and the result after the fix.",
        allow_abbrev=False,
    )
    pitfall.add_argument("name", nargs="?", metavar="NAME", help="the pitfall; see --list")
    pitfall.add_argument(
        "--device",
        metavar="D",
        type=device_address,
        help="cpu, or a card (default: the first card that PyTorch can use, otherwise cpu)",
    )
    pitfall.add_argument("--json", action="store_true", help="print JSON, one event per line")
    pitfall.add_argument("--list", action="store_true", help="list the pitfalls and exit")
    pitfall.set_defaults(run=_run_pitfall)


def _run_pitfall(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.pitfall import list_pitfalls, run_pitfall

    if options.list:
        return list_pitfalls(log_path, as_json=options.json)
    if not options.name:
        raise WrongUseError("Name a pitfall; “gpu-studio pitfall --list” shows them all.")
    return run_pitfall(options.name, options.device, log_path, as_json=options.json)
