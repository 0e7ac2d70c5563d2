"""PyTorch on this PC: what the page says is what the terminal says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton

from gpu_studio.core.pythons.coverage import this_pc
from gpu_studio.core.pythons.verdict import PythonVerdict, headline, judged
from gpu_studio.model.devices import pythons_model
from gpu_studio.model.pages import PYTHONS, Destination
from gpu_studio.process.child_call import ChildAnswer
from gpu_studio.ui.page_parts import Text
from gpu_studio.ui.tabs import page_for_file
from tests.core.pythons.made_pythons import find_pythons, make_venv, put_torch
from tests.driving.window import find

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="made of this system's Python")


@pytest.fixture
def home(tmp_path):
    put_torch(make_venv(tmp_path / "comfy" / "venv"), "2.7.1+cpu", vision="0.22.1+cpu")
    put_torch(make_venv(tmp_path / "whisper" / ".venv"), "2.7.1+cu126")
    return tmp_path


@pytest.fixture
def page(tab, ready_studio, qtbot, home):
    """The page after a folder was dropped on the window."""
    tab.show()
    tab.go_to(Destination(page=PYTHONS, paths=(home,)))
    page = tab.pages.shown
    qtbot.waitUntil(lambda: len(page.model.verdicts) > 0)
    return page


def said(page, name):
    return find(page, f"pythons.{name}", Text).text()


def test_the_page_says_what_the_terminal_says(page, ready_studio, home):
    pc = this_pc(ready_studio.sensors.inventory)
    verdicts = judged(find_pythons(str(home)).environments, pc)
    assert said(page, "sentence") == headline(verdicts, pc)
    for at, one in enumerate(verdicts):
        assert said(page, f"{at}.program") == one.environment.program
        assert one.reason in said(page, f"{at}.state")
    assert said(page, "0.line") == verdicts[0].line.text


def test_copy_copies_the_line_and_runs_nothing(page):
    find(page, "pythons.0.copy", QPushButton).click()
    assert QGuiApplication.clipboard().text() == page.model.verdicts[0].line.text


def test_a_kernel_runs_only_at_a_press_and_changes_the_verdict(page, qtbot, monkeypatch):
    asked = []

    def call(command, *_, **__):
        asked.append(command[0])
        return ChildAnswer(b'{"version": "2", "cards": [{"name": "X", "failed": ""}]}', 0)

    monkeypatch.setattr(pythons_model, "call_command", call)
    assert asked == []
    before = page.model.verdicts[0]
    find(page, "pythons.0.run", QPushButton).click()
    qtbot.waitUntil(lambda: page.model.verdicts[0] is not before)
    assert asked == [before.environment.python]
    assert page.model.verdicts[0].verdict is PythonVerdict.RIGHT
    qtbot.waitUntil(lambda: "A kernel ran on X." in said(page, "0.state"))


def test_a_search_can_be_stopped(tab, page, qtbot, monkeypatch):
    stopped = []

    def search(_question, _call, is_over):
        stopped.append("begun")
        while not is_over():
            pass
        stopped.append("over")

    monkeypatch.setattr(pythons_model, "ask_for_pythons", search)
    find(tab, "pythons.look", QPushButton).click()
    assert said(page, "sentence") == "Looking for PyTorch…"
    qtbot.waitUntil(lambda: stopped == ["begun"])
    find(tab, "pythons.stop", QPushButton).click()
    qtbot.waitUntil(lambda: stopped == ["begun", "over"])
    assert find(tab, "pythons.look", QPushButton).isEnabled()


def test_a_folder_that_is_dropped_is_looked_into(tmp_path):
    assert page_for_file(Path(tmp_path), PYTHONS) == PYTHONS
