"""What a command needs from the environment. Runs at every start, so it imports little."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from studio_setup import stamp as stamps
from studio_setup.stamp import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def has_display(environ: Mapping[str, str], system: str = sys.platform) -> bool:
    """Return whether a window can open: on Linux, whether there is an X or Wayland display."""
    if system != "linux":
        return True
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


class Need:
    """What a command needs from the environment.

    Args:
        root: The checkout.
        extras: The optional dependencies that the command uses.
        opens_window: Whether the command uses Qt.
        has_screen: Whether the window opens on a real screen.
        wanted_build: The requested build of PyTorch, "auto", or None if none was requested.
        packages: `stamp.TESTED` or `stamp.NEWEST`, or None if none was requested.
    """

    def __init__(
        self,
        root: Path,
        extras: tuple[str, ...],
        opens_window: bool,
        has_screen: bool,
        wanted_build: str | None,
        packages: str | None = None,
    ) -> None:
        self.root = root
        self.environment = root / ".venv"
        self.extras = extras
        self.opens_window = opens_window
        self.has_screen = has_screen
        self.wanted_build = wanted_build
        self.packages = packages
        self.present = stamps.present_facts(str(root), str(self.environment))

    @property
    def python(self) -> str:
        """The environment's interpreter."""
        return stamps.python_in(str(self.environment))

    def judged(self) -> tuple[dict[str, Any] | None, Verdict]:
        """Return the stamp and the setup's next task."""
        from studio_setup.launch import python_version_of

        stamp = stamps.read_stamp(str(self.environment))
        verdict = stamps.judge(
            stamp,
            self.present,
            self.extras,
            self.wanted_build,
            lambda: python_version_of(self.python),
            self.packages,
        )
        return stamp, verdict

    def lacks_libraries(self, stamp: dict[str, Any]) -> bool:
        """Return whether the window still needs system libraries that were not found yet.

        The stamp's level is 1 if the libraries for off-screen drawing were found, 2 if those for a
        real screen were found as well.
        """
        return self.opens_window and stamp.get("libraries", 0) < 1 + self.has_screen

    def is_met(self) -> bool:
        """Return whether the program can start without any setup.

        In a read-only folder, the setup could not record the system's libraries.
        """
        stamp, verdict = self.judged()
        if stamp is None or verdict is not Verdict.FRESH:
            return False
        if not self.lacks_libraries(stamp):
            return True
        if os.access(self.environment, os.W_OK):
            return False
        from studio_setup.system_libraries import missing_libraries

        return not missing_libraries(self.has_screen)

    def offer_is_due(self) -> bool:
        """Return whether the shortcut was never offered; record that it now was."""
        stamp = stamps.read_stamp(str(self.environment)) or {}
        if stamp.get("shortcut_offered"):
            return False
        try:
            stamps.write_stamp(str(self.environment), stamp | {"shortcut_offered": True})
        except OSError:  # a read-only folder: the offer would come back at every start
            return False
        return True
