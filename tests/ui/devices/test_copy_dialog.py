from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QComboBox, QPlainTextEdit, QPushButton

from gpu_studio.ui.devices.copy_dialog import CopyDialog
from tests.driving.pages import settle
from tests.driving.window import places

WHOLE = "GPU-1234 <b>"


@pytest.fixture
def dialog(qtbot):
    created = CopyDialog(lambda form, masked: f"{form} {'masked' if masked else WHOLE}")
    qtbot.addWidget(created)
    return created


def test_what_is_shown_is_what_is_copied(dialog):
    preview = dialog.findChild(QPlainTextEdit, "devices.copy.preview")
    assert preview.toPlainText() == "text masked"
    dialog.findChild(QComboBox, "devices.copy.form").setCurrentIndex(1)
    assert preview.toPlainText() == "markdown masked"
    dialog.findChild(QCheckBox, "devices.copy.whole").setChecked(True)
    dialog.findChild(QPushButton, "devices.copy.now").click()
    assert QGuiApplication.clipboard().text() == preview.toPlainText() == f"markdown {WHOLE}"


def test_no_sentence_moves_a_control(dialog):
    dialog.show()
    settle()
    before, size = places(dialog), dialog.size()
    dialog.findChild(QCheckBox, "devices.copy.whole").setChecked(True)
    settle()
    assert (places(dialog), dialog.size()) == (before, size)
    dialog.findChild(QPushButton, "devices.copy.now").click()
    settle()
    assert (places(dialog), dialog.size()) == (before, size)
