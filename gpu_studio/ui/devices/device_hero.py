"""Three answers in one card: what is in this PC, can PyTorch use it, and what to press."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QBoxLayout,
    QFrame,
    QListView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.device_name import name_at
from gpu_studio.core.devices.devices import short_name, without_maker
from gpu_studio.model.devices.device_board import DEVICE_ROLE, SUMMARY_ROLE
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.pages import BENCHMARK, BREAK_IT, CHECK, PITFALLS, RACE
from gpu_studio.model.run_queue import WorkState
from gpu_studio.ui.devices.device_verdict import DeviceVerdict
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import (
    GAP,
    MARGIN,
    Card,
    Text,
    button,
    keep_room,
    letters,
    rule,
    set_property,
    show_label,
)

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from gpu_studio.model.benchmark.quick_comparison import QuickComparison
    from gpu_studio.model.benchmark.standard_measurement import StandardMeasurement
    from gpu_studio.model.devices.device_board import DeviceList, DeviceRow
    from gpu_studio.model.headline import Headline
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme


_PADDING = 8
_GAP = 4
_RADIUS = 8
_NAME_SIZE = 1.5  # of the font
_NAME_GAP = 2
_BADGE_SIZE = 0.85  # of the font
_BADGE_RADIUS = 4
_WRAPPED = Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
_MOST_HEIGHT = 1000


class DeviceListView(QListView):
    """Shows the devices, as high as they are together; one is always selected.

    Signals:
        device_selected(str): the identity of the device that the user chose here.
    """

    device_selected = Signal(str)

    def __init__(self, devices: DeviceList, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.changed.connect(self.viewport().update)
        self.setObjectName("devices.table")
        self.setAccessibleName("Devices")
        self._devices = devices
        self._is_following = self._has_followed = False
        self.setModel(devices)
        self.setItemDelegate(_DeviceDelegate(theme, self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setProperty("plain", True)
        self.setSpacing(0)
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        devices.modelReset.connect(self._on_reset)
        devices.dataChanged.connect(self._fit)
        self.selectionModel().currentChanged.connect(self._on_current_changed)

    @property
    def is_choice(self) -> bool:
        """Whether the window has another device, here or in another list."""
        return self._devices.is_choice

    def follow(self, identity: str) -> None:
        """Mark this device as selected; none if it is one of another list."""
        row = self._devices.row_of(identity)
        self._has_followed = True
        if row != self.currentIndex().row():
            self._is_following = True
            self.setCurrentIndex(self._devices.index(row) if row >= 0 else QModelIndex())
            self._is_following = False

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out the devices again: they are as wide as the list."""
        super().resizeEvent(event)
        self.scheduleDelayedItemsLayout()
        self._fit()

    def _fit(self) -> None:
        """Show all devices at once: the page scrolls, not the list."""
        rows = range(self._devices.rowCount())
        self.setFixedHeight(max(sum(self.sizeHintForRow(row) for row in rows), 1))

    def _on_reset(self) -> None:
        self._has_followed = False
        self._fit()

    def _on_current_changed(self, current: QModelIndex) -> None:
        # Qt makes the first row current if the list gets the focus before it follows a device.
        if current.isValid() and self._has_followed and not self._is_following:
            self.device_selected.emit(current.data(DEVICE_ROLE).identity)


class _DeviceDelegate(QStyledItemDelegate):
    """Paints one device: its sign in its color, its name, and a line that describes it."""

    def __init__(self, theme: Theme, view: DeviceListView) -> None:
        super().__init__(view)
        self._theme, self._view = theme, view

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        """Return the height of a device: the line under the name wraps."""
        left = 3 * _PADDING + _sign_side(option.font)
        room = max(self._view.viewport().width() - left - _PADDING, 1)
        summary = option.fontMetrics.boundingRect(
            0, 0, room, _MOST_HEIGHT, _WRAPPED, index.data(SUMMARY_ROLE)
        )
        words = _name_line(option.font) + max(summary.height(), option.fontMetrics.height())
        return QSize(100, words + 2 * _PADDING + _GAP)

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        device: DeviceRow = index.data(DEVICE_ROLE)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = option.rect.adjusted(0, 0, 0, -_GAP)
        self._paint_frame(painter, box, option)
        side = _sign_side(option.font)
        sign = QRect(box.left() + _PADDING, box.top() + (box.height() - side) // 2, side, side)
        self._paint_sign(painter, sign, device)
        words = box.adjusted(3 * _PADDING + side, _PADDING, -_PADDING, -_PADDING)
        name_box = QRect(words.topLeft(), QSize(words.width(), _name_line(option.font)))
        painter.setFont(_name_font(option.font))
        painter.setPen(QColor(self._theme.colour("text")))
        maker = device.device.maker if device.device is not None else ""
        badge_width = _badge_width(option.font, maker)
        name = painter.fontMetrics().elidedText(
            _shown_name(device), Qt.TextElideMode.ElideRight, name_box.width() - badge_width
        )
        painter.drawText(name_box, Qt.AlignmentFlag.AlignTop, name)
        if maker:
            left = name_box.left() + painter.fontMetrics().horizontalAdvance(name) + _PADDING
            self._paint_badge(painter, left, name_box, option.font, maker)
        painter.setFont(option.font)
        painter.setPen(QColor(self._theme.colour("muted")))
        line_box = words.adjusted(0, name_box.height(), 0, _PADDING)
        painter.drawText(line_box, _WRAPPED, index.data(SUMMARY_ROLE))
        painter.restore()

    def _paint_sign(self, painter: QPainter, box: QRect, device: DeviceRow) -> None:
        role = self._theme.device_role(device.number or device.identity)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colour(role)))
        painter.drawRoundedRect(QRectF(box), _RADIUS, _RADIUS)
        inset = box.width() // 5
        drawing = icon("cpu" if device.is_cpu else "card", self._theme, "on_device")
        drawing.paint(painter, box.adjusted(inset, inset, -inset, -inset))

    def _paint_badge(
        self, painter: QPainter, left: int, line: QRect, font: QFont, maker: str
    ) -> None:
        """Paint who made a card, in a frame behind its name."""
        painter.setFont(_badge_font(font))
        height = painter.fontMetrics().height()
        top = line.top() + (line.height() - _NAME_GAP - height) // 2
        box = QRectF(left, top, _badge_width(font, maker) - _PADDING, height)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QColor(self._theme.colour("muted")))
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), _BADGE_RADIUS, _BADGE_RADIUS)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, maker)

    def _paint_frame(self, painter: QPainter, box: QRect, option: QStyleOptionViewItem) -> None:
        """Mark the selected one of several devices, and the one under the mouse."""
        from PySide6.QtWidgets import QStyle  # 5 ms: its enums

        state = option.state
        is_choice = self._view.is_choice
        is_selected = is_choice and bool(state & QStyle.StateFlag.State_Selected)
        is_hovered = is_choice and bool(state & QStyle.StateFlag.State_MouseOver)
        if is_selected or is_hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            shade = "selection" if is_selected else "hover"
            painter.setBrush(QColor(self._theme.colour(shade)))
            painter.drawRoundedRect(QRectF(box), _RADIUS, _RADIUS)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(QColor(self._theme.colour("accent")), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(box).adjusted(1, 1, -1, -1), _RADIUS, _RADIUS)


def _shown_name(device: DeviceRow) -> str:
    """Return the name without the maker; the tool tip has it in full."""
    name = short_name(device.name) if device.is_cpu else without_maker(device.name)
    return name_at(device.pc, name)


def _badge_font(font: QFont) -> QFont:
    badge_font = QFont(font)
    badge_font.setPointSizeF(_BADGE_SIZE * font.pointSizeF())
    badge_font.setWeight(QFont.Weight.DemiBold)
    return badge_font


def _badge_width(font: QFont, maker: str) -> int:
    """Return the room of a maker's badge and of the gap before it; 0 for no maker."""
    if not maker:
        return 0
    return QFontMetrics(_badge_font(font)).horizontalAdvance(maker) + 3 * _PADDING


def _sign_side(font: QFont) -> int:
    return _name_line(font) + QFontMetrics(font).height()


def _name_line(font: QFont) -> int:
    return QFontMetrics(_name_font(font)).height() + _NAME_GAP


def _name_font(font: QFont) -> QFont:
    name_font = QFont(font)
    name_font.setPointSizeF(_NAME_SIZE * font.pointSizeF())
    name_font.setWeight(QFont.Weight.DemiBold)
    return name_font


_PRESS_LETTERS = 34
_WIDE_LETTERS = 84  # narrower, and the buttons are below the devices
_PRESS_LINES = 2.4
_NO_LIMIT = (1 << 24) - 1  # QWIDGETSIZE_MAX
_TEST, _STOP_TEST = "Test each card", "Stop the test"
_TEST_TIP = "Runs a real kernel on each card, in a separate process"
_CHECK = "Check this card"
_CHECK_CPU = "Check CPU and RAM"
_CHECK_TIP = (
    "Is it sound? Tests computing, memory, heat and link, in 1 minute, 6 minutes or a night"
)
_MEASURE, _STOP_MEASURING = "Measure this PC", "Stop measuring"
_MEASURE_TIP = "The standard run: always the same work, so that PCs can be compared"
_RACE = "Race your CPU and GPU"
_RACE_THREADS = "Race 1 thread against all"
_WITHOUT_CARD = "What else works without a card: a simulated card to fill, and common mistakes."


class DeviceHero(Card):
    """The devices and the verdict on the selected one; beside them, the buttons.

    Attributes:
        list: the devices of this PC.
        verdict: whether PyTorch can use the selected one.
        presses: the row for the buttons that start something else than the comparison.
    """

    def __init__(
        self,
        studio: Studio,
        devices: DeviceList,
        comparison: QuickComparison,
        measurement: StandardMeasurement,
        theme: Theme,
    ) -> None:
        super().__init__(name="devices.hero")
        self._measurement = measurement
        self._studio, self._doctor = studio, studio.doctor
        self._comparison = comparison
        self._shown: DeviceRow | None = None
        self.list = DeviceListView(devices, theme)
        self.verdict = DeviceVerdict(theme, name="devices.verdict")
        self.verdict.action_requested.connect(studio.headlines.act)
        self._compare = button("", self._compare_devices, name="devices.compare", primary=True)
        self._compare.setIcon(icon("chart", theme, "on_accent"))
        self._note = Text("", "muted", name="devices.compare.note", wraps=True)
        self._test = button(_TEST, self._test_or_stop, name="devices.test", tip=_TEST_TIP)
        self._check = button("", self._want_check, name="devices.check", tip=_CHECK_TIP)
        self._check.setIcon(icon("shield", theme))
        self._race = button(
            "", self._watch_race, name="devices.race",
            tip="See both draw the same picture, in turns",
        )  # fmt: skip
        self._race.setIcon(icon("flag", theme))
        self._measure = button(
            _MEASURE, self._measure_or_stop, name="devices.measure", tip=_MEASURE_TIP
        )
        self._measure.setIcon(icon("clock", theme))
        own = self._measure.sizeHint().width()  # with either name
        self._least_widths = {self._check: 0, self._test: 0, self._race: 0, self._measure: own}
        # As they come: the last two once the engine has described itself.
        self.presses = FlowRow(self._check, self._test, self._race, self._measure, spacing=GAP)
        self._without_card = self._without_card_row()
        self._side = self._make_side()
        self._halves = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._halves.setSpacing(2 * MARGIN)
        self.column.addLayout(self._halves)
        answers = QVBoxLayout()
        answers.setSpacing(GAP)
        self._halves.addLayout(answers, 1)
        self._heading = QVBoxLayout()
        answers.addLayout(self._heading)
        answers.addWidget(self.list)
        self._groups = QVBoxLayout()
        self._groups.setSpacing(GAP)
        answers.addLayout(self._groups)
        answers.addWidget(rule())
        answers.addWidget(self.verdict)
        answers.addWidget(self._without_card)
        answers.addStretch(1)
        self._halves.addWidget(self._side)
        self._compare.hide()
        self._measure.hide()
        self._race.hide()
        self._check.hide()
        self._test.hide()
        self._without_card.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the buttons beside the devices if there is room, or below them."""
        super().resizeEvent(event)
        self._lay_out()

    def set_heading(self, heading: QWidget) -> None:
        """Put a heading above the devices of this PC."""
        self._heading.addWidget(heading)

    def add_group(self, group: QWidget) -> None:
        """Put the devices of another PC below those that are there."""
        self._groups.addWidget(group)

    def show_verdict(self, headline: Headline, *, in_brief: bool) -> None:
        """Show the verdict; a page has one primary button, and a fix comes first."""
        self.verdict.show_headline(headline, in_brief=in_brief)
        set_property(self._compare, "primary", not self.verdict.has_action)

    def show_presses(self, has_cards: bool | None, shown: DeviceRow | None) -> None:
        """Offer what one click does.

        Args:
            shown: the selected device; None until devices are found.
            has_cards: whether its PC has a card to test; None until the PC is examined.
        """
        self._shown = shown
        is_here = shown is None or not shown.pc
        devices = self._comparison.devices
        show_label(self._compare, self._comparison.title if devices else "")
        self._compare.setMinimumHeight(round(_PRESS_LINES * self.fontMetrics().height()))
        self._note.setText(self._comparison.sentence)
        is_measuring = self._measurement.state.is_busy
        show_label(self._measure, _STOP_MEASURING if is_measuring else _MEASURE)
        self._measure.setVisible(is_measuring or bool(self._measurement.devices))
        self._measure.setToolTip(f"{_MEASURE_TIP}. {self._measurement.sentence}".rstrip())
        self._measure.setEnabled(self._measurement.state is not WorkState.STOPPING)
        race = _RACE if len(devices) > 1 else _RACE_THREADS
        show_label(self._race, race if devices else "")
        check = "" if shown is None else _CHECK_CPU if shown.is_cpu else _CHECK
        show_label(self._check, check)
        is_testing = self._doctor.is_checking
        test = _STOP_TEST if is_testing else _TEST
        show_label(self._test, test if has_cards and is_here else "")
        self._test.setEnabled(is_testing or self._doctor.can_check)
        is_settled = self._studio.session.state is not EngineState.STARTING
        without_card = has_cards is False and is_settled and is_here
        self._without_card.setVisible(without_card)  # below what comes then
        self._lay_out()

    def _lay_out(self) -> None:
        is_wide = self.width() >= letters(self, _WIDE_LETTERS)
        directions = QBoxLayout.Direction
        self._halves.setDirection(directions.LeftToRight if is_wide else directions.TopToBottom)
        # In a narrow font the icon and the padding take more than their share of the letters.
        width = max(letters(self, _PRESS_LETTERS), self._compare.sizeHint().width())
        self._side.setMaximumWidth(width if is_wide else _NO_LIMIT)
        self._side.setMinimumWidth(width if is_wide else 0)
        # One below the other they end at one edge.
        for press, least in self._least_widths.items():
            press.setMinimumWidth(width if is_wide else least)

    def _make_side(self) -> QWidget:
        place = QWidget()
        side = QVBoxLayout(place)
        side.setContentsMargins(0, 0, 0, 0)
        side.setSpacing(GAP)
        # What is known first is above what comes seconds later, which has its room.
        keep_room(self._compare)
        for part in (self._compare, self.presses, self._note):
            side.addWidget(part)
        side.addStretch(1)
        return place

    def _without_card_row(self) -> QWidget:
        place = QWidget()
        place.setObjectName("devices.without_card")
        simulated = button(
            "Break a simulated card", self._break_it, name="devices.simulated",
            tip="Fill the memory of a simulated card until an allocation fails",
        )  # fmt: skip
        pitfalls = button(
            "Try the pitfalls", self._try_pitfalls, name="devices.pitfalls",
            tip="Run the usual mistakes, broken and fixed",
        )  # fmt: skip
        column = QVBoxLayout(place)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GAP)
        column.addWidget(Text(_WITHOUT_CARD, "muted", wraps=True))
        column.addWidget(FlowRow(simulated, pitfalls, spacing=GAP))
        return place

    def _compare_devices(self) -> None:
        self._studio.go_to(BENCHMARK, starts=True)

    def _measure_or_stop(self) -> None:
        if self._measurement.state.is_busy:
            self._measurement.stop()
        else:
            self._measurement.start()

    def _watch_race(self) -> None:
        self._studio.go_to(RACE, starts=True)

    def _want_check(self) -> None:
        if self._shown is not None:
            self._studio.go_to(CHECK, device=self._shown.identity)

    def _test_or_stop(self) -> None:
        if self._doctor.is_checking:
            self._doctor.stop()
        else:
            self._doctor.check()

    def _break_it(self) -> None:
        self._studio.go_to(BREAK_IT)

    def _try_pitfalls(self) -> None:
        self._studio.go_to(PITFALLS)
