"""A PC on the Devices page: its heading where there are several, and its devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QLabel, QMessageBox, QRadioButton, QSizePolicy

from gpu_studio.core.device_name import name_at
from gpu_studio.core.devices.devices import short_name, without_maker
from gpu_studio.core.notice import Notice, Tone, action_label
from gpu_studio.model.pc import RemotePc
from gpu_studio.model.text_rows import plain_tip
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page import Columns, Each, Own, Stack
from gpu_studio.ui.page_parts import Press, Words

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.devices.devices import DevicesModel
    from gpu_studio.model.pc import Pc
    from gpu_studio.model.pcs import Pcs
    from gpu_studio.ui.page import Page, Part
    from gpu_studio.ui.theme import Theme


_SIGNS = {  # (icon, its color)
    Tone.GOOD: ("check", "good"),
    Tone.AMBER: ("warning", "amber"),
    Tone.FAILURE: ("warning", "failure_ink"),
    Tone.QUIET: ("clock", "muted"),
    Tone.PLAIN: ("info", "muted"),
}
STACKED = 1000  # letters: no page is so wide
_REMOVE_QUESTION = (
    "Remove {name} from Devices? Its results stay. To use it again, add it with its host."
)


_PADDING = 8
_RADIUS = 8
_NAME_SIZE = 1.5  # of the font
_NAME_GAP = 2
_WRAPPED = Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
_MOST_HEIGHT = 1000


class DeviceButton(QRadioButton):
    """Shows a device; before there is one, it keeps the room.

    Attributes:
        device: the device.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        theme.changed.connect(self.update)
        self._theme = theme
        self.device: DeviceRow | None = None
        self._summary, self._is_choice = "", False
        self.setAutoExclusive(False)  # that of another PC is in another group
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_device(
        self, device: DeviceRow, summary: str, *, is_selected: bool, is_choice: bool
    ) -> None:
        """Show a device.

        Args:
            device: the device.
            summary: the line under its name.
            is_selected: whether it is the selected one.
            is_choice: whether there is another one.
        """
        self.device, self._is_choice = device, is_choice
        self.setChecked(is_selected)
        if summary != self._summary:
            self._summary = summary
            self.updateGeometry()
        name = name_at(device.pc, device.name)
        unreadable = device.device.unreadable if device.device is not None else None
        self.setAccessibleName(f"{name}, {summary}")
        self.setToolTip(plain_tip(f"{name}\n{unreadable or summary}"))
        self.update()

    def nextCheckState(self) -> None:
        """Change nothing: the page shows which one is selected."""

    def hitButton(self, place: QPoint) -> bool:
        """Take a press anywhere."""
        return self.rect().contains(place)

    def sizeHint(self) -> QSize:
        """Return the size with a summary of one line."""
        return QSize(100, _sign_side(self.font()) + 2 * _PADDING)

    def minimumSizeHint(self) -> QSize:
        """Return the size with a summary of one line."""
        return self.sizeHint()

    def heightForWidth(self, width: int) -> int:
        """Return the height of a device: the line under the name wraps."""
        room = max(width - 4 * _PADDING - _sign_side(self.font()), 1)
        one_line, all_lines = (
            self.fontMetrics().boundingRect(0, 0, room, _MOST_HEIGHT, _WRAPPED, words).height()
            for words in ("x", self._summary or "x")
        )
        return self.sizeHint().height() + all_lines - one_line

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the device."""
        device = self.device
        if device is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_frame(painter)
        side = _sign_side(self.font())
        self._paint_sign(painter, QRect(_PADDING, (self.height() - side) // 2, side, side), device)
        words = self.rect().adjusted(3 * _PADDING + side, _PADDING, -_PADDING, -_PADDING)
        painter.setFont(_name_font(self.font()))
        painter.setPen(QColor(self._theme.colour("text")))
        name = painter.fontMetrics().elidedText(
            _shown_name(device), Qt.TextElideMode.ElideRight, words.width()
        )
        painter.drawText(words, Qt.AlignmentFlag.AlignTop, name)
        painter.setFont(self.font())
        painter.setPen(QColor(self._theme.colour("muted")))
        painter.drawText(
            words.adjusted(0, _name_line(self.font()), 0, _PADDING), _WRAPPED, self._summary
        )

    def _paint_sign(self, painter: QPainter, box: QRect, device: DeviceRow) -> None:
        role = self._theme.device_role(device.number or device.identity)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colour(role)))
        painter.drawRoundedRect(QRectF(box), _RADIUS, _RADIUS)
        inset = box.width() // 5
        drawing = icon("cpu" if device.is_cpu else "card", self._theme, "on_device")
        drawing.paint(painter, box.adjusted(inset, inset, -inset, -inset))

    def _paint_frame(self, painter: QPainter) -> None:
        """Mark the selected one of several devices, the one under the mouse, and the focus."""
        box = QRectF(self.rect())
        if self._is_choice and (self.isChecked() or self.underMouse()):
            painter.setPen(Qt.PenStyle.NoPen)
            shade = "selection" if self.isChecked() else "hover"
            painter.setBrush(QColor(self._theme.colour(shade)))
            painter.drawRoundedRect(box, _RADIUS, _RADIUS)
        if self.hasFocus():
            painter.setPen(QPen(QColor(self._theme.colour("accent")), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), _RADIUS, _RADIUS)


def _shown_name(device: DeviceRow) -> str:
    """Return the name without the maker; the tool tip has it in full."""
    name = short_name(device.name) if device.is_cpu else without_maker(device.name)
    return name_at(device.pc, name)


def _sign_side(font: QFont) -> int:
    return _name_line(font) + QFontMetrics(font).height()


def _name_line(font: QFont) -> int:
    return QFontMetrics(_name_font(font)).height() + _NAME_GAP


def _name_font(font: QFont) -> QFont:
    name_font = QFont(font)
    name_font.setPointSizeF(_NAME_SIZE * font.pointSizeF())
    name_font.setWeight(QFont.Weight.DemiBold)
    return name_font


class ToneSign(QLabel):
    """The picture of a tone, as high as some lines of text."""

    def __init__(self, theme: Theme, lines: float = 1.0) -> None:
        super().__init__()
        self._theme, self._lines, self._tone = theme, lines, Tone.PLAIN
        theme.changed.connect(self._paint)

    def show_tone(self, tone: Tone) -> None:
        """Show another tone's picture."""
        self._tone = tone
        self._paint()

    def _paint(self) -> None:
        side = round(self._lines * self.fontMetrics().height())
        self.setFixedWidth(side)
        name, role = _SIGNS[self._tone]
        sign = icon(name, self._theme, role)
        self.setPixmap(sign.pixmap(QSize(side, side), self.devicePixelRatioF()))


def agrees(parent: QWidget, question: str, answer: str, *, name: str) -> bool:
    """Ask before something is lost; return whether the user pressed the answer."""
    box = QMessageBox(parent)
    box.setObjectName(name)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(question)
    does_it = box.addButton(answer, QMessageBox.ButtonRole.DestructiveRole)
    box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
    box.exec()
    return box.clickedButton() is does_it


def pc_part(pc: Pc, model: DevicesModel, pcs: Pcs, page: Page) -> Part:
    """Return a PC's devices, as far as they are known; with other PCs, below its heading.

    The heading has the answer about the PC; that of another one, what its line can do as well.
    """
    heading = f"pc.{pc.name}.heading" if pc.name else "pc"

    def answer() -> Notice:
        return model.answer_of(pc)

    def identities() -> list[str]:
        # The first device of this PC comes after the first paint, into its room.
        return [one.identity for one in model.devices_of(pc)] or ([] if pc.name else [""])

    def device(identity: str) -> Part:
        def make() -> DeviceButton:
            made = DeviceButton(page.theme)
            made.clicked.connect(lambda: model.select(identity))
            return made

        def show(button: DeviceButton) -> None:
            row = next((one for one in model.devices_of(pc) if one.identity == identity), None)
            if row is not None:
                is_selected = row == model.row
                summary, is_choice = model.summary_of(row), model.is_choice
                button.show_device(row, summary, is_selected=is_selected, is_choice=is_choice)

        return Own(make, show, name=f"device.{identity}", presented=True)

    return Stack(
        Stack(
            Columns(
                Words(f"{pc.name} · over SSH" if pc.name else "This PC", "title",
                      cut=lambda: True, name=f"{heading}.name", stretch=1),
                *(_offers(pc, pcs, page) if isinstance(pc, RemotePc) else ()),
            ),
            Columns(
                Own(lambda: ToneSign(page.theme), lambda sign: sign.show_tone(answer().tone)),
                Stack(
                    Words(answer, name=f"{heading}.answer.sentence"),
                    Words(lambda: answer().next_step, "muted", name=f"{heading}.answer.below"),
                    stretch=1,
                ),
                shown=lambda: answer().sentence,
            ),
            name=heading, shown=lambda: pcs.others,
        ),
        Each(identities, device, share_letters=STACKED,
             name=f"pc.{pc.name}.table" if pc.name else "table"),
        presented=True,
    )  # fmt: skip


def _offers(pc: RemotePc, pcs: Pcs, page: Page) -> tuple[Part, ...]:
    """Return the buttons of another PC, which an audience does not see."""

    def connect_or_not() -> None:
        if pc.notice.action is not None:
            pcs.open(pc)
        else:
            pcs.shut(pc)

    def remove() -> None:
        question = _REMOVE_QUESTION.format(name=pc.name)
        if agrees(page, question, "Remove", name="devices.pc.question"):
            pcs.remove(pc)

    def shown() -> bool:
        return not page.is_presented

    return (
        Press(lambda: action_label(pc.notice.action) or "Disconnect", connect_or_not,
              name=f"pc.{pc.name}.connect", shown=shown),
        Press("Remove…", remove, name=f"pc.{pc.name}.remove", shown=shown),
    )  # fmt: skip
