"""The pages of the window that the program leads to, and the way from one to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

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
