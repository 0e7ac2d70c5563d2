from __future__ import annotations

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMessageBox, QPushButton, QTableView

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.model.devices.process_table import ProcessTable
from gpu_studio.ui.devices import device_details as module
from gpu_studio.ui.devices.device_details import ProcessCard
from tests.driving.window import numbers

PYTHON = GpuProcess(pid=4711, name="python", user="you", memory_bytes=336 << 20)
XORG = GpuProcess(pid=900, name="Xorg", user="root", kind="graphics", memory_bytes=90 << 20)


@pytest.fixture
def card(qtbot, settings):
    processes = ProcessTable()
    created = ProcessCard(processes, settings)
    processes.setParent(created)
    qtbot.addWidget(created)
    created.show()
    processes.show((PYTHON, XORG), None)
    return created


@pytest.fixture
def ended(monkeypatch):
    asked = []
    monkeypatch.setattr(
        module, "end_process", lambda process, own: asked.append((process, own)) or "Asked."
    )
    return asked


def programs(card):
    model = card.findChild(QTableView, "devices.processes").model()
    return [model.index(row, 1).data() for row in range(model.rowCount())]


def test_a_filter_finds_by_any_column_and_says_what_it_hides(card):
    box = card.findChild(QLineEdit, "devices.processes.filter")
    note = card.findChild(QLabel, "devices.processes.note")
    assert programs(card) == ["python", "Xorg"]
    for text, found in (("xORG", ["Xorg"]), ("you", ["python"]), ("4711", ["python"])):
        box.setText(text)
        assert programs(card) == found
        assert numbers(note.text())[:2] == ["1", "2"]
        assert f"“{text}”" in note.text()
    box.clear()
    assert (programs(card), note.isVisible()) == (["python", "Xorg"], False)


def test_a_card_whose_programs_cannot_be_listed_says_what_is_used(card):
    """On it a driver that hides programs read as one that nobody uses, at 800 MiB used."""
    processes = card.findChild(ProcessTable)
    note = card.findChild(QLabel, "devices.processes.note")
    processes.show((), None)
    assert "no program" in note.text()
    processes.show((), None, "800 MiB of 2.00 GiB")
    assert "800 MiB of 2.00 GiB used" in note.text()
    assert "no program" not in note.text()
    processes.show((PYTHON,), None, "900 MiB of 2.00 GiB")
    assert note.isHidden()


def test_nothing_can_be_ended_unless_a_setting_allows_it(card, settings):
    end = card.findChild(QPushButton, "devices.processes.end")
    assert not end.isVisible()
    settings.change(may_end_processes=True)
    assert end.isVisible()
    assert not end.isEnabled()
    card.findChild(QTableView, "devices.processes").selectRow(0)
    assert end.isEnabled()


@pytest.mark.parametrize("agrees", [True, False])
def test_a_question_comes_before_the_end(qtbot, card, settings, ended, agrees):
    settings.change(may_end_processes=True)
    card.findChild(QTableView, "devices.processes").selectRow(1)

    def answer():
        box = QApplication.activeModalWidget()
        assert isinstance(box, QMessageBox)
        assert "Xorg" in box.text()
        wanted = "End process" if agrees else "Cancel"
        next(b for b in box.buttons() if b.text().replace("&", "") == wanted).click()

    QTimer.singleShot(0, answer)
    card.findChild(QPushButton, "devices.processes.end").click()
    assert [process for process, _ in ended] == ([XORG] if agrees else [])
    assert card.findChild(QLabel, "devices.processes.outcome").isVisible() is agrees
