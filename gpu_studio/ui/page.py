"""Pages from a description: each part names what it shows of the page's model.

A `Page` builds its parts once. While it is visible, it shows all of them again whenever its model
says `changed`; while it is hidden it does nothing, and catches up when it is shown. A part reads
what it shows by a function without arguments.

Here are the base of all parts and those that hold others; `page_parts` has words, buttons and
tables, `page_controls` what is chosen. See `model/page_model.py` for the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.notice import Tone
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import (
    GAP,
    MARGIN,
    Card,
    discard,
    letters,
    show_tip,
)

if TYPE_CHECKING:
    from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent

    from gpu_studio.model.page_model import PageModel
    from gpu_studio.ui.theme import Theme

Read = Callable[[], Any]
_NARROW, _NARROW_LETTERS = 1024, 132
_ANY_WIDTH = (1 << 24) - 1  # Qt's QWIDGETSIZE_MAX


class Page(QWidget):
    """Shows a model; a subclass describes its parts in `parts`.

    Args:
        name: begins the object name of each part: ``memory.fit``.
        model: what it shows.
        theme: for icons and the parts that paint.
        parent: owns it.

    Attributes:
        action_row: what `head_parts` describes; the tab places it.
        is_for_audience: whether it has parts for an audience.
        is_presented: whether only those are shown.
        is_narrow: whether it has no room for a column beside the rest.
        updates: what shows the present state; each part adds its own.
        presses: the buttons, each with what tells whether it can be pressed.
    """

    def __init__(
        self, name: str, model: PageModel, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.name, self.model, self.theme = name, model, theme
        self.updates: list[Callable[[], object]] = []
        self.presses: list[tuple[QPushButton, Read]] = []
        self.is_presented = self.is_narrow = False
        parts = self.parts()
        self.is_for_audience = any(part.is_for_audience for part in parts)
        _fill(QVBoxLayout(self), parts, self)
        self.action_row = FlowRow(*(part.build(self) for part in self.head_parts()), spacing=GAP)
        model.changed.connect(self._on_changed)

    def parts(self) -> Sequence[Part]:
        """Return the parts from top to bottom."""
        raise NotImplementedError

    def head_parts(self) -> Sequence[Part]:
        """Return what the page offers at the right of the row of its tab's pages."""
        return ()

    def present(self, *, is_presented: bool) -> None:
        """Show only the parts that a class looks at, or all again."""
        self.is_presented = is_presented
        self.update_parts()

    def turn(self, *, is_narrow: bool) -> None:
        """Show what belongs to a narrow page, or to a wide one."""
        self.is_narrow = is_narrow
        if self.isVisible():
            self.update_parts()

    def update_parts(self) -> None:
        """Show the present state of the model."""
        for update in self.updates:
            update()
        # The focus of a button that is disabled may go to one that is enabled now.
        known = [(pressed, bool(enabled())) for pressed, enabled in self.presses]
        for pressed, can in sorted(known, key=lambda one: not one[1]):
            _enable(pressed, can)

    def showEvent(self, event: QShowEvent) -> None:
        """Show what happened while the page was hidden."""
        super().showEvent(event)
        self.model.see(is_seen=True)
        self.update_parts()

    def hideEvent(self, event: QHideEvent) -> None:
        """Follow the model no longer."""
        super().hideEvent(event)
        self.model.see(is_seen=False)

    def _on_changed(self) -> None:
        if self.isVisible():
            self.update_parts()


@dataclass(eq=False, repr=False, kw_only=True)
class Part:
    """A part of a page.

    Attributes:
        name: its object name, after that of the page.
        shown: returns whether it is visible; None: always.
        tip: its tool tip, which a screen reader reads as well; may be a function.
        keeps_room: its place stays while it is hidden: nothing moves under the pointer.
        stretch: its share of the spare height or width.
        presented: whether it stays, with all that is in it, in the form for an audience.
    """

    name: str = ""
    shown: Read | None = None
    tip: Read | str = ""
    keeps_room: bool = False
    stretch: int = 0
    presented: bool = False
    is_compact: ClassVar[bool] = False  # no wider than its words

    @property
    def is_for_audience(self) -> bool:
        """Whether it, or something in it, stays in the form for an audience."""
        return self.presented

    def build(self, page: Page) -> QWidget:
        """Return the widget, and let the page update it."""
        widget = self.make(page)
        if self.name and not widget.objectName():
            widget.setObjectName(f"{page.name}.{self.name}")
        tip = self.tip
        if callable(tip):
            page.updates.append(lambda: self.show_tip(widget, tip()))
        elif tip:
            self.show_tip(widget, tip)
        if self.keeps_room:
            policy = widget.sizePolicy()
            policy.setRetainSizeWhenHidden(True)
            widget.setSizePolicy(policy)
        page.updates.append(lambda: widget.setVisible(self._is_visible(page, widget)))
        return widget

    def make(self, page: Page) -> QWidget:
        """Return the widget; what changes it goes to ``page.updates``."""
        raise NotImplementedError

    def is_filled(self, widget: Any) -> bool:
        """Return whether there is anything to see."""
        return True

    def show_tip(self, widget: QWidget, tip: str) -> None:
        """Show a tool tip, and tell it to a screen reader."""
        show_tip(widget, tip)

    def _is_visible(self, page: Page, widget: QWidget) -> bool:
        if page.is_presented and not self.is_for_audience:
            return False
        return self.is_filled(widget) and (self.shown is None or bool(self.shown()))


def _enable(pressed: QPushButton, can: bool) -> None:
    """Enable a button; the focus of one that is disabled goes on to the next."""
    if not can and pressed.hasFocus():
        pressed.focusNextChild()
    pressed.setEnabled(can)


@dataclass(eq=False, repr=False, init=False)
class _Group(Part):
    inner: tuple[Part, ...] = field(default=())

    def __init__(self, *inner: Part, **attributes: Any) -> None:
        if attributes.get("presented"):
            inner = tuple(map(_presented, inner))
        usual = {one.name: one.default for one in fields(self)}
        for name, value in {**usual, "inner": inner, **attributes}.items():
            setattr(self, name, value)

    @property
    def is_for_audience(self) -> bool:
        return self.presented or any(part.is_for_audience for part in self.inner)


def _presented(part: Part) -> Part:
    made = copy(part)
    made.presented = True
    if isinstance(made, _Group):
        made.inner = tuple(map(_presented, made.inner))
    return made


class Flow(_Group):
    """Parts side by side, in as many lines as needed; one with ``stretch`` fills its line."""

    def make(self, page: Page) -> FlowRow:
        widgets = [part.build(page) for part in self.inner]
        pairs = zip(self.inner, widgets, strict=True)
        fills = next((widget for part, widget in pairs if part.stretch), None)
        return FlowRow(*widgets, fills=fills, spacing=GAP)


class Columns(_Group):
    """Parts side by side, as wide as each other, or by their ``stretch``."""

    def make(self, page: Page) -> QWidget:
        place = QWidget()
        line = QHBoxLayout(place)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(GAP)
        has_shares = any(part.stretch for part in self.inner)
        for part in self.inner:
            line.addWidget(part.build(page), part.stretch if has_shares else 1)
        return place


class Stack(_Group):
    """Parts below each other, without a frame."""

    def make(self, page: Page) -> QWidget:
        place = QWidget()
        _fill(QVBoxLayout(place), self.inner, page)
        return place


class Turning(Flow):
    """Parts below each other, or as a `Flow` where it is narrow."""

    def make(self, page: Page) -> FlowRow:
        row = super().make(page)
        page.updates.append(lambda: row.turn(is_column=not page.is_narrow))
        return row


def _fill(column: QVBoxLayout, inner: Sequence[Part], page: Page) -> None:
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(GAP)
    _add(column, inner, page)


def _add(column: QVBoxLayout, inner: Sequence[Part], page: Page) -> None:
    """Put parts below each other; a button is as wide as its words."""
    for part in inner:
        is_button = part.is_compact and not part.stretch
        is_button = is_button and not getattr(part, "is_radio", False)
        sides = Qt.AlignmentFlag.AlignLeft if is_button else Qt.AlignmentFlag(0)
        column.addWidget(part.build(page), part.stretch, sides)
    # Room that is left where the part that takes it is hidden.
    column.addStretch(0 if any(part.stretch for part in inner) else 1)


@dataclass(eq=False, repr=False, init=False)
class Box(_Group):
    """A card; ``tone`` returns the color of its border."""

    tone: Read | None = None

    def make(self, page: Page) -> QWidget:
        card = Card()
        _add(card.column, self.inner, page)
        tone = self.tone
        if tone is not None:
            page.updates.append(lambda: card.set_tone(tone() or Tone.PLAIN))
        return card


@dataclass(eq=False, repr=False, init=False)
class Fold(_Group):
    """Parts under a button that unfolds them; closed at first. ``note`` stands beside it."""

    label: str = ""
    note: Part | None = None

    def make(self, page: Page) -> QWidget:
        place, inner, handle = QWidget(), QWidget(), QToolButton()
        name = f"{page.name}.{self.name}"
        place.setObjectName(f"{name}.fold")
        handle.setObjectName(f"{name}.more")
        handle.setText(self.label)
        handle.setAccessibleName(self.label)
        handle.setProperty("fold", True)
        handle.setCheckable(True)
        handle.setArrowType(Qt.ArrowType.RightArrow)
        handle.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        inner.hide()
        _fill(QVBoxLayout(inner), self.inner, page)
        column, head = QVBoxLayout(place), QHBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(head)
        head.addWidget(handle, 0, Qt.AlignmentFlag.AlignTop)
        if self.note is not None:
            head.addWidget(self.note.build(page), 1)
        head.addStretch(0 if self.note else 1)
        column.addWidget(inner, 1)

        def turn(is_open: bool) -> None:
            inner.setVisible(is_open)
            arrows = Qt.ArrowType
            handle.setArrowType(arrows.DownArrow if is_open else arrows.RightArrow)

        handle.toggled.connect(turn)
        return place


@dataclass(eq=False, repr=False)
class Later(Part):
    """Parts below each other that are made when ``shown`` first returns true.

    ``inner`` returns them: it can import what they need.
    """

    inner: Callable[[], Sequence[Part]]

    def make(self, page: Page) -> QWidget:
        place = QWidget()

        def update() -> None:
            if place.layout() is None and self._is_visible(page, place):
                _fill(QVBoxLayout(place), self.inner(), page)  # their updates come after this one

        page.updates.append(update)
        return place


@dataclass(eq=False, repr=False)
class Each(Part):
    """A part for each of some values; all are made anew when the values differ.

    Attributes:
        values: returns the values.
        part: returns the part of a value.
        share_letters: below each other, or side by side and as wide as each other where each has
            this much room; 0: side by side, in as many lines as needed.
    """

    values: Read
    part: Callable[[Any], Part]
    share_letters: int = 0

    def make(self, page: Page) -> QWidget:
        place = _Shares(self.share_letters) if self.share_letters else FlowRow(spacing=GAP)
        shown: list[Any] = []
        made: list[QWidget] = []
        updates: list[Callable[[], object]] = []

        def update() -> None:
            if shown != (values := [*self.values()]):
                for widget in made:
                    discard(widget)
                every, presses = page.updates, page.presses
                page.updates, page.presses = [], []
                shown[:], made[:] = values, [self.part(value).build(page) for value in values]
                updates[:] = page.updates
                updates.extend(partial(_update_press, *one) for one in page.presses)
                page.updates, page.presses = every, presses
                place.set_widgets(*made)
                _order_focus(place, made)
            for one in updates:
                one()

        page.updates.append(update)
        return place

    def is_filled(self, widget: Any) -> bool:
        return bool(self.values())


def _update_press(pressed: QPushButton, enabled: Read) -> None:
    _enable(pressed, bool(enabled()))


def _order_focus(place: QWidget, made: Sequence[QWidget]) -> None:
    """Let Tab reach parts at their place, although they are made later than the page."""
    earlier = place
    while (before := earlier.previousInFocusChain()) is not None and before is not place:
        earlier = before
        if earlier.focusPolicy() is not Qt.FocusPolicy.NoFocus:
            break
    for widget in (inner for one in made for inner in (one, *one.findChildren(QWidget))):
        is_here = widget.window() is place.window()  # the list of a combo box has its own
        if is_here and widget.focusPolicy() is not Qt.FocusPolicy.NoFocus:
            QWidget.setTabOrder(earlier, widget)
            earlier = widget


class _Shares(QWidget):
    def __init__(self, least_letters: int) -> None:
        super().__init__()
        self._least_letters, self._count = least_letters, 0
        self._line = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.setSpacing(GAP)

    def set_widgets(self, *widgets: QWidget) -> None:
        self._count = len(widgets)
        for widget in widgets:
            self._line.addWidget(widget, 1)
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        fits = self.width() >= letters(self, self._least_letters) * self._count
        directions = QBoxLayout.Direction
        self._line.setDirection(directions.LeftToRight if fits else directions.TopToBottom)


@dataclass(eq=False, repr=False)
class Own(Part):
    """A widget of its own, such as a plot; ``update`` shows it anew."""

    widget: Callable[[], QWidget] | QWidget
    update: Callable[[Any], object] | None = None

    def make(self, page: Page) -> QWidget:
        made = self.widget if isinstance(self.widget, QWidget) else self.widget()
        update = self.update
        if update is not None:
            page.updates.append(lambda: update(made))
        return made


@dataclass(eq=False, repr=False, init=False)
class Beside(_Group):
    """A narrow column at the left of the rest; above it where the page is narrow.

    The first part is the column, ``side_letters`` wide; the second one is the rest.
    """

    side_letters: int = 30

    def make(self, page: Page) -> QWidget:
        side, rest = (part.build(page) for part in self.inner)
        return _BesideWidget(page, side, rest, self.side_letters)


class _BesideWidget(QWidget):
    def __init__(self, page: Page, side: QWidget, rest: QWidget, side_letters: int) -> None:
        super().__init__()
        self._page, self._side, self._letters = page, side, side_letters
        self._line = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.setSpacing(MARGIN)
        self._line.addWidget(side)
        self._line.addWidget(rest, 1)
        self._is_narrow: bool | None = None
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        is_narrow = self.width() < max(_NARROW, letters(self, _NARROW_LETTERS)) - 2 * MARGIN
        if is_narrow == self._is_narrow:
            return
        self._is_narrow = is_narrow
        directions, policies = QBoxLayout.Direction, QSizePolicy.Policy
        self._line.setDirection(directions.TopToBottom if is_narrow else directions.LeftToRight)
        self._side.setSizePolicy(
            policies.Preferred if is_narrow else policies.Fixed, policies.Preferred
        )
        width = letters(self._side, self._letters)
        self._side.setMinimumWidth(0 if is_narrow else width)
        self._side.setMaximumWidth(_ANY_WIDTH if is_narrow else width)
        self._page.turn(is_narrow=is_narrow)
