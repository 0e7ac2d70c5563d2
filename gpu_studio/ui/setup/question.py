"""The question before something that was downloaded goes away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QMessageBox

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtWidgets import QWidget


def ask(
    parent: QWidget, name: str, title: str, question: str, details: str, answer: str,
    do: Callable[[], object],
) -> None:  # fmt: skip
    """Ask in a dialog of the window, and do it if the answer is yes.

    Args:
        parent: the part of the window that asks.
        name: the dialog's object name; the button's is the same with ".sure".
        title: the dialog's title.
        question: what is asked.
        details: what it means.
        answer: the text of the button that does it.
        do: does it.
    """
    box = QMessageBox(parent)
    box.setObjectName(name)
    box.setWindowTitle(title)
    box.setText(question)
    box.setInformativeText(details)
    box.setStandardButtons(QMessageBox.StandardButton.Cancel)
    sure = box.addButton(answer, QMessageBox.ButtonRole.AcceptRole)
    sure.setObjectName(f"{name}.sure")
    sure.clicked.connect(do)
    box.setDefaultButton(QMessageBox.StandardButton.Cancel)
    box.open()
