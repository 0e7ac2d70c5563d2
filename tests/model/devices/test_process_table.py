from __future__ import annotations

import os
import subprocess
import sys

import pytest
from PySide6.QtCore import QItemSelectionModel, QSortFilterProxyModel, Qt

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.model.devices import process_table
from gpu_studio.model.devices import process_table as module
from gpu_studio.model.devices.process_table import (
    KIND,
    MEMORY,
    NO_MEMORY_ON_WINDOWS,
    PID,
    PROGRAM,
    SORT_ROLE,
    USER,
    ProcessTable,
    end_process,
    question,
)
from tests.patience import PATIENCE_S


@pytest.fixture
def table(qapp, qtmodeltester):
    created = ProcessTable()
    yield created
    qtmodeltester.check(created, force_py=True)


def process(pid, name="python", memory_bytes: int | None = 1 << 20, **changes):
    return GpuProcess(pid=pid, name=name, memory_bytes=memory_bytes, **changes)


def column(table, number):
    return [table.index(row, number).data() for row in range(table.rowCount())]


def test_rows_name_the_processes_on_the_card(table):
    table.show(
        [process(7, "Xorg", 90 << 20, user="root", kind="graphics"), process(9, memory_bytes=None)],
        None,
    )
    assert column(table, PID) == ["7", "9"]
    assert column(table, PROGRAM) == ["Xorg", "python"]
    assert column(table, USER) == ["root", "n/a"]
    assert column(table, KIND) == ["graphics", "compute"]
    assert [text.replace("\u202f", " ") for text in column(table, MEMORY)] == ["90 MiB", "n/a"]


def test_this_programs_own_processes_are_marked(table, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 815)
    table.show([process(4711), process(os.getpid()), process(5)], 4711)
    assert column(table, PROGRAM) == [
        "python  (this program's engine)", "python  (this window)", "python",
    ]  # fmt: skip


def test_a_fresh_engine_takes_the_mark(table, qtbot):
    table.show([process(1), process(2)], 1)
    with qtbot.waitSignal(table.dataChanged):
        table.show([process(1), process(2)], 2)
    assert column(table, PROGRAM) == ["python", "python  (this program's engine)"]


def test_rows_stay_while_their_processes_do(table, qtbot):
    table.show([process(1), process(2), process(3)], None)
    selection = QItemSelectionModel(table)
    selection.select(table.index(1, PID), QItemSelectionModel.SelectionFlag.Select)
    with qtbot.assertNotEmitted(table.modelReset):
        table.show([process(2, memory_bytes=5 << 20), process(4)], None)
    assert column(table, PID) == ["2", "4"]
    assert column(table, MEMORY)[0].startswith("5")
    assert [index.row() for index in selection.selectedIndexes()] == [0]


def test_the_same_again_says_nothing(table, qtbot):
    table.show([process(1)], None)
    with (
        qtbot.assertNotEmitted(table.dataChanged),
        qtbot.assertNotEmitted(table.rowsInserted),
        qtbot.assertNotEmitted(table.rowsRemoved),
    ):
        table.show([process(1)], None)


def test_numbers_sort_as_numbers(table):
    table.show([process(9, "b", 5 << 30), process(100, "C", 7 << 20), process(20, "a", None)], None)
    proxy = QSortFilterProxyModel()
    proxy.setSourceModel(table)
    proxy.setSortRole(SORT_ROLE)
    orders = {}
    for number in (PID, PROGRAM, MEMORY):
        proxy.sort(number, Qt.SortOrder.AscendingOrder)
        orders[number] = [proxy.index(row, PID).data() for row in range(3)]
    assert orders[PID] == ["9", "20", "100"]
    assert orders[PROGRAM] == ["20", "9", "100"]
    assert orders[MEMORY] == ["20", "100", "9"]


def test_the_note_says_what_the_table_cannot(table, monkeypatch):
    assert "no program" in table.note
    table.show([process(1, memory_bytes=None), process(2)], None)
    assert table.note == ""
    table.show([process(1, memory_bytes=None)], None)
    monkeypatch.setattr(module, "IS_WINDOWS", False)
    assert "n/a" in table.note
    assert "driver" in table.note
    monkeypatch.setattr(module, "IS_WINDOWS", True)
    assert table.note == NO_MEMORY_ON_WINDOWS
    tip = table.index(0, MEMORY).data(Qt.ItemDataRole.ToolTipRole)
    assert tip == NO_MEMORY_ON_WINDOWS


def test_a_column_of_numbers_is_aligned_with_its_head(table):
    table.show([process(1)], None)
    role = Qt.ItemDataRole.TextAlignmentRole
    for number, side in ((PID, "AlignRight"), (PROGRAM, "AlignLeft"), (MEMORY, "AlignRight")):
        cell = table.index(0, number).data(role)
        head = table.headerData(number, Qt.Orientation.Horizontal, role)
        assert cell == head
        assert cell & getattr(Qt.AlignmentFlag, side)


@pytest.fixture
def sleeper():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield child
    child.kill()
    child.communicate()


def test_a_process_is_asked_to_end_and_ends(sleeper):
    result = end_process(GpuProcess(pid=sleeper.pid, name="python"), {os.getpid()})
    outcome = "was ended" if sys.platform == "win32" else "was asked to end"
    assert result == f"python ({sleeper.pid}) {outcome}."
    assert sleeper.wait(PATIENCE_S) != 0


def test_this_program_does_not_end_its_own(sleeper):
    result = end_process(GpuProcess(pid=sleeper.pid, name="python"), {os.getpid(), sleeper.pid})
    assert result.startswith("python belongs to this program")
    assert sleeper.poll() is None


def test_one_that_is_gone_is_said_to_be(sleeper):
    sleeper.kill()
    sleeper.wait()
    result = end_process(GpuProcess(pid=sleeper.pid, name="python"), set())
    assert result == f"python ({sleeper.pid}) has already ended."


def test_one_that_is_gone_is_said_to_be_by_windows_too(monkeypatch):
    def refuse(_pid, _signal):
        error = OSError(22, "The parameter is incorrect")
        error.winerror = 87
        raise error

    monkeypatch.setattr(os, "kill", refuse)
    result = end_process(GpuProcess(pid=4711, name="python.exe"), set())
    assert result == "python.exe (4711) has already ended."


def test_windows_ends_a_process_at_once(monkeypatch):
    monkeypatch.setattr(os, "kill", lambda _pid, _signal: None)
    monkeypatch.setattr(process_table, "_is_over_on_windows", lambda _pid: False)
    monkeypatch.setattr("sys.platform", "win32")
    result = end_process(GpuProcess(pid=4711, name="game.exe"), set())
    assert result == "game.exe (4711) was ended."


@pytest.mark.parametrize(
    ("is_over", "outcome"),
    # Windows denies the same to those who would end a process again that has ended and is held.
    [(False, "belongs to another user"), (True, "has already ended")],
)
def test_what_is_not_allowed_is_a_sentence(monkeypatch, is_over, outcome):
    def refuse(_pid, _signal):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    monkeypatch.setattr(process_table, "_is_over_on_windows", lambda _pid: is_over)
    assert outcome in end_process(GpuProcess(pid=1, name="init"), set())


def test_the_question_says_what_is_lost():
    asked = question(GpuProcess(pid=900, name="Xorg", user="root", kind="graphics"))
    assert asked.startswith("End Xorg of root (process 900)? Unsaved work is lost.")
    assert "draws on the screen" in asked
    assert "draws" not in question(GpuProcess(pid=4711, name="python"))
