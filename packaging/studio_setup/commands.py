"""The commands of bootstrap.py. Runs at every start, so it imports other modules only if needed."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from studio_setup.launch import become, clean_environ, show_error, start_detached

if TYPE_CHECKING:
    from pathlib import Path

    from studio_setup.need import Need

_CALL = (
    r"py packaging\bootstrap.py" if sys.platform == "win32" else "python3 packaging/bootstrap.py"
)
USAGE = f"""usage: {_CALL} [--torch TAG] [--packages newest] [--progress window] COMMAND

  run [ARGS...]              set up if needed, then open the window (or run GPU Studio with ARGS)
  test [PYTEST ARGS...]      set up with the test dependencies, then run the whole test suite
  test --soft-cards [ARGS]   run the tests for CUDA builds of PyTorch on simulated cards; with
                             --discard, remove each of the two environments after its tests
  test --windows [ARGS]      run the tests in Windows under Wine (Debian on x86-64)
  shortcut                   put GPU Studio in the applications menu and on the desktop

  --torch TAG                use this build of PyTorch from now on: cpu, cu126, cu130 or auto
  --packages newest          use the newest packages; "tested" goes back to the tested ones
  --progress window          show the setup's progress in a small window
"""
_COMMANDS = ("run", "test", "shortcut")
# The values of each option; --torch takes the tag of any build of PyTorch.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "--torch": (),
    "--progress": ("window", "terminal"),
    "--packages": ("tested", "newest"),
}
_SOFT_CARDS = "--soft-cards"
_WINDOWS = "--windows"


class WrongUseError(Exception):
    """The command line makes no sense; the text is one line."""


class Request(NamedTuple):
    """A command line.

    Attributes:
        command: "run", "test", "shortcut" or "help".
        arguments: The arguments after the command.
        build: The requested build of PyTorch, or None.
        in_window: Whether to show the progress in a window.
        packages: "tested" or "newest" if requested, otherwise None.
    """

    command: str
    arguments: list[str]
    build: str | None = None
    in_window: bool = False
    packages: str | None = None


def parse(arguments: list[str]) -> Request:
    """Read the command line; the program gets the arguments after the command.

    Raises:
        WrongUseError: There is no such command or option.
    """
    build, progress, packages = None, "terminal", None
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-h", "--help"):
            return Request("help", [])
        if option not in _OPTIONS or not rest:
            raise WrongUseError(f"{option} is not an option here, or its value is missing.")
        value = rest.pop(0)
        if option == "--torch":
            build = value
            continue
        if value not in _OPTIONS[option]:
            choices = " or ".join(_OPTIONS[option])
            raise WrongUseError(f"{option} takes {choices}, not {value}.")
        if option == "--packages":
            packages = value
        else:
            progress = value
    if not rest:
        return Request("help", [])
    command = rest.pop(0)
    if command not in _COMMANDS:
        raise WrongUseError(f"There is no command {command}: use {', '.join(_COMMANDS)}.")
    return Request(command, rest, build, progress == "window", packages)


def run_command(root: Path, arguments: list[str]) -> int:
    """Run the command.

    Args:
        root: The checkout.
        arguments: The command line without the script's name.

    Returns:
        The exit status: the program's, or 1 if the setup failed, 2 for wrong use.
    """
    try:
        request = parse(arguments)
    except WrongUseError as error:
        show_error(f"{error} For help, type: {_CALL} --help")
        return 2
    if request.command == "help":
        print(USAGE, end="")
        return 0 if arguments else 2
    from studio_setup.console import SetupError

    try:
        return _start(root, request)
    except SetupError as error:
        show_error(str(error))
        return 1
    except OSError as error:
        show_error(f"The setup stopped: {error}.")
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next start continues from here.", file=sys.stderr)
        return 130


def _start(root: Path, request: Request) -> int:
    if request.command == "test" and _SOFT_CARDS in request.arguments:
        from studio_setup.soft_cards import test_with_soft_cards

        rest = [argument for argument in request.arguments if argument != _SOFT_CARDS]
        return test_with_soft_cards(root, rest)
    need = need_of(root, request)
    if not need.is_met() and not _set_up(need, request.in_window):
        return 1
    if request.command == "test":
        from studio_setup.suite import run_suite

        os.chdir(root)
        if _WINDOWS in request.arguments:
            rest = [argument for argument in request.arguments if argument != _WINDOWS]
            return become([need.python, "-m", "tests.windows", *rest], clean_environ())
        environ = clean_environ() | {"QT_QPA_PLATFORM": "offscreen"}
        return run_suite(need.python, environ, request.arguments)
    if request.command == "shortcut":
        return _make_shortcut(root)
    if need.opens_window and sys.stdin is not None and sys.stdin.isatty() and need.offer_is_due():
        _offer_shortcut(root)
    command = [need.python, "-m", "gpu_studio", *request.arguments]
    if request.in_window and sys.platform == "win32":
        return start_detached(
            [os.path.join(os.path.dirname(need.python), "pythonw.exe"), *command[1:]],
            clean_environ(),
        )
    return become(command, clean_environ())


def need_of(root: Path, request: Request) -> Need:
    """Return a command's needs from the environment."""
    from studio_setup.need import Need, has_display

    is_test = request.command == "test"
    has_screen = not is_test and has_display(os.environ)
    shows_window = request.command == "run" and not request.arguments and has_screen
    extras = ("lint", "test") if is_test else ()
    return Need(root, extras, is_test or shows_window, has_screen, request.build, request.packages)


def _set_up(need: Need, in_window: bool) -> bool:
    from studio_setup.console import TerminalConsole
    from studio_setup.setting_up import SetUp

    if in_window:
        from studio_setup.progress_window import show_progress

        shown = show_progress(lambda console: SetUp(need, console).run())
        if shown is not None:
            return shown
    SetUp(need, TerminalConsole()).run()
    return True


def _make_shortcut(root: Path) -> int:
    from studio_setup.shortcut import make_shortcut

    for path in make_shortcut(root):
        print(f"Made {path}")
    return 0


def _offer_shortcut(root: Path) -> None:
    print(
        "Put GPU Studio in the applications menu and on the desktop? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        _make_shortcut(root)
    else:
        print(f"You can do this later: {_CALL} shortcut", file=sys.stderr)
