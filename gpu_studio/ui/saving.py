"""Saves something as a file whose name the user chooses."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import QSaveFile
from PySide6.QtWidgets import QFileDialog

from gpu_studio.core.notice import Notice, Tone

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget


def save_as(window: QWidget, title: str, name: str, kind: str, contents: bytes) -> Notice:
    """Ask for a file and write it; the notice is empty if the user chose none.

    Args:
        window: the dialog's parent.
        title: the dialog's title.
        name: the suggested name; its suffix is added if the chosen name lacks it.
        kind: the kind of file for the dialog: ``CSV table (*.csv)``.
        contents: what to write.
    """
    path, _ = QFileDialog.getSaveFileName(window, title, name, kind)
    if not path:
        return Notice()
    suffix = PurePath(name).suffix
    if not path.lower().endswith(suffix):
        path += suffix
    return write_file(path, contents)


def write_file(path: str, contents: bytes) -> Notice:
    """Write a file whole, or leave the one before."""
    file = QSaveFile(path)
    if (
        file.open(QSaveFile.OpenModeFlag.WriteOnly)
        and file.write(contents) == len(contents)
        and file.commit()
    ):
        return Notice(f"Saved as {path}")
    return Notice(f"Could not write {path}: {file.errorString()}", Tone.FAILURE)
