"""The options of ``gpu-studio place``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.cli.parser import device_address
from gpu_studio.cli.status import WrongUseError
from gpu_studio.core.tensors import DTYPES

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from gpu_studio.cli.parser import Commands


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
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
    place.add_argument("--json", action="store_true", help="one event a line on standard output")
    place.add_argument("--list", action="store_true", help="list the built-in models and end")
    place.set_defaults(run=_run)


def _run(options: argparse.Namespace, log_path: Path) -> int:
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
    return run_place(options.thing, options.device, options.dtype, log_path, as_json=options.json)
