"""Run the tests for CUDA builds of PyTorch without a card, on stand-ins for the driver's libraries.

They need two separate environments, because their builds of PyTorch differ from the PC's: the
newest CUDA of the pinned version, and the newest PyPI build that has code for Maxwell, Pascal and
Volta.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from typing import TYPE_CHECKING

from studio_setup import stamp as stamps
from studio_setup.console import Log, TerminalConsole
from studio_setup.environment import (
    install_packages,
    lead_to,
    make_environment,
    require_space,
)
from studio_setup.launch import clean_environ, python_version_of
from studio_setup.lock import one_at_a_time
from studio_setup.pip_runner import Pip
from studio_setup.stamp import Verdict
from studio_setup.suite import run_suite

if TYPE_CHECKING:
    from pathlib import Path

    from studio_setup.console import Console

_SUITE = "tests/soft"
# Three equals signs: PyPI's CUDA build, never a local +cpu one. Then the newest Python of each, and
# the tests to run: the whole suite, or the part about old cards.
_BUILDS: tuple[tuple[str, str, tuple[int, int], tuple[str, ...]], ...] = (
    ("cu130", "torch===2.13.0", (3, 14), ()),
    ("cu126", "torch===2.7.1", (3, 13), ("-m", "old_cards")),
)
_DISK_BYTES = 6_000_000_000
DISCARD = "--discard"


def why_skipped(root: Path) -> str | None:
    """Return why these tests cannot run here, or None."""
    if not (root / _SUITE).is_dir():
        return f"there is no folder {_SUITE}."
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return "the stand-ins for a card are for Linux on x86-64."
    if shutil.which("gcc") is None:
        return "the stand-ins for a card are compiled with gcc, which is not installed."
    return None


def test_with_soft_cards(root: Path, arguments: list[str]) -> int:
    """Create the environments and run the suite in each.

    Args:
        root: The checkout.
        arguments: For pytest; with `DISCARD` among them, each environment is removed after its
            tests, so that the disk needs room for one.

    Returns:
        0 if every suite passed or was skipped, otherwise the first other exit status.

    Raises:
        SetupError: An environment could not be created.
    """
    console = TerminalConsole()
    if reason := why_skipped(root):
        console.note(f"Soft cards: skipped, {reason}")
        return 0
    statuses = []
    is_kept = DISCARD not in arguments
    rest = [argument for argument in arguments if argument != DISCARD]
    os.chdir(root)
    for tag, requirement, newest_python, part in _BUILDS:
        if sys.version_info[:2] > newest_python:
            console.note(f"Soft cards {tag}: skipped, {requirement} has no file for this Python.")
            continue
        environment = root / f".venv-soft-{tag}"
        _set_up(root, environment, requirement, console)
        console.note(f"Soft cards {tag}: {requirement}")
        python = stamps.python_in(str(environment))
        options = ["-c", f"{_SUITE}/pytest.ini", "--rootdir", ".", _SUITE, *part, *rest]
        environ = clean_environ() | {"QT_QPA_PLATFORM": "offscreen"}
        statuses.append(run_suite(python, environ, options, needs_quiet=True))
        if not is_kept:
            shutil.rmtree(environment)
    return next((status for status in statuses if status), 0)


def _set_up(root: Path, environment: Path, requirement: str, console: Console) -> None:
    present = stamps.present_facts(str(root), str(environment))
    present["torch"] = requirement
    with one_at_a_time(root / ".setup" / "lock", console) as pass_fds:
        stamp = stamps.read_stamp(str(environment))
        python = stamps.python_in(str(environment))
        verdict = stamps.judge(stamp, present, (), None, lambda: python_version_of(python))
        if stamp is None or stamp.get("torch") != requirement:
            verdict = Verdict.BUILD
        if verdict is Verdict.FRESH:
            return
        log = Log(root / ".setup" / f"log-{environment.name}.txt")
        console.note(f"Setting up {environment} with {requirement} (once, about 4 GB).")
        if verdict is Verdict.BUILD:
            require_space(root, _DISK_BYTES)
            make_environment(environment, console, log, pass_fds)
        stamps.remove_stamp(str(environment))
        pip = Pip(environment, console, log, pass_fds)
        if not pip.install(requirement):
            raise pip.failure(f"Installing {requirement}")
        install_packages(pip, root, ("test",), torch=requirement)
        lead_to(environment, root)
        stamps.write_stamp(str(environment), present)
