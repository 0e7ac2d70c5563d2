"""The processes on a card as a table model."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal

from gpu_studio.core.devices.facts import NOT_AVAILABLE, bytes_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtCore import QObject

    from gpu_studio.core.devices.devices import GpuProcess


HEADINGS = ("PID", "Program", "User", "Kind", "GPU memory")
PID, PROGRAM, USER, KIND, MEMORY = range(5)
SORT_ROLE = Qt.ItemDataRole.UserRole
NO_MEMORY_ON_WINDOWS = "Process memory: n/a, Windows does not report it."
IS_WINDOWS = os.name == "nt"
_NUMBERS = (PID, MEMORY)

_Index = QModelIndex | QPersistentModelIndex
_NO_PARENT = QModelIndex()


class ProcessTable(QAbstractTableModel):
    """One row for each process; rows stay while their process runs, so a selection stays too.

    Signals:
        note_changed(): the sentence about the whole table is another one.
    """

    note_changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.processes: list[GpuProcess] = []
        """The shown processes."""
        self.is_here = True
        """Whether they run on this PC, so that they can be ended."""
        self._engine_pid: int | None = None
        self._memory_used = ""

    @property
    def own_pids(self) -> set[int]:
        """The process ids of this program: the window and its engine."""
        return {os.getpid()} | ({self._engine_pid} if self._engine_pid is not None else set())

    @property
    def note(self) -> str:
        """A sentence about the whole table; empty if there is nothing to say."""
        if not self.processes:
            if self._memory_used:
                return f"{self._memory_used} used. The driver does not say by which programs."
            return "The driver lists no program on this card."
        if all(process.memory_bytes is None for process in self.processes):
            if IS_WINDOWS:
                return NO_MEMORY_ON_WINDOWS
            return "Process memory: n/a, this driver does not report it."
        return ""

    def show(
        self,
        processes: Sequence[GpuProcess],
        engine_pid: int | None,
        memory_used: str = "",
        *,
        is_here: bool = True,
    ) -> None:
        """Show these processes.

        Args:
            processes: those that the driver lists on the card.
            engine_pid: the one that is this program's engine.
            memory_used: the memory used on the card of all there is, in words; empty if unknown.
            is_here: whether the card is in this PC.
        """
        self.is_here = is_here
        note = self.note
        self._memory_used = memory_used
        by_pid = {process.pid: process for process in processes}
        before = [*self.processes, self._engine_pid]
        self._engine_pid = engine_pid
        for row in reversed(range(len(self.processes))):
            if self.processes[row].pid not in by_pid:
                self.beginRemoveRows(_NO_PARENT, row, row)
                del self.processes[row]
                self.endRemoveRows()
        for row, process in enumerate(self.processes):
            self.processes[row] = by_pid.pop(process.pid)
        if self.processes and before != [*self.processes, engine_pid]:
            last = self.index(len(self.processes) - 1, MEMORY)
            self.dataChanged.emit(self.index(0, PID), last)
        if by_pid:
            first = len(self.processes)
            self.beginInsertRows(_NO_PARENT, first, first + len(by_pid) - 1)
            self.processes.extend(by_pid.values())
            self.endInsertRows()
        if self.note != note:
            self.note_changed.emit()

    def rowCount(self, parent: _Index = _NO_PARENT) -> int:
        """Return the number of processes."""
        return 0 if parent.isValid() else len(self.processes)

    def columnCount(self, parent: _Index = _NO_PARENT) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(HEADINGS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's heading, aligned as the column is."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return HEADINGS[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text, sort key, alignment or tool tip."""
        process, column = self.processes[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            text = _TEXTS[column](process)
            return text + self._mark(process) if column == PROGRAM else text
        if role == SORT_ROLE:
            return _sorting_value(process, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        return _tip(process, column) if role == Qt.ItemDataRole.ToolTipRole else None

    def _mark(self, process: GpuProcess) -> str:
        if process.pid == self._engine_pid:
            return "  (this program's engine)"
        return "  (this window)" if process.pid == os.getpid() else ""


_TEXTS: tuple[Callable[[GpuProcess], str], ...] = (
    lambda process: str(process.pid),
    lambda process: process.name,
    lambda process: process.user or NOT_AVAILABLE,
    lambda process: process.kind,
    lambda process: bytes_text(process.memory_bytes) or NOT_AVAILABLE,
)


def _tip(process: GpuProcess, column: int) -> str | None:
    if column == MEMORY and process.memory_bytes is None:
        return NO_MEMORY_ON_WINDOWS if IS_WINDOWS else "The driver does not report it."
    if column == USER and process.user is None:
        return "The system hides it from this user."
    return None


def _sorting_value(process: GpuProcess, column: int) -> int | str:
    if column == MEMORY:
        return -1 if process.memory_bytes is None else process.memory_bytes
    return process.pid if column == PID else _TEXTS[column](process).lower()


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in _NUMBERS else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


# ERROR_INVALID_PARAMETER of winerror.h: the error of opening a process that has ended.
_GONE_ON_WINDOWS = 87
_SYNCHRONIZE, _WAIT_OBJECT_0 = 0x0010_0000, 0  # winnt.h, winbase.h


def question(process: GpuProcess) -> str:
    """Return the question to confirm."""
    owner = f" of {process.user}" if process.user else ""
    drawing = " It draws on the screen: its windows may disappear." if _draws(process) else ""
    named = f"{process.name}{owner} (process {process.pid})"
    return f"End {named}? Unsaved work is lost.{drawing}"


def end_process(process: GpuProcess, own_pids: set[int]) -> str:
    """Ask a process to end; return the outcome as a sentence.

    Args:
        process: the process as the sensors last read it.
        own_pids: this program's own processes, which it does not end.
    """
    if process.pid in own_pids:
        return f"{process.name} belongs to this program: use Engine, Start PyTorch anew."
    if _is_over_on_windows(process.pid):
        return f"{process.name} ({process.pid}) has already ended."
    try:
        os.kill(process.pid, signal.SIGTERM)
    except PermissionError:
        return f"{process.name} ({process.pid}) belongs to another user. You may not end it."
    except OSError as error:
        if isinstance(error, ProcessLookupError) or _is_gone_on_windows(error):
            return f"{process.name} ({process.pid}) has already ended."
        return f"Could not end {process.name} ({process.pid}): {error.strerror}."
    # Windows has no signal that a program could handle: it has ended when the call returns.
    outcome = "was ended" if sys.platform == "win32" else "was asked to end"
    return f"{process.name} ({process.pid}) {outcome}."


def _is_gone_on_windows(error: OSError) -> bool:
    return getattr(error, "winerror", None) == _GONE_ON_WINDOWS


def _is_over_on_windows(pid: int) -> bool:
    """Return whether a process has ended but another one still holds it: ending it is denied."""
    if sys.platform == "win32":
        import ctypes

        kernel32 = ctypes.WinDLL("kernel32")
        kernel32.OpenProcess.restype = ctypes.c_void_p
        handle = ctypes.c_void_p(kernel32.OpenProcess(_SYNCHRONIZE, False, pid))
        is_over = bool(handle and kernel32.WaitForSingleObject(handle, 0) == _WAIT_OBJECT_0)
        if handle:
            kernel32.CloseHandle(handle)
    else:
        is_over = False
    return is_over


def _draws(process: GpuProcess) -> bool:
    return "graphics" in process.kind.lower()
