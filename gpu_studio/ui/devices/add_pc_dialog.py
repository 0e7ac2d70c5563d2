"""The dialog that adds another PC: its host, with the name that it gets, and what it answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.other_pc import LineProblem, command_to_install, pc_from_text
from gpu_studio.ui.parts import GAP, MARGIN, Text, button, letters

if TYPE_CHECKING:
    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.model.pc import RemotePc
    from gpu_studio.model.pcs import Pcs

_WIDTH_LETTERS = 84
_ANSWER_LINES = 7  # a PC without GPU Studio gets a command of several lines
_HINT = "user@host as after ssh, a name from ~/.ssh/config, or NAME=user@host"
_NOT_ASKED = "Nothing was sent yet."
_NOT_SENT = (
    "Not sent: passwords, keys, history, and files except a picture you race with. Results carry "
    "only the name, never the host or the user."
)


class AddPcDialog(QDialog):
    """Connects to a PC, and adds it if it answers. Closing gives the attempt up at once.

    Args:
        pcs: gets the PC.
        parent: the window.
    """

    def __init__(self, pcs: Pcs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("add_pc")
        self.setWindowTitle("Add a PC")
        self._pcs = pcs
        self._pc: RemotePc | None = None
        self._host = QLineEdit()
        self._host.setObjectName("add_pc.host")
        self._host.setAccessibleName("Host")
        self._host.setPlaceholderText(_HINT)
        self._sentence = Text("", name="add_pc.answer.sentence", wraps=True)
        self._below = Text("", "muted", name="add_pc.answer.below", wraps=True)
        self._copy = button("Copy command", self._on_copy_clicked, name="add_pc.copy")
        self._add = button("Add PC", self._on_add_clicked, name="add_pc.add", primary=True)
        self._add.setDefault(True)
        self._lay_out()
        self._host.textEdited.connect(self._forget_pc)
        self._forget_pc()

    def done(self, result: int) -> None:
        """Close the dialog, and give an attempt up."""
        self._forget_pc()
        super().done(result)

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        column.setSpacing(GAP)
        column.addWidget(Text("Host"))
        column.addWidget(self._host)
        room = QWidget()  # no button moves when the answer comes
        room.setMinimumHeight(_ANSWER_LINES * self.fontMetrics().lineSpacing())
        inside = QVBoxLayout(room)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.addWidget(self._sentence)
        inside.addWidget(self._below)
        inside.addStretch(1)
        column.addWidget(room, 1)
        column.addWidget(Text(_NOT_SENT, "muted", name="add_pc.not_sent", wraps=True))
        foot = QHBoxLayout()
        column.addLayout(foot)
        foot.addWidget(self._copy)
        foot.addStretch(1)
        foot.addWidget(button("Cancel", self.reject, name="add_pc.cancel"))
        foot.addWidget(self._add)
        self.setMinimumWidth(letters(self, _WIDTH_LETTERS))

    @property
    def _address(self) -> OtherPc:
        """The PC that was typed; a command that was pasted loses its program."""
        return pc_from_text(self._host.text().strip().removeprefix("ssh ").strip())

    def _forget_pc(self) -> None:
        """Give an attempt up, and say what the PC will be called."""
        pc, self._pc = self._pc, None
        if pc is not None:
            pc.changed.disconnect(self._on_pc_changed)
            pc.close()
            pc.deleteLater()
        try:
            named = f"It will be called “{self._address.name}”. "
        except ValueError:  # it is not typed yet
            named = ""
        self._show(Notice(named + _NOT_ASKED))

    def _on_add_clicked(self) -> None:
        self._forget_pc()
        try:
            self._pc = self._pcs.new(self._address)
        except ValueError as error:
            self._show(Notice(str(error), Tone.AMBER))
            return
        self._pc.changed.connect(self._on_pc_changed)
        self._pc.open()

    def _on_pc_changed(self) -> None:
        pc = self._pc
        assert pc is not None
        if not pc.why_not:
            pc.changed.disconnect(self._on_pc_changed)
            self._pc = None
            self._pcs.add(pc)
            self.accept()
            return
        self._show(pc.notice)
        if pc.said is not None and pc.said.problem is not None:
            self._below.setText("\n".join(filter(None, (pc.said.detail, pc.notice.next_step))))
            self._copy.setVisible(pc.said.problem is LineProblem.NO_PROGRAM)

    def _show(self, notice: Notice) -> None:
        self._sentence.setText(notice.sentence)
        self._sentence.set_tone(notice.tone)
        self._below.setText(notice.next_step)
        self._copy.setVisible(False)
        self._add.setEnabled(notice.tone is not Tone.QUIET)

    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(command_to_install())
