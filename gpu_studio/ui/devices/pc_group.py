"""The devices of another PC on the Devices tab, below a heading with its answer and its buttons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMessageBox, QVBoxLayout, QWidget

from gpu_studio.core.line_trouble import answer_words
from gpu_studio.core.notice import Notice, action_label
from gpu_studio.ui.devices.device_hero import DeviceListView
from gpu_studio.ui.devices.device_verdict import SIGNS
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, Text, button, show_label

if TYPE_CHECKING:
    from gpu_studio.model.devices.device_list import DeviceList
    from gpu_studio.model.pc import Pc
    from gpu_studio.model.pcs import Pcs
    from gpu_studio.ui.theme import Theme

_OVER_SSH = "over SSH"
_REMOVE_QUESTION = (
    "Remove {name} from Devices? Its results stay. To use it again, add it with its host."
)


class PcHeading(QWidget):
    """The name of a PC, and the answer about it; its buttons stand beside the name.

    Args:
        title: the PC's name.
        how: how it is reached; empty for this PC.
        buttons: what stands beside the name.
        name: the object name.
    """

    def __init__(self, theme: Theme, title: str, how: str, *buttons: QWidget, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName(title)
        self._theme = theme
        self._notice = Notice()
        self._sign = QLabel()
        self._answer = Text("", name=f"{name}.answer", wraps=True)
        self._more = Text("", "muted", name=f"{name}.more", wraps=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        line = QHBoxLayout()
        column.addLayout(line)
        line.setSpacing(GAP)
        line.addWidget(ElidedText(title, "title", name=f"{name}.name"))
        self._how = Text(how, "muted", name=f"{name}.how")
        line.addWidget(self._how, 1)
        for one in buttons:
            line.addWidget(one)
        self._line = QWidget()
        answer = QHBoxLayout(self._line)
        answer.setContentsMargins(0, 0, 0, 0)
        answer.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        answer.addWidget(self._answer, 1)
        column.addWidget(self._line)
        column.addWidget(self._more)
        self.show_answer(Notice())
        theme.changed.connect(self._paint_sign)

    def show_how(self, how: str) -> None:
        """Show how the PC is reached."""
        self._how.setText(how)

    def show_answer(self, notice: Notice) -> None:
        """Show the answer about the PC, and what to do about it."""
        self._notice = notice
        self._answer.setText(notice.sentence)
        self._answer.set_tone(notice.tone)
        self._line.setVisible(bool(notice.sentence))
        self._more.setText(notice.next_step)
        self._more.setVisible(bool(notice.next_step))
        self._paint_sign()

    def _paint_sign(self) -> None:
        side = self.fontMetrics().height()
        drawing, role = SIGNS[self._notice.tone]
        sign = icon(drawing, self._theme, role)
        self._sign.setPixmap(sign.pixmap(QSize(side, side), self.devicePixelRatioF()))


class PcGroup(QWidget):
    """Another PC: its heading, and its devices as far as they are known.

    Attributes:
        list: its devices.
    """

    def __init__(self, pc: Pc, pcs: Pcs, devices: DeviceList, theme: Theme) -> None:
        super().__init__()
        self._pc, self._pcs = pc, pcs
        name = f"devices.pc.{pc.name}"
        self.setObjectName(name)
        self._connect = button("", self._connect_or_not, name=f"{name}.connect")
        self._remove = button("Remove…", self._ask_removal, name=f"{name}.remove")
        self._heading = PcHeading(
            theme, pc.name, _OVER_SSH, self._connect, self._remove, name=f"{name}.heading"
        )
        self.list = DeviceListView(devices, theme)
        self.list.setObjectName(f"{name}.table")
        self.list.setAccessibleName(f"Devices of {pc.name}")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self._heading)
        column.addWidget(self.list)

    def show_answer(self, notice: Notice) -> None:
        """Show the answer about the PC, and offer what its line can do now."""
        self._heading.show_answer(notice)
        assert self._pc.line is not None
        line = self._pc.line
        has_answered = line.is_open and line.answer_s is not None
        how = f"{_OVER_SSH}, {answer_words(line.answer_s or 0.0)}" if has_answered else _OVER_SSH
        self._heading.show_how(how)
        offered = line.notice.action
        show_label(self._connect, action_label(offered) or "Disconnect")
        self.list.setVisible(self.list.model().rowCount() > 0)

    def _connect_or_not(self) -> None:
        assert self._pc.line is not None
        if self._pc.line.notice.action is not None:
            self._pcs.open(self._pc)
        else:
            self._pcs.shut(self._pc)

    def _ask_removal(self) -> None:
        box = QMessageBox(self)
        box.setObjectName("devices.pc.question")
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setText(_REMOVE_QUESTION.format(name=self._pc.name))
        remove = box.addButton("Remove", QMessageBox.ButtonRole.DestructiveRole)
        box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
        box.exec()
        if box.clickedButton() is remove:
            self._pcs.remove(self._pc)
