"""The Code pane says truly how its lines are run."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPlainTextEdit

from gpu_studio.ui.code_pane import CodePane
from tests.driving.window import click, find, text


@pytest.fixture
def pane(studio, qtbot):
    pane = CodePane(studio)
    qtbot.addWidget(pane)
    pane.show()
    return pane


def test_the_lines_of_the_last_action_are_shown_and_copied(pane, studio, qtbot):
    assert not find(pane, "code.copy").isEnabled()
    studio.show_snippet("import torch\nprint(torch.ones(3))\n")
    assert find(pane, "code", QPlainTextEdit).toPlainText() == studio.snippet
    click(pane, "code.copy")
    assert QGuiApplication.clipboard().text() == studio.snippet


def test_what_torchrun_has_to_start_is_not_said_to_run_as_it_stands(pane, studio):
    studio.show_snippet("# Save this as share.py, then: torchrun share.py\nimport os\n")
    started_by_torchrun = text(pane, "code.note")
    assert "processes" in started_by_torchrun
    studio.show_snippet("import torch\n")
    assert text(pane, "code.note") not in ("", started_by_torchrun)
