"""What is chosen on a described page; see `page`.

A control writes one field of the model's frozen `choices` with ``model.choose(field=value)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QSignalBlocker, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QSlider,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.eliding import ComboBox, ElidingCombo, show_items
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import (
    GAP,
    Text,
    height_of_rows,
    letters,
    set_property,
    show_tip,
    table,
)
from gpu_studio.ui.scroll_page import keep_row_in_view

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QIcon, QWheelEvent

    from gpu_studio.ui.page import Page, Read
from gpu_studio.ui.page import Part

_MOST_ROWS = 8  # of a table to choose from; more of them scroll


def _choose(page: Page, part: _Control) -> Callable[[object], None]:
    def choose(value: object) -> None:
        whole = getattr(page.model.choices, part.of)
        page.model.choose(**{part.of: {**whole, part.key: value} if part.key else value})

    return choose


def _chosen(page: Page, part: _Control) -> Any:
    whole = getattr(page.model.choices, part.of)
    return whole.get(part.key, part.usual) if part.key else whole


def _follow(page: Page, part: _Control, control: QWidget, show: Callable[[Any], object]) -> None:
    """Show a choice in its control, which does not choose it again."""

    def update() -> None:
        with QSignalBlocker(control):
            show(_chosen(page, part))

    page.updates.append(update)


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
        show_tip(control, part.tip)
    if not part.is_titled:
        return control
    label = Text(part.title)
    label.setBuddy(control)
    label.setMinimumWidth(letters(label, part.title_letters))
    row = FlowRow(label, control, spacing=GAP)
    row.setObjectName(f"{page.name}.{part.name}.row")
    return row


@dataclass(eq=False, repr=False, kw_only=True)
class _Control(Part):
    """Writes the field ``of`` of the choices.

    Attributes:
        of: the field.
        key: the key in it, if the field is a mapping.
        usual: what is chosen while the mapping does not have the key.
        title: its name, also for a screen reader.
        is_titled: whether the title stands before it.
        title_letters: the title's least width: controls below each other begin at one place.
        enabled: returns whether it can be changed; None: always.
    """

    of: str
    key: str = ""
    usual: Any = None
    title: str
    is_titled: bool = False
    title_letters: int = 0
    enabled: Read | None = None


@dataclass(eq=False, repr=False, kw_only=True)
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
        choose = _choose(page, self)
        if self.editable:
            box.editTextChanged.connect(choose)
        else:
            box.currentIndexChanged.connect(lambda at: choose(box.itemData(at)))
        return _titled(page, self, box)

    def _show(self, page: Page, box: ComboBox) -> None:
        value = _chosen(page, self)
        with QSignalBlocker(box):
            show_items(box, _pairs(self.items))
            if not self.editable:
                values = [box.itemData(place) for place in range(box.count())]
                box.setCurrentIndex(values.index(value) if value in values else 0)
            elif box.currentText() != value:
                box.setCurrentText(value)


@dataclass(eq=False, repr=False, kw_only=True)
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

        _follow(page, self, box, box.setValue)
        box.valueChanged.connect(_choose(page, self))
        return _titled(page, self, box)


@dataclass(eq=False, repr=False, kw_only=True)
class Slide(_Control):
    """A slider over ``items`` as in `Pick`; its title and the text of its place stand above it."""

    items: Read | Sequence[Any]

    def make(self, page: Page) -> QWidget:
        place, slider, shown = QWidget(), Slider(Qt.Orientation.Horizontal), Text(role="value")
        slider.setPageStep(1)
        title = Text(self.title)
        title.setBuddy(slider)
        column, line = QVBoxLayout(place), QHBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(line)
        line.setSpacing(GAP)  # without it, that of the column
        line.addWidget(title, 1)
        line.addWidget(shown)
        column.addWidget(_titled(page, self, slider))

        def update() -> None:
            pairs, value = _pairs(self.items), _chosen(page, self)
            places = [at for at, (_, one) in enumerate(pairs) if one == value]
            with QSignalBlocker(slider):
                slider.setRange(0, len(pairs) - 1)
                slider.setValue(places[0] if places else 0)
            shown.setText(pairs[slider.value()][0])
            slider.setAccessibleDescription(f"{shown.text()}. {slider.toolTip()}".strip())

        page.updates.append(update)
        choose = _choose(page, self)
        slider.valueChanged.connect(lambda at: choose(_pairs(self.items)[at][1]))
        place.setObjectName(f"{page.name}.{self.name}.row")
        return place


class Slider(QSlider):
    """A slider that leaves the wheel to the page."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page: a choice changes on purpose only."""
        event.ignore()


@dataclass(eq=False, repr=False, kw_only=True)
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
            if line.displayText() != (value := _chosen(page, self)):
                with QSignalBlocker(line):
                    line.setText(value)

        page.updates.append(update)
        line.textChanged.connect(_choose(page, self))
        if self.entered is not None:
            line.returnPressed.connect(self.entered)
        return _titled(page, self, line)


@dataclass(eq=False, repr=False, kw_only=True)
class Tick(_Control):
    """A check box; ``picture`` stands before its title."""

    picture: QIcon | None = None

    def make(self, page: Page) -> QWidget:
        box = QCheckBox(self.title.replace("&", "&&"))
        if self.picture is not None:
            box.setIcon(self.picture)

        _follow(page, self, box, box.setChecked)
        box.toggled.connect(_choose(page, self))
        return _titled(page, self, box)


@dataclass(eq=False, repr=False, kw_only=True)
class Switch(_Control):
    """Buttons side by side, one of which is down; ``items`` as in `Pick`, never changing.

    Each button is named by its value: ``benchmark.view.time``.

    Attributes:
        is_radio: whether they are radio buttons, in as many lines as needed.
    """

    is_compact = True

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
        place = FlowRow(*values, spacing=GAP if self.is_radio else 0)
        choose = _choose(page, self)
        group.buttonClicked.connect(lambda pressed: choose(values[pressed]))

        def update() -> None:
            for pressed, value in values.items():
                pressed.setChecked(value == _chosen(page, self))

        page.updates.append(update)
        return _titled(page, self, place)


@dataclass(eq=False, repr=False, kw_only=True)
class ChosenRows(_Control):
    """A table whose selected rows are chosen: the field is a tuple of their keys, in their order.

    Attributes:
        head: the column headers.
        rows: returns the texts of the rows by their keys.
        numbers: the columns of numbers.
        wide: the column that takes the spare width; its texts end in "…" without room.
        most_rows: of more rows, it scrolls.
        one: returns the key of the chosen row, if there is one at a time: the field is its key.
        deleted: called when Delete is pressed.
    """

    head: Sequence[str]
    rows: Read
    numbers: Sequence[int] = ()
    wide: int = 0
    most_rows: int = _MOST_ROWS
    one: Read | None = None
    deleted: Callable[[], object] | None = None

    def make(self, page: Page) -> QWidget:
        rows = TextRows(self.head, self.numbers, page)
        keys: list[Any] = []
        view = table(rows, name=f"{page.name}.{self.name}", accessible_name=self.title)
        header = view.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(self.wide, QHeaderView.ResizeMode.Stretch)
        choose, chosen = _choose(page, self), view.selectionModel()
        one = self.one
        if one is not None:
            view.setSelectionMode(view.SelectionMode.SingleSelection)

        def selected() -> tuple[Any, ...]:
            return tuple(keys[at] for at in sorted(one.row() for one in chosen.selectedRows()))

        def update() -> None:
            found = self.rows()
            keys[:] = found
            rows.set_rows([*found.values()])
            view.setFixedHeight(height_of_rows(view, min(max(len(keys), 1), self.most_rows)))
            wanted = (one(),) if one is not None else _chosen(page, self)
            if selected() != wanted:
                select = QItemSelection()
                for at in (at for at, key in enumerate(keys) if key in wanted):
                    select.select(rows.index(at, 0), rows.index(at, len(self.head) - 1))
                chosen.select(select, QItemSelectionModel.SelectionFlag.ClearAndSelect)

        def on_selected() -> None:
            if one is None:
                choose(selected())
            elif keys_chosen := selected():
                choose(keys_chosen[0])

        page.updates.append(update)
        chosen.selectionChanged.connect(on_selected)
        # A table that is shown in full does not scroll: the tab around it does.
        chosen.currentChanged.connect(lambda now, _before: keep_row_in_view(view, now.row()))
        if self.deleted is not None:
            keys_of = QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), view)
            keys_of.setContext(Qt.ShortcutContext.WidgetShortcut)
            keys_of.activated.connect(self.deleted)
        return _titled(page, self, view)
