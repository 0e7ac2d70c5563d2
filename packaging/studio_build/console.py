"""What the build says, and how it fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class BuildError(Exception):
    """The build cannot go on; the text says why, and what to do."""


def end_as_exception() -> None:
    """Let a build that is ended from outside remove its folder, which takes up to 1 GB."""
    for name in ("SIGTERM", "SIGHUP"):
        if number := getattr(signal, name, None):
            signal.signal(number, lambda got, _: sys.exit(128 + got))


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


def run(
    command: Sequence[str],
    *,
    given: bytes | None = None,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> bytes:
    """Run a program of the build; return what it prints.

    Args:
        command: its words.
        given: its input.
        folder: where it runs; None is this process's.
        environ: variables on top of this process's.

    Raises:
        BuildError: it is not here, or it failed.
    """
    try:
        done = subprocess.run(
            command, input=given, cwd=folder, env={**os.environ, **(environ or {})},
            capture_output=True, check=False,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise BuildError(
            f"There is no {command[0]}: build.py --help says what it needs."
        ) from error
    if done.returncode != 0:
        said = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
        raise BuildError(f"{Path(command[0]).name}: {said[-2000:]}")
    return done.stdout
