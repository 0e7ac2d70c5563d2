"""The dialog that adds another PC: its host, the name that it gets, and what came of asking it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from gpu_studio.core.failure import StudioError
from gpu_studio.core.line_trouble import Introduction, LineProblem
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.other_pc import (
    LONGEST_NAME,
    OtherPc,
    command_to_install,
    host_trouble,
    pc_from_text,
)
from gpu_studio.ui.devices.device_verdict import NoticeLine
from gpu_studio.ui.parts import GAP, MARGIN, Text, button, letters

if TYPE_CHECKING:
    from gpu_studio.model.pcs import Pcs
    from gpu_studio.ui.theme import Theme

_WIDTH_LETTERS = 84
_ANSWER_LINES = 7  # a PC without GPU Studio gets a command of several lines
_HOST_HINT = "As you type it after ssh: user@host, or a name from ~/.ssh/config"
_NAME_HINT = "Shown here and in results"
_NOT_ASKED = Notice("Nothing was sent yet.")
_NOT_SENT = (
    "Not sent: passwords, keys, history, and files except a picture you race with. Results carry "
    "only the name above, never the host or the user."
)


class AddPcDialog(QDialog):
    """Asks a host for its greeting, and adds it if it can be used. Closing ends a question at once.

    Args:
        pcs: gets the PC.
        theme: colors the signs.
        parent: the window.
    """

    def __init__(self, pcs: Pcs, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("add_pc")
        self.setWindowTitle("Add a PC")
        self._pcs, self._question = pcs, pcs.question
        self._has_own_name = False
        self._host = _line_edit("add_pc.host", "Host")
        self._host.setPlaceholderText("user@host")
        self._name = _line_edit("add_pc.name", "Name")
        self._name.setMaxLength(LONGEST_NAME)
        self._answer = NoticeLine(theme, name="add_pc.answer")
        self._copy = button("Copy command", self._copy_command, name="add_pc.copy")
        self._add = button("Add PC", self._ask, name="add_pc.add", primary=True)
        self._add.setDefault(True)
        self._lay_out()
        self._host.textEdited.connect(self._on_host_edited)
        self._name.textEdited.connect(self._on_name_edited)
        self._question.answered.connect(self._on_answered)
        self._show(_NOT_ASKED)
        self._host.setFocus()

    def done(self, result: int) -> None:
        """Close the dialog, and end a question."""
        self._question.answered.disconnect(self._on_answered)
        self._question.cancel()
        super().done(result)

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        column.setSpacing(GAP)
        for label, edit, hint in (
            ("Host", self._host, _HOST_HINT),
            ("Name", self._name, _NAME_HINT),
        ):
            column.addWidget(Text(label))
            column.addWidget(edit)
            column.addWidget(Text(hint, "muted"))
        room = QWidget()  # no button moves when the answer comes
        room.setMinimumHeight(_ANSWER_LINES * self.fontMetrics().lineSpacing())
        inside = QVBoxLayout(room)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.addWidget(self._answer)
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
    def _host_text(self) -> str:
        """The host; a command that was pasted loses its program."""
        return self._host.text().strip().removeprefix("ssh ").strip()

    def _on_host_edited(self) -> None:
        if not self._has_own_name:
            # A host's own word, or no name of an address.
            host = self._host_text.rpartition("@")[2]
            self._name.setText("" if host_trouble(host) else pc_from_text(host).name)
        self._forget_answer()

    def _on_name_edited(self) -> None:
        self._has_own_name = bool(self._name.text())
        self._forget_answer()

    def _forget_answer(self) -> None:
        self._question.cancel()
        self._show(_NOT_ASKED)

    def _ask(self) -> None:
        name = self._name.text().strip()
        if trouble := host_trouble(self._host_text) or self._pcs.name_trouble(name):
            self._show(Notice(trouble, Tone.AMBER))
            return
        self._question.ask(OtherPc(name=name, host=self._host_text))
        self._show(Notice(f"Connecting to {self._host_text}…", Tone.QUIET))

    def _on_answered(self, said: Introduction) -> None:
        trouble = said.trouble
        if trouble is None:
            try:
                self._pcs.add(said.pc, said)
            except StudioError as error:
                self._show(Notice(str(error), Tone.AMBER))
            else:
                self.accept()
            return
        self._show(Notice(trouble.sentence, Tone.FAILURE, said.detail, trouble.next_step))
        self._copy.setVisible(trouble.problem is LineProblem.NO_PROGRAM)

    def _show(self, notice: Notice) -> None:
        self._answer.show_notice(notice)
        self._copy.setVisible(False)
        self._add.setEnabled(not self._question.is_running)

    def _copy_command(self) -> None:
        QGuiApplication.clipboard().setText(command_to_install())


def _line_edit(name: str, accessible_name: str) -> QLineEdit:
    edit = QLineEdit()
    edit.setObjectName(name)
    edit.setAccessibleName(accessible_name)
    return edit
