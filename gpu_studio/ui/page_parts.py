"""The words, buttons and tables of a described page; see `page`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import (
    QMenu,
    QProgressBar,
    QPushButton,
    QWidget,
)

from gpu_studio.core.notice import Notice
from gpu_studio.model.text_rows import Cell, TextRows, plain_tip
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import (
    Role,
    Text,
    button,
    press_by_key,
    section,
    set_property,
    show_whole_rows,
    table,
    with_key,
)
from gpu_studio.ui.result_bars import ResultBars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from PySide6.QtGui import QIcon

    from gpu_studio.ui.page import Page, Read
from gpu_studio.ui.page import Part

_STEPS = 1000  # of a bar of progress


@dataclass(eq=False, repr=False)
class Words(Part):
    """A text or a notice, hidden while it is empty.

    ``cut`` returns whether it is one line that ends in "…" without room.
    """

    text: Read | str
    role: Role = ""
    wraps: bool = True
    cut: Read | None = None

    def make(self, page: Page) -> QWidget:
        made = Text if self.cut is None else ElidedText
        label = made("", self.role, wraps=self.wraps)

        def update() -> None:
            said = self.text() if callable(self.text) else self.text
            notice = said if isinstance(said, Notice) else Notice(said or "")
            is_cut = self.cut is not None and self.cut()
            label.setText(notice.sentence)
            label.setWordWrap(self.wraps and not is_cut)
            label.set_tone(notice.tone)

        page.updates.append(update)
        return label

    def is_filled(self, widget: Text) -> bool:
        return bool(widget.text())


@dataclass(eq=False, repr=False)
class Heading(Part):
    """The small heading above a group."""

    text: str

    def make(self, page: Page) -> QWidget:
        return section(self.text)


@dataclass(eq=False, repr=False)
class Press(Part):
    """A button; ``label`` may be a function, and an empty label hides it.

    ``primary`` may be a function as well, where another button may come first. ``key`` is what
    presses it as well: run, stop or save. ``link`` looks like a link.
    """

    is_compact = True

    label: Read | str
    clicked: Callable[[], object]
    enabled: Read | None = None
    primary: Read | bool = False
    icon: str = ""
    key: str = ""
    link: Read | bool = False

    def make(self, page: Page) -> QWidget:
        label, primary = self.label, self.primary
        text = "" if callable(label) else label
        pressed = button(text, self.clicked, primary=primary is True)
        link = self.link
        pressed.setProperty("link", link is True)
        if callable(link):
            page.updates.append(lambda: set_property(pressed, "link", bool(link())))
        if self.icon:
            pressed.setIcon(self._picture(page, is_primary=primary is True))
        if callable(primary):
            page.updates.append(lambda: self._dress(page, pressed, is_primary=bool(primary())))
        if callable(label):
            page.updates.append(lambda: _call(pressed, label()))
        enabled = self.enabled
        if enabled is not None:
            page.presses.append((pressed, enabled))
        if self.key:
            press_by_key(pressed, self.key)
        return pressed

    def is_filled(self, widget: QPushButton) -> bool:
        return bool(widget.text())

    def show_tip(self, widget: Any, tip: str) -> None:
        super().show_tip(widget, with_key(tip, self.key) if self.key else tip)

    def _picture(self, page: Page, *, is_primary: bool) -> QIcon:
        return icon(self.icon, page.theme, *(("on_accent",) if is_primary else ()))

    def _dress(self, page: Page, pressed: QPushButton, *, is_primary: bool) -> None:
        if pressed.property("primary") is not is_primary:
            set_property(pressed, "primary", is_primary)
            if self.icon:
                pressed.setIcon(self._picture(page, is_primary=is_primary))


def _call(pressed: QPushButton, text: str) -> None:
    pressed.setText(text)
    pressed.setAccessibleName(text)


@dataclass(eq=False, repr=False)
class More(Part):
    """A button with a menu; ``items`` returns pairs of a text and what it does, None is a line."""

    is_compact = True

    label: str
    items: Read
    icon: str = ""
    key: str = ""

    def make(self, page: Page) -> QWidget:
        pressed = QPushButton(self.label)
        pressed.setAccessibleName(self.label)
        if self.icon:
            pressed.setIcon(icon(self.icon, page.theme))
        menu = QMenu(pressed)
        menu.setObjectName(f"{page.name}.{self.name}.menu")
        pressed.setMenu(menu)
        menu.aboutToShow.connect(lambda: fill_menu(menu, self.items()))
        if self.key:
            press_by_key(pressed, self.key)
        return pressed


def fill_menu(menu: QMenu, items: Iterable[tuple[Any, ...] | None]) -> None:
    """Fill a menu anew: an item is a text, what it does, and maybe its name; None is a line."""
    menu.clear()
    for item in items:
        if item is None:
            menu.addSeparator()
            continue
        text, does, *name = item
        action = menu.addAction(text, does)
        action.setEnabled(does is not None)
        action.setObjectName("".join(name))


@dataclass(eq=False, repr=False)
class Rows(Part):
    """A table of texts as high as its rows; ``numbers`` are the columns of numbers.

    The column ``wide`` takes the spare width; its texts end in "…" without room, whole in the tip.
    """

    label: str
    head: Sequence[str]
    rows: Read
    numbers: Sequence[int] = ()
    wide: int = 0

    def make(self, page: Page) -> QWidget:
        wide = self.wide
        rows = TextRows(self.head, self.numbers, page, lambda text: plain_tip(text or ""))
        view = table(rows, name=f"{page.name}.{self.name}", accessible_name=self.label)
        header = view.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(wide, header.ResizeMode.Stretch)

        def update() -> None:
            texts = self.rows()
            rows.set_rows(
                [(*row[:wide], Cell(row[wide], value=row[wide]), *row[wide + 1 :]) for row in texts]
                if wide
                else texts
            )
            show_whole_rows(view)

        page.updates.append(update)
        return view


@dataclass(eq=False, repr=False)
class Bars(Part):
    """Bars to one scale, hidden without any; ``full`` fills the track, else the longest bar."""

    label: str
    bars: Read
    full: float | None = None

    def make(self, page: Page) -> QWidget:
        bars = ResultBars(page.theme, name=f"{page.name}.{self.name}", full=self.full)
        bars.setAccessibleName(self.label)
        page.updates.append(lambda: bars.show_bars(self.bars()))
        return bars

    def is_filled(self, widget: ResultBars) -> bool:
        return bool(widget.bars)


@dataclass(eq=False, repr=False)
class ProgressBar(Part):
    """A bar; ``share`` returns how much is done, 0 to 1."""

    label: str
    share: Read

    def make(self, page: Page) -> QWidget:
        bar = QProgressBar()
        bar.setRange(0, _STEPS)
        bar.setTextVisible(False)
        bar.setAccessibleName(self.label)
        page.updates.append(lambda: bar.setValue(round(_STEPS * self.share())))
        return bar
