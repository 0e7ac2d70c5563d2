"""The dialog that adds another PC: its host, what is found there, and the name that it gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLayout,
    QLineEdit,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.failure import StudioError
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.other_pc import (
    LONGEST_NAME,
    LONGEST_PROGRAM,
    OtherPc,
    command_to_install,
    host_trouble,
    pc_from_text,
    program_trouble,
)
from gpu_studio.ui.devices.device_verdict import NoticeLine
from gpu_studio.ui.eliding import RoomText
from gpu_studio.ui.parts import (
    GAP,
    MARGIN,
    Text,
    button,
    letters,
    set_property,
    show_label,
    without_mnemonic,
)
from gpu_studio.ui.scroll_page import TabScroll, bring_into_view

if TYPE_CHECKING:
    from PySide6.QtGui import QShowEvent

    from gpu_studio.model.pcs import Pcs
    from gpu_studio.ui.theme import Theme

_WIDTH_LETTERS = 84
_RESULT_LINES = 4
_RESULT_ROOM = 11.4  # lines: a PC without GPU Studio is offered a command and a copy
_LONGEST_ON_BUTTON = 20
_HOST_HINT = "As you type it after ssh: user@host, or a name from ~/.ssh/config"
_PROGRAM_HINT = "Only if it is not found: the path of the program there"
_COMMAND_HINT = (
    "On Linux, type this there, beside the downloaded portable folder. On Windows, use the "
    "installer."
)
_NOT_TRIED = "Nothing was sent yet. Try the host to see what is there."
_NOT_SENT = (
    "Not sent: passwords, keys, history, and files except a picture you race with. Results carry "
    "only the name above, never the host or the user."
)


class _InstallThere(QWidget):
    """The command that installs GPU Studio on a PC with Linux, to type there."""

    def __init__(self) -> None:
        super().__init__()
        self._command = _line_edit("add_pc.command", "Command to type there")
        self._command.setReadOnly(True)
        self._command.setText(command_to_install())
        self._command.setCursorPosition(0)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        line = QHBoxLayout()
        column.addLayout(line)
        line.addWidget(self._command, 1)
        line.addWidget(button("Copy command", self._copy_command, name="add_pc.command.copy"))
        column.addWidget(Text(_COMMAND_HINT, "muted", wraps=True))

    def _copy_command(self) -> None:
        QGuiApplication.clipboard().setText(self._command.text())


class AddPcDialog(QDialog):
    """Tries a host, shows what is there, and adds it. Closing it ends an attempt at once.

    Args:
        pcs: gets the PC.
        theme: colors the signs.
        parent: the window.
    """

    def __init__(self, pcs: Pcs, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("add_pc")
        self.setWindowTitle("Add a PC")
        self._pcs, self._attempt = pcs, pcs.attempt
        self._has_own_name = False
        self._host = _line_edit("add_pc.host", "Host")
        self._host.setPlaceholderText("user@host")
        self._program = _line_edit("add_pc.program", "Program there")
        self._program.setMaxLength(LONGEST_PROGRAM)
        self._program.setPlaceholderText(_PROGRAM_HINT)
        self._name = _line_edit("add_pc.name", "Name")
        self._name.setMaxLength(LONGEST_NAME)
        self._try = button("Try again", self._try_or_stop, name="add_pc.try")
        self._try.setMinimumWidth(self._try.sizeHint().width())
        show_label(self._try, "Try")
        self._lines = [
            NoticeLine(theme, name=f"add_pc.result.{number}") for number in range(_RESULT_LINES + 1)
        ]
        self._there = _InstallThere()
        self._name_note = RoomText("", "muted", name="add_pc.name_note", lines=1)
        self._add = button("Add PC", self._add_pc, name="add_pc.add", primary=True)
        self._lay_out()
        self._host.textEdited.connect(self._on_host_edited)
        self._program.textEdited.connect(self._on_host_edited)
        self._name.textEdited.connect(self._on_name_edited)
        self._attempt.changed.connect(self._show_state)
        self._show_state()
        self._host.setFocus()

    def showEvent(self, event: QShowEvent) -> None:
        """Take the height for this width: Qt's own least height is for a narrow column of words."""
        super().showEvent(event)
        layout = self.layout()
        if layout is not None:
            height = layout.totalMinimumHeightForWidth(self.width())
            self.setMinimumHeight(height)
            self.resize(self.width(), height)

    def done(self, result: int) -> None:
        """Close the dialog, and end an attempt."""
        self._attempt.changed.disconnect(self._show_state)
        self._attempt.cancel()
        super().done(result)

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        column.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        grid = QGridLayout()
        column.addLayout(grid, 1)
        grid.setHorizontalSpacing(2 * MARGIN)
        grid.setColumnStretch(1, 1)
        top = Qt.AlignmentFlag.AlignTop
        found = QWidget()
        lines = QVBoxLayout(found)
        lines.setContentsMargins(0, GAP // 2, 0, GAP // 2)
        lines.setSpacing(4)
        for line in self._lines:
            lines.addWidget(line)
        lines.addWidget(self._there)
        lines.addStretch(1)
        # The answers come one by one. What does not fit is scrolled to: no button moves.
        results = TabScroll(found)
        results.setMinimumHeight(round(_RESULT_ROOM * self.fontMetrics().lineSpacing()))
        results.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        rows: tuple[tuple[str, QWidget, QWidget | None], ...] = (
            ("Host", self._host, self._try),
            ("", Text(_HOST_HINT, "muted", wraps=True), None),
            ("Program there", self._program, None),
            ("Result", results, None),
            ("Name", self._name, None),
            ("", self._name_note, None),
            ("", Text(_NOT_SENT, "muted", name="add_pc.not_sent", wraps=True), None),
        )
        for number, (label, widget, beside) in enumerate(rows):
            if label:
                grid.addWidget(Text(label), number, 0, top)
            grid.addWidget(widget, number, 1, 1, 1 if beside is not None else 2)
            if beside is not None:
                grid.addWidget(beside, number, 2)
            if widget is results:
                grid.setRowStretch(number, 1)
        foot = QHBoxLayout()
        column.addLayout(foot)
        foot.addStretch(1)
        foot.addWidget(button("Cancel", self.reject, name="add_pc.cancel"))
        foot.addWidget(self._add)
        self.setMinimumWidth(letters(self, _WIDTH_LETTERS))

    @property
    def _host_text(self) -> str:
        """The host; a command that was pasted loses its program."""
        return self._host.text().strip().removeprefix("ssh ").strip()

    @property
    def _name_text(self) -> str:
        return self._name.text().strip()

    def _on_host_edited(self) -> None:
        self._attempt.cancel()
        if not self._has_own_name:
            self._name.setText(self._suggested_name())
        self._show_state()

    def _on_name_edited(self) -> None:
        self._has_own_name = bool(self._name.text())
        self._show_state()

    def _suggested_name(self) -> str:
        """Return a name for the host: its own word, or none of an address."""
        host = self._host_text
        if host_trouble(host):
            return ""
        name = pc_from_text(host.rpartition("@")[2]).name
        taken = (f"{name[: LONGEST_NAME - 3]} {number}" for number in range(2, 100))
        return next((one for one in (name, *taken) if not self._pcs.name_trouble(one)), name)

    def _try_or_stop(self) -> None:
        if self._attempt.is_running:
            self._attempt.cancel()
            self._show_state()
            return
        if self._input_trouble:
            self._show_state(is_asked=True)
            return
        self._attempt.start(self._tried_pc())

    def _tried_pc(self) -> OtherPc:
        name = self._name_text if not self._pcs.name_trouble(self._name_text) else "The other PC"
        return OtherPc(name=name, host=self._host_text, program=self._program.text().strip())

    @property
    def _input_trouble(self) -> str:
        return host_trouble(self._host_text) or program_trouble(self._program.text().strip())

    def _add_pc(self) -> None:
        address = OtherPc(
            name=self._name_text, host=self._host_text, program=self._program.text().strip()
        )
        try:
            self._pcs.add(address)
        except StudioError as error:
            self._name_note.setText(str(error))
            return
        self.accept()

    def _show_state(self, *, is_asked: bool = False) -> None:
        attempt = self._attempt
        notices = list(attempt.notices)
        if attempt.is_running:
            waiting = "Looking for its devices…" if notices else f"Connecting to {self._host_text}…"
            notices.append(Notice(waiting, Tone.QUIET))
        elif not notices:
            # A host that is not complete yet is no error before it is tried.
            trouble = self._input_trouble if is_asked else ""
            notices = [Notice(trouble, Tone.AMBER) if trouble else Notice(_NOT_TRIED)]
        for line, notice in zip(self._lines, notices, strict=False):
            line.show_notice(notice)
        for line in self._lines[len(notices) :]:
            line.show_notice(Notice())
        self._there.setVisible(attempt.lacks_program)
        bring_into_view(self._there if attempt.lacks_program else self._lines[len(notices) - 1])
        tried = bool(attempt.notices)
        show_label(self._try, "Stop" if attempt.is_running else "Try again" if tried else "Try")
        name = self._name_text
        name_trouble = self._pcs.name_trouble(name) if name or attempt.is_usable else ""
        self._name_note.setText(name_trouble or "Shown here and in results")
        self._name_note.set_tone(Tone.AMBER if name_trouble else Tone.PLAIN)
        shown = name if len(name) <= _LONGEST_ON_BUTTON else f"{name[:_LONGEST_ON_BUTTON]}…"
        self._add.setText(without_mnemonic(f"Add {shown or 'PC'}"))
        self._add.setAccessibleName(f"Add {name or 'PC'}")
        can_add = attempt.is_usable and not attempt.is_running and not name_trouble
        self._add.setEnabled(can_add)
        self._add.setDefault(can_add)
        self._try.setDefault(not can_add)
        set_property(self._try, "primary", not can_add)
        set_property(self._add, "primary", can_add)


def _line_edit(name: str, accessible_name: str) -> QLineEdit:
    edit = QLineEdit()
    edit.setObjectName(name)
    edit.setAccessibleName(accessible_name)
    return edit
