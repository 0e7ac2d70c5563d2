"""The commands of the terminal and their exit status: 0 done, 1 failed, 2 wrong use, 130 Ctrl-C.

A mistake is one line on standard error. Only what a command needs is imported, since answering
``--help`` must not take as long as importing numpy.
"""

from __future__ import annotations

import argparse
import codecs
import errno
import logging
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from gpu_studio.cli.status import DONE, FAILED, INTERRUPTED, WRONG_USE, WrongUseError
from gpu_studio.core.failure import StudioError
from gpu_studio.core.sizes import parse_dtypes, parse_sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_BUDGET_S = 3600.0
# “| head”: nobody wants to know more. Windows says "invalid argument" for it.
_NOBODY_READS = (errno.EPIPE, errno.EINVAL)
# How signs are encoded for a terminal that lacks them, and the name of that for Python's codecs.
_LETTERS = "gpu_studio.letters"
_LETTERS_FOR = {"×": "x", "µ": "u", "“": '"', "”": '"', "’": "'", "…": "...", "°": ""}

_ABOUT = """\
See what your graphics card is, whether PyTorch can use it, how fast it is, and where its memory
goes. Without a command, the window opens."""
_EXAMPLES = """\
examples:
  gpu-studio                                    open the window
  gpu-studio devices                            what is in this PC
  gpu-studio bench --list                       what can be timed
  gpu-studio bench matmul --size 512,2048       time it on every device
  gpu-studio bench elementwise --size 512 --dtype float32 --device cpu,cuda:0 --json"""


class OneLineParser(argparse.ArgumentParser):
    """A parser whose mistakes are one line, without the usage in front."""

    def error(self, message: str) -> NoReturn:
        """Raise `WrongUseError`."""
        raise WrongUseError(message)


def main(arguments: Sequence[str]) -> int:
    """Run a command; return its exit status."""
    _prepare_output()
    try:
        return _run(build_parser().parse_args(arguments))
    except WrongUseError as error:
        _complain(f"gpu-studio: {error}")
        return WRONG_USE
    except StudioError as error:
        _complain(f"gpu-studio: {error}")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        # What is still in the buffer goes nowhere, or the interpreter's end would try it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno not in _NOBODY_READS:
            _complain(f"gpu-studio: {error.strerror or error}")
        return FAILED


def _prepare_output() -> None:
    if sys.stdout is None:  # a shell's “>&-”, or Windows' program without a console
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    codecs.register_error(_LETTERS, _with_letters)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_LETTERS)


def _with_letters(error: UnicodeError) -> tuple[str, int]:
    """Answer for a terminal that does not know a sign: 64 x 64, and never a crash."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(_LETTERS_FOR.get(sign, "?") for sign in text), error.end


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = OneLineParser(
        prog="gpu-studio",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=OneLineParser)

    devices = commands.add_parser(
        "devices",
        help="what is in this PC, and can PyTorch use it?",
        description="What is in this PC, and can PyTorch use it?",
        allow_abbrev=False,
    )
    devices.add_argument("--json", action="store_true", help="one JSON object on standard output")

    bench = commands.add_parser(
        "bench",
        help="time a workload on the CPU and on the cards",
        description="Time a workload on the CPU and on the cards, and say which wins.",
        allow_abbrev=False,
    )
    bench.add_argument("workload", nargs="?", metavar="WORKLOAD", help="what to run; see --list")
    bench.add_argument(
        "--size", metavar="N[,N…]", default="512,1024,2048",
        help="sides of the square matrices (default: %(default)s)",
    )  # fmt: skip
    bench.add_argument(
        "--dtype", metavar="D[,D…]", default="float32",
        help="float16, bfloat16, float32, float64 (default: %(default)s)",
    )  # fmt: skip
    bench.add_argument(
        "--device", metavar="cpu[,cuda:0…]", help="where to run (default: everywhere)"
    )
    bench.add_argument(
        "--budget-s", metavar="S", default="2",
        help="seconds of timing for each run, beside its warm-up (default: %(default)s)",
    )  # fmt: skip
    bench.add_argument("--json", action="store_true", help="one event a line on standard output")
    bench.add_argument("--list", action="store_true", help="list the workloads and end")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.version:
        sys.stdout.write(f"GPU Studio {program_version()}\n")
        return DONE
    if options.command == "devices":
        from gpu_studio.cli.devices import show_devices

        return show_devices(_start_log(), as_json=options.json)
    if options.command == "bench":
        return _bench(options)
    from gpu_studio.cli.first_look import take_first_look

    return take_first_look(_start_log())


def _bench(options: argparse.Namespace) -> int:
    from gpu_studio.cli.bench import BenchRequest, list_workloads, run_bench

    if options.list:
        return list_workloads(_start_log(), as_json=options.json)
    if not options.workload:
        raise WrongUseError("Name a workload; “gpu-studio bench --list” shows those there are.")
    try:
        request = BenchRequest(
            workload=options.workload,
            sizes=tuple(parse_sizes(options.size)),
            dtypes=tuple(parse_dtypes(options.dtype)),
            devices=_parse_devices(options.device),
            budget_s=_parse_budget(options.budget_s),
        )
    except StudioError as error:
        raise WrongUseError(str(error)) from error
    return run_bench(request, _start_log(), as_json=options.json)


def _parse_devices(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    devices = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if not devices:
        raise WrongUseError("Name a device: cpu, or a card such as cuda:0.")
    return devices


def _parse_budget(text: str) -> float:
    try:
        budget_s = float(text)
    except ValueError:
        budget_s = math.nan
    if not 0 < budget_s <= _LONGEST_BUDGET_S:
        raise WrongUseError(
            f"“{text[:20]}” is not a time budget: give seconds, more than 0 and at most "
            f"{_LONGEST_BUDGET_S:.0f}."
        )
    return budget_s


def program_version() -> str:
    """Return this program's version, from its installation or from its checkout."""
    import re
    from importlib import metadata

    try:
        return metadata.version("gpu-studio")
    except metadata.PackageNotFoundError:
        project = Path(__file__).resolve().parent.parent.parent / "pyproject.toml"
        try:
            found = re.search(r'^version = "(.+)"$', project.read_text(encoding="utf-8"), re.M)
        except OSError:
            found = None
        return found[1] if found else "of unknown version"


def _start_log() -> Path:
    """Send the log to the file that the window uses too; return where children write theirs."""
    import platformdirs

    try:
        folder = platformdirs.user_log_path("gpu-studio", appauthor=False, ensure_exists=True)
        path = folder / "gpu-studio.log"
        logging.basicConfig(
            filename=path,
            encoding="utf-8",
            level=logging.INFO,
            format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        )
    except OSError:
        logging.disable()
        return Path(os.devnull)
    return path


def _complain(line: str) -> None:
    sys.stderr.write(" ".join(line.split()) + "\n")
