"""The page that starts a program: what a person chooses, presses and copies."""

from __future__ import annotations

import os
import sys

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QFileDialog, QPushButton

from gpu_studio.model.pages import START
from gpu_studio.model.switcher import start_model
from tests.driving.pages import settle
from tests.driving.window import choose, click, find, sees, table, text


@pytest.fixture
def page(tab, qtbot, monkeypatch):
    monkeypatch.setattr(start_model, "vulkan_devices", lambda *_: [])
    tab.pages.go_to(START)
    settle()
    return tab


def write(page, command):
    find(page, "start.command", QComboBox).setCurrentText(command)


def test_a_program_is_started_and_its_end_is_told(page, qtbot, tmp_path):
    program = tmp_path / "ends.py"
    program.write_text("raise SystemExit(4)")
    assert not find(page, "start.start", QPushButton).isEnabled()
    write(page, f'"{sys.executable}" "{program}"')
    choose(page, "start.card", "On the CPU")
    click(page, "start.start")
    qtbot.waitUntil(lambda: "with status 4" in text(page, "start.notice"))
    assert ["CUDA_VISIBLE_DEVICES", "-1"] in [[*row] for row in table(page, "start.variables")]


def test_the_switch_page_leads_to_it_with_the_device_in_use(tab, studio, qtbot):
    qtbot.waitUntil(lambda: sees(tab, "switcher.start"))
    went = []
    studio.destination_wanted.connect(went.append)
    click(tab, "switcher.start")
    (destination,) = went
    assert destination.page == START
    tab.go_to(destination)
    assert tab.start.choices.card == destination.device


def test_the_line_is_copied_and_the_shortcut_saved(page, qtbot, tmp_path, monkeypatch):
    write(page, "ollama serve")
    choose(page, "start.card", "On the CPU")
    find(page, "start.copy", QPushButton).click()
    menu = find(page, "start.copy", QPushButton).menu()
    next(one for one in menu.actions() if one.text() == "For sh").trigger()
    menu.close()
    qtbot.waitUntil(lambda: text(page, "start.saved") == "The line is copied.")
    assert QGuiApplication.clipboard().text().endswith(" ollama serve")
    saved = tmp_path / "ollama.desktop"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(saved), ""))
    click(page, "start.shortcut")
    qtbot.waitUntil(lambda: text(page, "start.saved").startswith("Saved"))
    assert b"ollama" in saved.read_bytes()
    assert os.name != "posix" or os.access(saved, os.X_OK)
