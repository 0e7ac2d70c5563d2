"""The tabs of the window: one record each.

A new tab is a folder and a record here. The window, its menu, its keys, files that are dropped, and
the links from one tab to another follow the records.

The pages of a tab that has several: their titles in a bar, and the one in front below it.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QTabBar, QVBoxLayout, QWidget

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.texts import file_name
from gpu_studio.core.user_file import SilentDriveError
from gpu_studio.model import pages
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page import Page
from gpu_studio.ui.parts import GAP, MARGIN, button
from gpu_studio.ui.scroll_page import LazyPage, imported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from gpu_studio.model.pages import Destination, PageId
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme


class TabContents(QWidget):
    """What a tab shows.

    Signals:
        presentation_wanted(): an audience shall see it.

    Attributes:
        pages_later: the pages that are made once the engine starts, so that each opens at once.
    """

    presentation_wanted = Signal()

    pages_later: tuple[LazyPage, ...] = ()

    def go_to(self, destination: Destination) -> None:
        """Open or start what a destination names; the tab is already in front."""

    def open_stage(self) -> bool:
        """Show a window of its own to an audience; return whether there is one."""
        return False

    def present(self, *, is_presented: bool) -> None:
        """Show only what an audience looks at, or all again."""


class Tab(NamedTuple):
    """A tab of the window.

    Attributes:
        page: names it in the settings and for links.
        title: its title.
        icon: its icon, by name.
        keys: bring it to the front.
        contents: makes its `TabContents` from the studio and the theme; ``package.module:name``.
            The import is most of a tab's cost, so it waits until the tab is made.
        parts: the titles of its pages, in their order, if it has several.
        opens: the endings of files that are dropped on the window and opened here.
        opens_folders: the page that opens a folder, if one of them does.
        opens_in_front: endings of another tab's that are opened here if this tab is in front.
        recognizes: tells from a file's contents that it belongs here, whatever its ending, as
            `check_file.has_record`; ``package.module:name``.
        recognized: the page that opens a file recognized so; the tab's own if None.
    """

    page: PageId
    title: str
    icon: str
    keys: str
    contents: str
    parts: Mapping[PageId, str] = MappingProxyType({})
    opens: tuple[str, ...] = ()
    opens_folders: PageId | None = None
    opens_in_front: tuple[str, ...] = ()
    recognizes: str = ""
    recognized: PageId | None = None


CODE = ".py"
"""The ending of a user's own code."""
TABS = (
    Tab(
        page=pages.DEVICES,
        title="Devices",
        icon="card",
        keys="Ctrl+1",
        contents="gpu_studio.ui.devices.devices_tab:DevicesTab",
        parts={pages.OVERVIEW: "Overview", pages.PYTHONS: "PyTorch on this PC"},
        opens_folders=pages.PYTHONS,
    ),
    Tab(
        page=pages.RACE,
        title="Race",
        icon="flag",
        keys="Ctrl+2",
        contents="gpu_studio.ui.race.race_tab:RaceTab",
        # A person drags a picture here; the page says if it cannot be opened.
        opens=(
            ".png", ".jpg", ".jpeg", ".jfif", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm",
            ".ico", ".svg", ".heic", ".heif", ".avif", ".jsonl",
        ),
    ),
    Tab(
        page=pages.BENCHMARK,
        title="Benchmark",
        icon="chart",
        keys="Ctrl+3",
        contents="gpu_studio.ui.benchmark.benchmark_tab:BenchmarkTab",
        parts={pages.RUN: "Run", pages.HISTORY: "History"},
        opens=(CODE,),
        opens_in_front=(".jsonl", ".json"),
        recognizes="gpu_studio.core.benchmark.standard_record:has_standard",
        recognized=pages.HISTORY,
    ),
    Tab(
        page=pages.SWITCHER,
        title="Switcher",
        icon="switch",
        keys="Ctrl+4",
        contents="gpu_studio.ui.switcher.switcher_tab:SwitcherTab",
        parts={
            pages.SWITCH: "Switch",
            pages.START: "Start a program",
            pages.LESSONS: "Lessons",
        },
    ),
    Tab(
        page=pages.MEMORY,
        title="Memory",
        icon="memory",
        keys="Ctrl+5",
        contents="gpu_studio.ui.memory.memory_tab:MemoryTab",
        parts={
            pages.NOW: "Now",
            pages.SEGMENTS: "Segment map",
            pages.FIT: "Will it fit?",
            pages.ERROR: "Read an error",
        },
        opens=(".pickle", ".pkl", ".safetensors", ".gguf", ".index.json", ".txt", ".log"),
    ),
    Tab(
        page=pages.CHECK,
        title="Check",
        icon="shield",
        keys="Ctrl+6",
        contents="gpu_studio.ui.check.check_tab:CheckTab",
        opens=(".json",),
        # As a picture, a record differs from a photo only in its contents.
        recognizes="gpu_studio.core.check.check_file:has_record",
    ),
)  # fmt: skip


def tab_of(page: PageId) -> Tab:
    """Return the tab that a page belongs to."""
    return next(tab for tab in TABS if tab.page.tab == page.tab)


def page_for_file(
    path: Path, front: PageId, is_over: Callable[[], bool] = lambda: False
) -> PageId | None:
    """Return the page that opens a dropped file: one that knows its contents, or its ending.

    None if there is no such page. It reads the file, so it is called in a thread.

    Args:
        path: the file.
        front: the tab in front.
        is_over: returns whether the answer is no longer needed.

    Raises:
        StudioError: the file's drive does not answer.
    """
    try:
        if path.is_dir():
            return next(tab.opens_folders for tab in TABS if tab.opens_folders)
        for tab in TABS:
            if tab.recognizes and imported(tab.recognizes)(path, is_over):
                return tab.recognized or tab.page
    except SilentDriveError as error:
        message = f"{file_name(path)} cannot be opened: {error}."
        raise StudioError(FailureKind.FILE_REFUSED, message) from error
    name = path.name.lower()
    if name.endswith(tab_of(front).opens_in_front):
        return tab_of(front).recognized or front
    return next((tab.page for tab in TABS if name.endswith(tab.opens)), None)


class PagedTab(TabContents):
    """A tab of pages: in a row their titles and what the page in front offers; below it the page.

    Args:
        tab: its record.
        studio: follows which page's code is shown.
        theme: for icons.
        parent: owns it.

    Attributes:
        pages: the titles.
    """

    def __init__(
        self, tab: Tab, studio: Studio, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName(tab.page.tab)
        self._studio = studio
        self._is_presented = False
        self.pages = PageBar(tab)
        self._row = QWidget()
        self._line = QHBoxLayout(self._row)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.addWidget(self.pages)
        self._line.addStretch(1)
        self._presentation = button(
            "Presentation", self.presentation_wanted.emit, name=f"{tab.page.tab}.presentation",
            tip="Fills the screen with the answer and its picture, in large text (F11)",
        )  # fmt: skip
        self._presentation.setIcon(icon("full_screen", theme))
        self._line.addWidget(self._presentation)
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, 0, MARGIN, MARGIN)
        column.setSpacing(GAP)
        column.addWidget(self._row)
        column.addWidget(self.pages.stack, 1)
        self.pages.page_changed.connect(self._on_page_changed)

    def add(self, *pages: QWidget | LazyPage) -> None:
        """Add the pages, in the order of their titles; those that are lazy are made when idle."""
        self.pages_later = tuple(page for page in pages if isinstance(page, LazyPage))
        self.pages.page_made.connect(self._place_actions)
        self.pages.add(*pages)
        self._on_page_changed(self.pages.front)

    def go_to(self, destination: Destination) -> None:
        """Bring the page in front that a destination names."""
        if destination.page.part:
            self.pages.go_to(destination.page)

    def present(self, *, is_presented: bool) -> None:
        """Show only what an audience looks at on the page in front, or all again."""
        self._is_presented = is_presented
        self._row.setVisible(not is_presented)
        self._show_page()

    @property
    def _front(self) -> Page | None:
        return self.pages.shown if isinstance(self.pages.shown, Page) else None

    def _place_actions(self, page: QWidget) -> None:
        if isinstance(page, Page):
            self._line.addWidget(page.action_row, 0, Qt.AlignmentFlag.AlignVCenter)
            self._show_page()

    def _on_page_changed(self, front: PageId) -> None:
        self._studio.snippets.turn_to(front)
        self._show_page()

    def _show_page(self) -> None:
        """Show the actions of the page in front, and present it if it is to be."""
        front = self._front
        for page in self.findChildren(Page):
            page.action_row.setVisible(page is front)
            is_presented = self._is_presented and page is front
            if page.is_presented is not is_presented:
                page.present(is_presented=is_presented)
        self._presentation.setVisible(front is not None and front.is_for_audience)


class PageBar(QTabBar):
    """The titles of a tab's pages; `stack` shows the page in front, as high as that page needs.

    A `QStackedWidget` is as high as the highest of its pages, also of those that nobody sees.

    Signals:
        page_changed(PageId): another page is in front.
        page_made(QWidget): a page is there.

    Attributes:
        front: the page in front.
        shown: its widget; None before there is one.
        stack: the pages; it stands below the bar, and the tab around it scrolls.
    """

    page_changed = Signal(object)
    page_made = Signal(object)

    def __init__(self, tab: Tab) -> None:
        super().__init__()
        self.setObjectName(f"{tab.page.tab}.pages")
        self.setAccessibleName(f"{tab.title} pages")
        self.setDrawBase(False)
        self.setExpanding(False)
        self.setUsesScrollButtons(True)
        self.stack = QWidget()
        self._column = QVBoxLayout(self.stack)
        self._column.setContentsMargins(0, 0, 0, 0)
        self.shown: QWidget | None = None
        self._pages: tuple[QWidget | LazyPage, ...] = ()
        self._ids = tuple(tab.parts)
        self.front = self._ids[0]
        for title in tab.parts.values():
            self.addTab(title)
        self.currentChanged.connect(self._turn_to)

    def add(self, *pages: QWidget | LazyPage) -> None:
        """Add the pages, in the order of their titles; the first one is in front."""
        self._pages = pages
        for page in pages:
            if isinstance(page, LazyPage):
                page.created.connect(self._place)
            else:
                self._place(page)

    def go_to(self, page: PageId) -> None:
        """Bring a page to the front."""
        self.setCurrentIndex(self._ids.index(page))

    def _place(self, page: QWidget) -> None:
        self._column.addWidget(page)
        self.shown = self.shown or page
        page.setVisible(page is self.shown)
        self.page_made.emit(page)

    def _turn_to(self, index: int) -> None:
        """Show a page, which is made now if it is not yet there, and hide the one before."""
        self.front, page = self._ids[index], self._pages[index]
        made = page.make() if isinstance(page, LazyPage) else page
        if self.shown is not None and self.shown is not made:
            self.shown.hide()
        self.shown = made
        made.show()
        self.page_changed.emit(self.front)
