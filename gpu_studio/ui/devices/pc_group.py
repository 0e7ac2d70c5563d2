"""The devices of another PC on the Devices tab, below a heading with its answer and its buttons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QMessageBox, QVBoxLayout, QWidget

from gpu_studio.core.notice import Notice, action_label
from gpu_studio.ui.devices.device_list import DeviceListView
from gpu_studio.ui.devices.notice_lines import NoticeLine
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.parts import GAP, Text, button, show_label

if TYPE_CHECKING:
    from gpu_studio.model.devices.device_board import DeviceList
    from gpu_studio.model.pc import RemotePc
    from gpu_studio.model.pcs import Pcs
    from gpu_studio.ui.theme import Theme

_OVER_SSH = "over SSH"
_REMOVE_QUESTION = (
    "Remove {name} from Devices? Its results stay. To use it again, add it with its host."
)


class PcHeading(QWidget):
    """The name of a PC, and the answer about it; its buttons are beside the name.

    Args:
        title: the PC's name.
        how: how it is reached; empty for this PC.
        buttons: what is beside the name.
        name: the object name.
    """

    def __init__(self, theme: Theme, title: str, how: str, *buttons: QWidget, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName(title)
        self._answer = NoticeLine(theme, name=f"{name}.answer")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        line = QHBoxLayout()
        column.addLayout(line)
        line.setSpacing(GAP)
        line.addWidget(ElidedText(title, "title", name=f"{name}.name"))
        line.addWidget(Text(how, "muted", name=f"{name}.how"), 1)
        for one in buttons:
            line.addWidget(one)
        column.addWidget(self._answer)
        self.show_answer(Notice())

    def show_answer(self, notice: Notice) -> None:
        """Show the answer about the PC, and what to do about it."""
        self._answer.show_notice(Notice(notice.sentence, notice.tone, next_step=notice.next_step))


class PcGroup(QWidget):
    """Another PC: its heading, and its devices as far as they are known.

    Attributes:
        list: its devices.
    """

    def __init__(self, pc: RemotePc, pcs: Pcs, devices: DeviceList, theme: Theme) -> None:
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

    def show_answer(self, notice: Notice, *, is_presented: bool) -> None:
        """Show the answer about the PC, and offer what its line can do now, but to no audience."""
        self._heading.show_answer(notice)
        label = action_label(self._pc.notice.action) or "Disconnect"
        show_label(self._connect, "" if is_presented else label)
        self._remove.setVisible(not is_presented)
        self.list.setVisible(self.list.model().rowCount() > 0)

    def _connect_or_not(self) -> None:
        if self._pc.notice.action is not None:
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
