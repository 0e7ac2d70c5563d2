"""Pages from a description: each part names what it shows of the page's model.

A `Page` builds its parts once. While it is visible, it shows all of them again whenever its model
says `changed`; while it is hidden it does nothing, and catches up when it is shown. A part reads
what it shows by a function without arguments. A control writes one field of the model's frozen
`choices` with ``model.choose(field=value)``. See `model/page_model.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QSignalBlocker, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QBoxLayout,
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QMenu,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QSizePolicy,
    QSlider,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.text_rows import TextRows, plain_tip
from gpu_studio.ui.eliding import ComboBox, ElidingCombo, show_items
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page_keys import runs, saves, stops
from gpu_studio.ui.parts import (
    GAP,
    MARGIN,
    Card,
    Role,
    Text,
    button,
    height_of_rows,
    keep_room,
    letters,
    section,
    set_property,
    show_whole_rows,
    table,
)

if TYPE_CHECKING:
    from PySide6.QtGui import QHideEvent, QIcon, QResizeEvent, QShowEvent, QWheelEvent

    from gpu_studio.model.page_model import PageModel
    from gpu_studio.ui.theme import Theme

Read = Callable[[], Any]
_STEPS = 1000  # of a bar of progress
_KEYS = {"run": runs, "stop": stops, "save": saves}


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


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a page.

    Attributes:
        name: its object name, after that of the page.
        shown: returns whether it is visible; None: always.
        tip: its tool tip, which a screen reader reads as well; may be a function.
        keeps_room: its place stays while it is hidden.
        stretch: its share of the spare height or width.
        presented: whether it stays, with all that is in it, in the form for an audience.
    """

    name: str = ""
    shown: Read | None = None
    tip: Read | str = ""
    keeps_room: bool = False
    stretch: int = 0
    presented: bool = False

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
            keep_room(widget)
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
        _show_tip(widget, tip)

    def _is_visible(self, page: Page, widget: QWidget) -> bool:
        if page.is_presented and not self.is_for_audience:
            return False
        return self.is_filled(widget) and (self.shown is None or bool(self.shown()))


def _show_tip(widget: QWidget, tip: str) -> None:
    widget.setToolTip(plain_tip(tip))
    widget.setAccessibleDescription(tip)


# ── words ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Words(Part):
    """A text or a notice, hidden while it is empty."""

    text: Read | str
    role: Role = ""
    wraps: bool = True

    def make(self, page: Page) -> QWidget:
        label = Text("", self.role, wraps=self.wraps)

        def update() -> None:
            said = self.text() if callable(self.text) else self.text
            notice = said if isinstance(said, Notice) else Notice(said or "")
            label.setText(notice.sentence)
            label.set_tone(notice.tone)

        page.updates.append(update)
        return label

    def is_filled(self, widget: Text) -> bool:
        return bool(widget.text())


@dataclass(frozen=True)
class Heading(Part):
    """The small heading above a group."""

    text: str

    def make(self, page: Page) -> QWidget:
        return section(self.text)


# ── what is pressed ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Press(Part):
    """A button; ``label`` may be a function, and an empty label hides it.

    ``primary`` may be a function as well, where another button may come first. ``key`` is what
    presses it as well: run, stop or save. ``link`` looks like a link.
    """

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
            _KEYS[self.key](pressed)
        return pressed

    def is_filled(self, widget: QPushButton) -> bool:
        return bool(widget.text())

    def show_tip(self, widget: Any, tip: str) -> None:
        super().show_tip(widget, tip)
        if self.key:
            _KEYS[self.key](widget)  # the tool tip names the key

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


def _enable(pressed: QPushButton, can: bool) -> None:
    """Enable a button; the focus of one that is disabled goes on to the next."""
    if not can and pressed.hasFocus():
        pressed.focusNextChild()
    pressed.setEnabled(can)


@dataclass(frozen=True)
class More(Part):
    """A button with a menu; ``items`` returns pairs of a text and what it does, None is a line."""

    label: str
    items: Read
    icon: str = ""

    def make(self, page: Page) -> QWidget:
        pressed = QPushButton(self.label)
        pressed.setAccessibleName(self.label)
        if self.icon:
            pressed.setIcon(icon(self.icon, page.theme))
        menu = QMenu(pressed)
        pressed.setMenu(menu)

        def fill() -> None:
            menu.clear()
            for item in self.items():
                if item is None:
                    menu.addSeparator()
                    continue
                text, does = item
                menu.addAction(text, does).setEnabled(does is not None)

        menu.aboutToShow.connect(fill)
        return pressed


# ── what is chosen ───────────────────────────────────────────────────────────────────────────────


def _choose(page: Page, of: str) -> Callable[[object], None]:
    return lambda value: page.model.choose(**{of: value})


def _chosen(page: Page, of: str) -> Any:
    return getattr(page.model.choices, of)


def _pairs(items: Read | Sequence[Any]) -> list[tuple[str, Any]]:
    offered = items() if callable(items) else items
    return [one if isinstance(one, tuple) else (one, one) for one in offered]


def _titled(page: Page, part: _Control, control: QWidget) -> QWidget:
    """Return a control with its title before it, or alone if the title is only for the ear."""
    control.setAccessibleName(part.title)
    control.setObjectName(f"{page.name}.{part.name}")
    enabled = part.enabled
    if enabled is not None:
        page.updates.append(lambda: control.setEnabled(bool(enabled())))
    if isinstance(part.tip, str) and part.tip:
        _show_tip(control, part.tip)
    if not part.is_titled:
        return control
    label = Text(part.title)
    label.setBuddy(control)
    label.setMinimumWidth(letters(label, part.title_letters))
    row = FlowRow(label, control, spacing=GAP)
    row.setObjectName(f"{page.name}.{part.name}.row")
    return row


@dataclass(frozen=True, kw_only=True)
class _Control(Part):
    """Writes the field ``of`` of the choices.

    Attributes:
        of: the field.
        title: its name, also for a screen reader.
        is_titled: whether the title stands before it.
        title_letters: the title's least width: controls below each other begin at one place.
        enabled: returns whether it can be changed; None: always.
    """

    of: str
    title: str
    is_titled: bool = False
    title_letters: int = 0
    enabled: Read | None = None


@dataclass(frozen=True, kw_only=True)
class Pick(_Control):
    """A list; ``items`` are texts or pairs of a text and its value. An editable one gives text.

    Attributes:
        items: what is offered.
        editable: whether another text can be written.
        least_letters: its least width; a longer text ends in "…".
        hint: what stands in an editable one while it is empty.
        wrong: returns whether the written text is none of what is understood.
    """

    items: Read | Sequence[Any]
    editable: bool = False
    least_letters: int = 8
    hint: str = ""
    wrong: Read | None = None

    def make(self, page: Page) -> QWidget:
        box: ComboBox = ComboBox() if self.editable else ElidingCombo()
        box.setEditable(self.editable)
        box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(self.least_letters)
        if (line := box.lineEdit()) is not None:
            line.setAccessibleName(self.title)
            line.setPlaceholderText(self.hint)
            box.setMinimumWidth(letters(box, self.least_letters))
        wrong = self.wrong
        if wrong is not None and line is not None:
            page.updates.append(lambda: set_property(line, "invalid", bool(wrong())))
        page.updates.append(lambda: self._show(page, box))
        choose = _choose(page, self.of)
        if self.editable:
            box.editTextChanged.connect(choose)
        else:
            box.currentIndexChanged.connect(lambda at: choose(box.itemData(at)))
        return _titled(page, self, box)

    def _show(self, page: Page, box: ComboBox) -> None:
        value = _chosen(page, self.of)
        with QSignalBlocker(box):
            show_items(box, _pairs(self.items))
            if not self.editable:
                values = [box.itemData(place) for place in range(box.count())]
                box.setCurrentIndex(values.index(value) if value in values else 0)
            elif box.currentText() != value:
                box.setCurrentText(value)


@dataclass(frozen=True, kw_only=True)
class Number(_Control):
    """A whole number, or one with ``decimals``; ``special`` is what the lowest one means."""

    low: float
    high: float
    step: float = 1
    decimals: int = 0
    special: str = ""
    suffix: str = ""

    def make(self, page: Page) -> QWidget:
        box: QSpinBox | QDoubleSpinBox
        if self.decimals:
            box = QDoubleSpinBox(decimals=self.decimals)
            box.setRange(self.low, self.high)
            box.setSingleStep(self.step)
        else:
            box = QSpinBox()
            box.setRange(int(self.low), int(self.high))
            box.setSingleStep(int(self.step))
        box.setGroupSeparatorShown(True)
        box.lineEdit().setTextMargins(7, 0, 0, 0)  # the style sheet's padding does not reach it
        box.setSpecialValueText(self.special)
        box.setSuffix(self.suffix)
        box.setKeyboardTracking(False)
        box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # the wheel is the page's
        box.setCorrectionMode(QAbstractSpinBox.CorrectionMode.CorrectToNearestValue)

        def update() -> None:
            with QSignalBlocker(box):
                box.setValue(_chosen(page, self.of))

        page.updates.append(update)
        box.valueChanged.connect(_choose(page, self.of))
        return _titled(page, self, box)


@dataclass(frozen=True, kw_only=True)
class Slide(_Control):
    """A slider over ``items`` as in `Pick`; its title and the text of its place stand above it."""

    items: Read | Sequence[Any]

    def make(self, page: Page) -> QWidget:
        place, slider, shown = QWidget(), _Slider(Qt.Orientation.Horizontal), Text(role="value")
        slider.setPageStep(1)
        title = Text(self.title)
        title.setBuddy(slider)
        column, line = QVBoxLayout(place), QHBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(line)
        line.addWidget(title, 1)
        line.addWidget(shown)
        column.addWidget(_titled(page, self, slider))

        def update() -> None:
            pairs, value = _pairs(self.items), _chosen(page, self.of)
            places = [at for at, (_, one) in enumerate(pairs) if one == value]
            with QSignalBlocker(slider):
                slider.setRange(0, len(pairs) - 1)
                slider.setValue(places[0] if places else 0)
            shown.setText(pairs[slider.value()][0])
            slider.setAccessibleDescription(f"{shown.text()}. {slider.toolTip()}".strip())

        page.updates.append(update)
        choose = _choose(page, self.of)
        slider.valueChanged.connect(lambda at: choose(_pairs(self.items)[at][1]))
        place.setObjectName(f"{page.name}.{self.name}.row")
        return place


class _Slider(QSlider):
    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page: a choice changes on purpose only."""
        event.ignore()


@dataclass(frozen=True, kw_only=True)
class Line(_Control):
    """A line of text; ``hint`` stands in it while it is empty, and Enter calls ``entered``."""

    hint: str = ""
    wrong: Read | None = None
    entered: Callable[[], object] | None = None

    def make(self, page: Page) -> QWidget:
        line = QLineEdit()
        line.setPlaceholderText(self.hint)
        wrong = self.wrong
        if wrong is not None:
            page.updates.append(lambda: set_property(line, "invalid", bool(wrong())))

        def update() -> None:
            if line.displayText() != (value := _chosen(page, self.of)):
                with QSignalBlocker(line):
                    line.setText(value)

        page.updates.append(update)
        line.textChanged.connect(_choose(page, self.of))
        if self.entered is not None:
            line.returnPressed.connect(self.entered)
        return _titled(page, self, line)


@dataclass(frozen=True, kw_only=True)
class Tick(_Control):
    """A check box."""

    def make(self, page: Page) -> QWidget:
        box = QCheckBox(self.title)

        def update() -> None:
            with QSignalBlocker(box):
                box.setChecked(_chosen(page, self.of))

        page.updates.append(update)
        box.toggled.connect(_choose(page, self.of))
        return _titled(page, self, box)


@dataclass(frozen=True, kw_only=True)
class Switch(_Control):
    """Buttons side by side, one of which is down; ``items`` as in `Pick`, never changing.

    Each button is named by its value: ``benchmark.view.time``.

    Attributes:
        is_radio: whether they are radio buttons, in as many lines as needed.
    """

    items: Sequence[Any]
    is_radio: bool = False

    def make(self, page: Page) -> QWidget:
        group = QButtonGroup(page)
        values: dict[Any, Any] = {}
        for text, value in _pairs(self.items):
            pressed = QRadioButton(text) if self.is_radio else QPushButton(text)
            pressed.setCheckable(True)
            pressed.setObjectName(f"{page.name}.{self.name}.{value}")
            pressed.setAccessibleName(text)
            group.addButton(pressed)
            values[pressed] = value
        place = FlowRow(*values, spacing=GAP) if self.is_radio else _joined(values)
        choose = _choose(page, self.of)
        group.buttonClicked.connect(lambda pressed: choose(values[pressed]))

        def update() -> None:
            for pressed, value in values.items():
                pressed.setChecked(value == _chosen(page, self.of))

        page.updates.append(update)
        return _titled(page, self, place)


def _joined(widgets: Iterable[QWidget]) -> QWidget:
    place = QWidget()
    line = QHBoxLayout(place)
    line.setContentsMargins(0, 0, 0, 0)
    line.setSpacing(0)
    for widget in widgets:
        line.addWidget(widget)
    return place


# ── tables and own widgets ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Rows(Part):
    """A table of texts as high as its rows; ``numbers`` are the columns of numbers."""

    label: str
    head: Sequence[str]
    rows: Read
    numbers: Sequence[int] = ()

    def make(self, page: Page) -> QWidget:
        rows = TextRows(self.head, self.numbers, page)
        view = table(rows, name=f"{page.name}.{self.name}", accessible_name=self.label)

        def update() -> None:
            rows.set_rows(self.rows())
            show_whole_rows(view)

        page.updates.append(update)
        return view


@dataclass(frozen=True, kw_only=True)
class ChosenRows(_Control):
    """A table whose selected rows are chosen: the field is a tuple of their keys, in their order.

    Attributes:
        head: the column headers.
        rows: returns the texts of the rows by their keys.
        numbers: the columns of numbers.
        wide: the column that takes the spare width; its texts end in "…" without room.
        most_rows: of more rows, it scrolls.
        opened: called when a row is opened, by Enter or two clicks.
        deleted: called when Delete is pressed.
    """

    head: Sequence[str]
    rows: Read
    numbers: Sequence[int] = ()
    wide: int = 0
    most_rows: int = 8
    opened: Callable[[], object] | None = None
    deleted: Callable[[], object] | None = None

    def make(self, page: Page) -> QWidget:
        rows = TextRows(self.head, self.numbers, page)
        keys: list[Any] = []
        view = table(rows, name=f"{page.name}.{self.name}", accessible_name=self.title)
        header = view.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(self.wide, QHeaderView.ResizeMode.Stretch)
        choose, chosen = _choose(page, self.of), view.selectionModel()

        def selected() -> tuple[Any, ...]:
            return tuple(keys[at] for at in sorted(one.row() for one in chosen.selectedRows()))

        def update() -> None:
            found = self.rows()
            keys[:] = found
            rows.set_rows([*found.values()])
            view.setFixedHeight(height_of_rows(view, min(max(len(keys), 1), self.most_rows)))
            if selected() != (wanted := _chosen(page, self.of)):
                select = QItemSelection()
                for at in (at for at, key in enumerate(keys) if key in wanted):
                    select.select(rows.index(at, 0), rows.index(at, len(self.head) - 1))
                chosen.select(select, QItemSelectionModel.SelectionFlag.ClearAndSelect)

        page.updates.append(update)
        chosen.selectionChanged.connect(lambda: choose(selected()))
        if self.opened is not None:
            view.activated.connect(self.opened)
        if self.deleted is not None:
            keys_of = QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), view)
            keys_of.setContext(Qt.ShortcutContext.WidgetShortcut)
            keys_of.activated.connect(self.deleted)
        return _titled(page, self, view)


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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


# ── groups ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, init=False)
class _Group(Part):
    inner: tuple[Part, ...] = field(default=())

    def __init__(self, *inner: Part, **attributes: Any) -> None:
        if attributes.get("presented"):
            inner = tuple(map(_presented, inner))
        usual = {one.name: one.default for one in fields(self)}
        for name, value in {**usual, "inner": inner, **attributes}.items():
            object.__setattr__(self, name, value)

    @property
    def is_for_audience(self) -> bool:
        return self.presented or any(part.is_for_audience for part in self.inner)


def _presented(part: Part) -> Part:
    made = copy(part)
    object.__setattr__(made, "presented", True)
    if isinstance(made, _Group):
        object.__setattr__(made, "inner", tuple(map(_presented, made.inner)))
    return made


class Flow(_Group):
    """Parts side by side, in as many lines as needed; one with ``stretch`` fills its line."""

    def make(self, page: Page) -> QWidget:
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


class Turning(_Group):
    """Parts below each other; side by side, in as many lines as needed, where it is narrow."""

    def make(self, page: Page) -> QWidget:
        made = _TurningWidget([part.build(page) for part in self.inner])
        page.updates.append(lambda: made.turn(is_narrow=page.is_narrow))
        return made


class _TurningWidget(QWidget):
    def __init__(self, widgets: list[QWidget]) -> None:
        super().__init__()
        self._widgets, self._is_narrow = widgets, False
        self._flow = FlowRow(spacing=GAP)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(GAP)
        for widget in (self._flow, *widgets):
            self._column.addWidget(widget)
        self._flow.hide()

    def turn(self, *, is_narrow: bool) -> None:
        if is_narrow == self._is_narrow:
            return
        self._is_narrow = is_narrow
        focused, hidden = self.window().focusWidget(), [one.isHidden() for one in self._widgets]
        self._flow.set_widgets(*(self._widgets if is_narrow else ()))
        self._flow.setVisible(is_narrow)
        for widget, was_hidden in zip(self._widgets, hidden, strict=True):
            if not is_narrow:
                self._column.addWidget(widget)
            widget.setVisible(not was_hidden)
        if focused is not None and self.isAncestorOf(focused):
            focused.setFocus()  # a widget that gets another parent loses it


def _fill(column: QVBoxLayout, inner: Sequence[Part], page: Page) -> None:
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(GAP)
    _add(column, inner, page)


def _add(column: QVBoxLayout, inner: Sequence[Part], page: Page) -> None:
    """Put parts below each other; a button is as wide as its words."""
    for part in inner:
        is_button = isinstance(part, (Press, More, Switch)) and not part.stretch
        is_button = is_button and not getattr(part, "is_radio", False)
        sides = Qt.AlignmentFlag.AlignLeft if is_button else Qt.AlignmentFlag(0)
        column.addWidget(part.build(page), part.stretch, sides)
    # Room that is left where the part that takes it is hidden.
    column.addStretch(0 if any(part.stretch for part in inner) else 1)


@dataclass(frozen=True, init=False)
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


@dataclass(frozen=True, init=False)
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


@dataclass(frozen=True)
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


@dataclass(frozen=True, init=False)
class Beside(_Group):
    """A narrow column at the left of the rest; above it where the page is narrow.

    The first part is the column, ``side_letters`` wide; the second one is the rest.
    """

    side_letters: int = 30

    def make(self, page: Page) -> QWidget:
        side, rest = (part.build(page) for part in self.inner)
        return _BesideWidget(page, side, rest, self.side_letters)


_NARROW, _NARROW_LETTERS = 1024, 132
_ANY_WIDTH = (1 << 24) - 1  # Qt's QWIDGETSIZE_MAX


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
