"""Saves something as a file whose name the user chooses."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QSaveFile
from PySide6.QtWidgets import QFileDialog

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget


class SaveOutcome(NamedTuple):
    """What became of it, in a sentence; empty if the user chose no file."""

    text: str = ""
    has_failed: bool = False


def save_as(window: QWidget, title: str, name: str, kind: str, contents: bytes) -> SaveOutcome:
    """Ask for a file and write it.

    Args:
        window: the dialog's parent.
        title: the dialog's title.
        name: the suggested name; its suffix is added if the chosen name lacks it.
        kind: the kind of file for the dialog: ``CSV table (*.csv)``.
        contents: what to write.
    """
    path, _ = QFileDialog.getSaveFileName(window, title, name, kind)
    if not path:
        return SaveOutcome()
    suffix = PurePath(name).suffix
    if not path.lower().endswith(suffix):
        path += suffix
    return write_file(path, contents)


def write_file(path: str, contents: bytes) -> SaveOutcome:
    """Write a file whole, or leave the one before."""
    file = QSaveFile(path)
    if (
        file.open(QSaveFile.OpenModeFlag.WriteOnly)
        and file.write(contents) == len(contents)
        and file.commit()
    ):
        return SaveOutcome(f"Saved as {path}")
    return SaveOutcome(f"Could not write {path}: {file.errorString()}", True)
