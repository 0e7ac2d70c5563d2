"""The client of the setup: installs another build of PyTorch from the running window.

The setup is not a part of this package and is never imported here: its own entry point,
``packaging/bootstrap.py`` of the checkout that made this environment, runs as a child.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.set_up_progress import SetUpProgress
from gpu_studio.process.stoppable_child import LONGEST_END_S, StoppableChild

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHECKOUT = Path(__file__).resolve().parents[2]
_ENTRY = Path("packaging", "bootstrap.py")
# Written by studio_setup/stamp.py.
_MARK, _STAMP = "made-by-gpu-studio", "gpu-studio-stamp.json"
_ENDED = "The setup ended without a reason. The log is in the folder .setup."

_log = logging.getLogger(__name__)


def set_up_entry(checkout: Path = _CHECKOUT, environment: str = sys.prefix) -> Path | None:
    """Return the setup's entry point if it made this environment; None if it must not touch it.

    Args:
        checkout: the folder that has this program.
        environment: the environment of this Python.
    """
    entry = checkout / _ENTRY
    try:
        place = msgspec.json.decode(Path(environment, _STAMP).read_bytes())["place"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    is_ours = entry.is_file() and Path(environment, _MARK).exists()
    return entry if is_ours and _normal(place) == _normal(environment) else None


class SetUpChild:
    """Runs the setup in a child process. Any thread may call `stop` and `close`.

    Args:
        entry: the result of `set_up_entry`.
        log_path: the file for the child's standard error; None inherits this process's.
    """

    def __init__(self, entry: Path, log_path: Path | None = None) -> None:
        self._child = StoppableChild(entry, log_path)

    def installing(self, tag: str) -> Iterator[SetUpProgress]:
        """Install a build of PyTorch, and yield the progress; its last value is the outcome.

        Raises:
            OSError: the child could not be started.
        """
        child = self._child.start(["--torch", tag, "--progress", "lines", "install"])
        if child is None:
            return
        try:
            for line in child.lines():
                try:
                    told = msgspec.json.decode(line, type=SetUpProgress)
                except msgspec.MsgspecError as error:
                    _log.error("the setup wrote something unreadable: %s", error)
                    continue
                yield told
                if told.kind in ("done", "failed"):
                    return
            yield SetUpProgress("failed", _ENDED)
        finally:
            child.end(LONGEST_END_S)

    def stop(self) -> None:
        """Ask the setup to stop: it restores the environment if it can, and tells its end."""
        self._child.ask_to_stop()

    def close(self) -> None:
        """End the setup now; its next start continues."""
        self._child.close()


def _normal(path: str) -> str:
    return os.path.normcase(os.path.abspath(path))
