"""What has to be there for what the user asked for. Read at every start: it imports little."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from studio_setup import stamp as stamps
from studio_setup.fingerprint import hardware_fingerprint
from studio_setup.place import environment_folder
from studio_setup.stamp import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def has_display(environ: Mapping[str, str], system: str = sys.platform) -> bool:
    """Whether there is a screen to open a window on: on Linux, an X or a Wayland display."""
    if system != "linux":
        return True
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


class Need:
    """A command's need of the environment.

    Args:
        root: The checkout.
        extras: The optional dependencies that the command uses.
        opens_window: Whether it uses Qt.
        has_screen: Whether that would be on a real screen.
        wanted_tag: The build of PyTorch asked for by name, "auto", or None for no wish.
        packages: `stamp.TESTED` or `stamp.NEWEST`, or None for no wish.
    """

    def __init__(
        self,
        root: Path,
        extras: tuple[str, ...],
        opens_window: bool,
        has_screen: bool,
        wanted_tag: str | None,
        packages: str | None = None,
    ) -> None:
        self.root = root
        self.environment = environment_folder(root)
        self.extras = extras
        self.opens_window = opens_window
        self.has_screen = has_screen
        self.wanted_tag = wanted_tag
        self.packages = packages
        self.present = stamps.present_facts(
            str(root), str(self.environment), hardware_fingerprint()
        )

    @property
    def python(self) -> str:
        """The environment's interpreter."""
        return stamps.python_in(str(self.environment))

    def judged(self) -> tuple[dict[str, Any] | None, Verdict]:
        """The stamp, and what has to be done."""
        from studio_setup.launch import python_version_of

        stamp = stamps.read_stamp(str(self.environment))
        verdict = stamps.judge(
            stamp,
            self.present,
            self.extras,
            self.wanted_tag,
            lambda: python_version_of(self.python),
            self.packages,
        )
        return stamp, verdict

    def lacks_libraries(self, stamp: dict[str, Any]) -> bool:
        """Whether a window is wanted whose system libraries were not all seen yet.

        The stamp's level is 1 with those for drawing off the screen, 2 with a real screen's too.
        """
        return self.opens_window and stamp.get("libraries", 0) < 1 + self.has_screen

    def is_met(self) -> bool:
        """Whether the program can start at once.

        In a folder that takes nothing, what was set up is started as it is: neither another
        PyTorch nor what is known of the system's libraries could be written down.
        """
        stamp, verdict = self.judged()
        if stamp is None or verdict not in (Verdict.FRESH, Verdict.HARDWARE):
            return False
        lacks_libraries = self.lacks_libraries(stamp)
        if verdict is Verdict.FRESH and not lacks_libraries:
            return True
        if os.access(self.environment, os.W_OK):
            return False
        from studio_setup.system_libraries import missing_libraries

        return not (lacks_libraries and missing_libraries(self.has_screen))

    def offer_is_due(self) -> bool:
        """Whether the shortcut was never offered; from now on it was."""
        stamp = stamps.read_stamp(str(self.environment)) or {}
        if stamp.get("shortcut_offered"):
            return False
        try:
            stamps.write_stamp(str(self.environment), stamp | {"shortcut_offered": True})
        except OSError:  # a folder that takes nothing: it would be offered at every start
            return False
        return True
