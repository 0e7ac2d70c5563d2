"""Asks for files in the folders where people keep them, and saves what goes into one."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import QSaveFile, QStandardPaths
from PySide6.QtWidgets import QFileDialog

from gpu_studio.core.notice import Notice, Tone

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget


_PICTURES = (".png", ".apng", ".webp", ".gif", ".mp4")


def suggested_path(name: str) -> str:
    """Return a dated path for a new file: pictures in Pictures, everything else in Documents."""
    file = PurePath(name)
    dated = f"{file.stem}-{datetime.now():%Y-%m-%d-%H%M%S}{file.suffix}"
    return usual_path(dated)


def usual_path(name: str) -> str:
    """Return the path of a file in the folder where people look for its kind."""
    return str(Path(_folder_for(PurePath(name).suffix)) / name)


def ask_save_path(parent: QWidget, title: str, name: str, kind: str) -> str:
    """Return the path that the user chose for a new file; empty if none.

    Args:
        parent: the dialog's parent.
        title: the dialog's title.
        name: the kind of file, which begins its suggested name, with its suffix.
        kind: the kind of file for the dialog: ``CSV table (*.csv)``.
    """
    path, _ = QFileDialog.getSaveFileName(parent, title, suggested_path(name), kind)
    suffix = PurePath(name).suffix
    return path if not path or path.lower().endswith(suffix) else path + suffix


def ask_open_path(parent: QWidget, title: str, kinds: str) -> str:
    """Return the path of the file that the user chose; empty if none.

    Args:
        parent: the dialog's parent.
        title: the dialog's title.
        kinds: the kinds of files for the dialog: ``Pictures (*.png *.jpg);;All files (*)``.
    """
    suffix = next(iter(re.findall(r"\*(\.\w+)", kinds)), "")
    path, _ = QFileDialog.getOpenFileName(parent, title, _folder_for(suffix), kinds)
    return path


def ask_open_paths(parent: QWidget, title: str, kinds: str) -> list[str]:
    """Return the paths of the files that the user chose, as `ask_open_path`; empty if none."""
    suffix = next(iter(re.findall(r"\*(\.\w+)", kinds)), "")
    paths, _ = QFileDialog.getOpenFileNames(parent, title, _folder_for(suffix), kinds)
    return paths


def _folder_for(suffix: str) -> str:
    places = QStandardPaths.StandardLocation
    is_picture = suffix.lower() in _PICTURES
    place = places.PicturesLocation if is_picture else places.DocumentsLocation
    return QStandardPaths.writableLocation(place)


def save_as(window: QWidget, title: str, name: str, kind: str, contents: bytes) -> Notice:
    """Ask for a file and write it; the notice is empty if the user chose none.

    Args:
        window: the dialog's parent.
        title: the dialog's title.
        name: begins the suggested name; its suffix is added if the chosen name lacks it.
        kind: the kind of file for the dialog: ``CSV table (*.csv)``.
        contents: what to write.
    """
    path = ask_save_path(window, title, name, kind)
    return write_file(path, contents) if path else Notice()


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
