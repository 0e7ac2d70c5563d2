"""The terminal commands.

A mistake is one line on standard error, and with ``--json`` one object as well. A command's module
is imported only if the command is named: ``--help`` must not wait for numpy.
"""

from __future__ import annotations

import argparse
import codecs
import errno
import logging
import os
import sys
import unicodedata
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from gpu_studio.cli.command import (
    DONE,
    FAILED,
    INTERRUPTED,
    WRONG_USE,
    Command,
    CommandParser,
    WrongUseError,
)
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.program_form import own_program
from gpu_studio.core.program_version import program_title
from gpu_studio.core.resources import MissingResourceError

# The file of each, and its line in --help, in that order.
COMMANDS = {
    "devices": ("devices", "list the devices in this PC, and whether PyTorch can use them"),
    "doctor": ("devices", "find out why PyTorch cannot use your card, and what to do next"),
    "engine": ("engine", "list or install the builds of PyTorch that GPU Studio uses"),
    "race": ("race", "let the CPU and the GPU draw the same picture, in turns"),
    "bench": ("bench", "time a workload on the CPU and on your cards"),
    "standard": (
        "bench",
        "measure this PC: the same work everywhere, to compare it with another PC",
    ),
    "explain": ("memory", "explain an error of any program: what it means, and what to try there"),
    "memory": ("memory", "cause an out-of-memory error safely, see what fits, replay a history"),
    "check": ("check", "check whether a card computes and remembers without errors"),
    "place": (
        "switcher",
        "move a model to a device, and check that nothing changed",
    ),
    "run": ("switcher", "start a program so that it uses one card and no other"),
    "pitfall": ("switcher", "make a common mistake on purpose, and see the fix"),
    "completion": ("manual", "complete commands with Tab in your shell"),
    "manual": ("manual", "print the manual page"),
    "serve": ("serve", "answer another PC that reaches this one over ssh"),
}
# The reader has closed the pipe, as “| head” does. Windows reports "invalid argument" for it.
_PIPE_CLOSED = (errno.EPIPE, errno.EINVAL)
# The codec error handler that replaces characters which a terminal cannot show.
_LETTERS = "gpu_studio.letters"
_LETTERS_FOR = {
    "×": "x", "µ": "u", "“": '"', "”": '"', "’": "'", "…": "...", "°": "", "–": "-", "−": "-",
    "→": "->", "·": "|", "√": "sqrt ", "ł": "l", "Ł": "L", "ß": "ss",
}  # fmt: skip

_ABOUT = """\
See what your graphics card is, whether PyTorch can use it, how fast it is, and where its memory
goes. Without a command, the window opens."""
_EXAMPLES = (
    ("", "open the window"),
    ("devices", "what is in this PC"),
    ("doctor", "can PyTorch use it, and if not, what next?"),
    ("race learn", "let the CPU and the GPU learn a picture"),
    ("bench list", "what can be timed"),
    ("bench matmul --size 512,2048", "time it on every device"),
    ("bench matmul --sweep 64:4096", "find the size from which the GPU is faster"),
    ("bench elementwise --size 512 --dtype float32 --device cpu,cuda:0 --json", ""),
    ("bench replay run.jsonl", "replay runs saved with --save or --json"),
    ("standard --save my-pc.json", "measure this PC, to compare it with another"),
    ("check --time 6min", "is this card sound?"),
    ("explain error.txt", "what an error of ComfyUI, vLLM, … means"),
    ("place convnet --device cuda:0", "move a model, and see that nothing changed"),
    ("run --on-card 0 -- ollama serve", "start your program on one card"),
    ("pitfall mixed_devices", "make a common mistake, then fix it"),
    ("--on me@attic bench matmul", "time it on another PC"),
)


def main(arguments: Sequence[str]) -> int:
    """Run a command; return its exit status."""
    _prepare_output()
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    try:
        return _run(build_parser(arguments).parse_args(arguments))
    except WrongUseError as error:
        _complain(error, "wrong_use", arguments)
        return WRONG_USE
    except StudioError as error:
        _complain(error, error.kind.value, arguments)
        return FAILED
    except MissingResourceError as error:
        _complain(f"{error} Install GPU Studio again.", FailureKind.INTERNAL.value, arguments)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        # Discard the buffered rest. Otherwise Python would try to write it again on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno not in _PIPE_CLOSED:
            _complain(error.strerror or error)
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
    """Replace characters that the terminal cannot encode: "64 x 64" instead of a crash."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(map(_letters_for, text)), error.end


def _letters_for(sign: str) -> str:
    if sign in _LETTERS_FOR:
        return _LETTERS_FOR[sign]
    # A letter with an accent, as in a user or folder name, loses the accent.
    plain = unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode("ascii")
    return plain or "?"


def build_parser(arguments: Sequence[str] = (), program: str = "") -> CommandParser:
    """Return the parser of the command line; of the commands, only those named are complete.

    Args:
        arguments: the words of the command line.
        program: what starts the program; by default as it was started.
    """
    start = program or own_program().start
    parser = CommandParser(
        prog=start,
        description=_ABOUT,
        epilog=_examples(start),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "-V", "--version", action="version", version=program_title(), help="print the version"
    )
    parser.add_argument(
        "--on", metavar="[NAME=]HOST",
        help="use the devices of another PC: HOST as after ssh, NAME is what results call it",
    )  # fmt: skip
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (_, summary) in COMMANDS.items():
        command_parser = commands.add_parser(name, help=summary, allow_abbrev=False)
        if name in arguments:
            command_named(name).fill(command_parser)
    return parser


def command_named(name: str) -> Command:
    """Import a command with the file of its family."""
    command: Command = import_module(f"gpu_studio.cli.{COMMANDS[name][0]}").COMMANDS[name]
    return command


def _examples(start: str) -> str:
    lines = (f"  {start} {words:<34} {about}".rstrip() for words, about in _EXAMPLES)
    return "\n".join(("examples:", *lines))


def _run(options: argparse.Namespace) -> int:
    if options.command != "run":  # the user's program has its own PyTorch
        _use_installed_build()
    if options.on is not None:
        from gpu_studio.cli.pc import TARGET

        TARGET.use(options)
    if options.command is not None:
        from gpu_studio.cli.output import kept_quiet

        with kept_quiet(options.quiet):
            status: int | None = options.run(options, _start_log())
        return status or DONE
    from gpu_studio.cli.devices import show_first_look

    return show_first_look(_start_log())


def _use_installed_build() -> None:
    """Let every child import the PyTorch that this program has installed, if it installs one."""
    from gpu_studio.builds.shelf import own_shelf
    from gpu_studio.cli.pc import data_folder
    from gpu_studio.core.packages_folder import variables_for

    shelf = own_shelf(data_folder)
    if shelf is not None:
        os.environ.update(variables_for(shelf.used_folder()))


def _start_log() -> Path:
    """Log to the file that the window also uses; return its path for child processes."""
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


def _complain(error: object, kind: str = "", arguments: Sequence[str] = ()) -> None:
    sentence = " ".join(str(error).split())
    sys.stderr.write(f"gpu-studio: {sentence}\n")
    if "--json" in arguments:
        from gpu_studio.cli.output import print_json

        print_json("failure", {"kind": kind, "message": sentence})
