"""The pages of the window that the program leads to, and the way from one to another.

Whether the PC is kept awake: as long as a check or a race runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec
from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from pathlib import Path


class Page(msgspec.Struct, frozen=True):
    """A tab of the window, or a page of a tab that has several."""

    tab: str
    part: str = ""


DEVICES = Page("devices")
RACE = Page("race")
BENCHMARK = Page("benchmark")
COMPARE = Page("benchmark", "compare")
SWITCHER = Page("switcher")
CHOOSE = Page("switcher", "choose")
PLACE = Page("switcher", "place")
PITFALLS = Page("switcher", "pitfalls")
FEEDING = Page("switcher", "feeding")
AMP = Page("switcher", "amp")
SEVERAL_CARDS = Page("switcher", "several_cards")
MEMORY = Page("memory")
CURVES = Page("memory", "curves")
SEGMENTS = Page("memory", "segments")
BREAK_IT = Page("memory", "break_it")
READ_ERROR = Page("memory", "read_error")
FIT = Page("memory", "fit")
WHAT_IF = Page("memory", "what_if")
CHECK = Page("check")


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """A page to bring to the front, and what happens there.

    ``device`` is the identity of the device to choose, ``paths`` the files to open; ``starts``
    begins the page's work at once.
    """

    page: Page
    device: str = ""
    paths: tuple[Path, ...] = ()
    starts: bool = False

    @property
    def path(self) -> Path | None:
        """The first file to open; most pages open one."""
        return self.paths[0] if self.paths else None


class SleepBlocker(Protocol):
    """Keeps the PC from falling asleep, such as `process.sleep_block.SleepBlock`."""

    @property
    def is_held(self) -> bool:
        """Whether the PC is kept awake."""

    def hold(self) -> None:
        """Keep the PC awake."""

    def release(self) -> None:
        """Let the PC sleep again."""


class Wakefulness(QObject):
    """Keeps the PC awake while any work needs it.

    Args:
        blocker: the system's means; None keeps nothing awake.
        parent: owns it.

    Signals:
        changed(): the PC is kept awake, or no longer.
    """

    changed = Signal()

    def __init__(self, blocker: SleepBlocker | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._blocker = blocker
        self._needs: set[Page] = set()

    @property
    def is_kept(self) -> bool:
        """Whether the PC is kept awake now: its system may have refused it."""
        return bool(self._needs) and self._blocker is not None and self._blocker.is_held

    def need(self, page: Page, *, needed: bool) -> None:
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
