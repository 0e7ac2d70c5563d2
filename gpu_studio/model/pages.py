"""The pages of the window that the program leads to, and the way from one to another.

Whether the PC is kept awake: as long as a check or a race runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.messages.run_messages import OwnCode, WorkloadDescription
    from gpu_studio.process.sleep_block import SleepBlock


class PageId(msgspec.Struct, frozen=True):
    """A tab of the window, or a page of a tab that has several; without a tab, beside them all."""

    tab: str
    part: str = ""


DEVICES = PageId("devices")
OVERVIEW = PageId("devices", "overview")
PYTHONS = PageId("devices", "pythons")
RACE = PageId("race")
BENCHMARK = PageId("benchmark")
RUN = PageId("benchmark", "run")
HISTORY = PageId("benchmark", "history")
SWITCHER = PageId("switcher")
SWITCH = PageId("switcher", "switch")
START = PageId("switcher", "start")
LESSONS = PageId("switcher", "lessons")
MEMORY = PageId("memory")
NOW = PageId("memory", "now")
SEGMENTS = PageId("memory", "segments")
FIT = PageId("memory", "fit")
ERROR = PageId("memory", "error")
CHECK = PageId("check")
SET_UP = PageId("", "set_up")
QUICK_LOOK = PageId("", "quick_look")
DIAGNOSTICS = PageId("", "diagnostics")


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """A page to bring to the front, and what happens there.

    ``device`` is the identity of the device to choose, ``lesson`` the name of a lesson, ``paths``
    the files to open, ``code`` the user's own code, with its ``workload`` once it has run;
    ``starts`` begins the page's work at once.
    """

    page: PageId
    device: str = ""
    lesson: str = ""
    paths: tuple[Path, ...] = ()
    code: OwnCode | None = None
    workload: WorkloadDescription | None = None
    starts: bool = False

    @property
    def path(self) -> Path | None:
        """The first file to open; most pages open one."""
        return self.paths[0] if self.paths else None


class Wakefulness(QObject):
    """Keeps the PC awake while any work needs it.

    Args:
        blocker: the system's means; None keeps nothing awake.
        parent: owns it.

    Signals:
        changed(): the PC is kept awake, or no longer.
    """

    changed = Signal()

    def __init__(self, blocker: SleepBlock | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._blocker = blocker
        self._needs: set[PageId] = set()

    @property
    def is_kept(self) -> bool:
        """Whether the PC is kept awake now: its system may have refused it."""
        return bool(self._needs) and self._blocker is not None and self._blocker.is_held

    def need(self, page: PageId, *, needed: bool) -> None:
        """Say whether the work of a page needs the PC awake."""
        before = bool(self._needs)
        if needed:
            self._needs.add(page)
        else:
            self._needs.discard(page)
        if self._blocker is None or before is bool(self._needs):
            return
        if self._needs:
            self._blocker.hold()
        else:
            self._blocker.release()
        self.changed.emit()
