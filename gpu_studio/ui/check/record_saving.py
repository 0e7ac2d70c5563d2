"""Saves the record of a check: to a file of your choice, or as page and picture for a buyer."""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import QStandardPaths, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog

from gpu_studio.core.check.record_page import page_of
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.ui.check.record_picture import png_of_record
from gpu_studio.ui.saving import write_file

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.check.check_record import CheckRecord

_PICTURE, _PAGE = "Picture (*.png)", "Web page (*.html)"
_PAGE_ENDINGS = (".html", ".htm")
_FOLDER = "GPU Studio"
_LONGEST_NAME = 60


def save_record(window: QWidget, record: CheckRecord) -> Notice:
    """Ask for a file and write the record into it."""
    path, kind = QFileDialog.getSaveFileName(
        window, "Save record", f"{record_file_name(record)}.png", f"{_PICTURE};;{_PAGE}"
    )
    if not path:
        return Notice()
    ending = PurePath(path).suffix.lower()
    if ending not in (".png", *_PAGE_ENDINGS):
        ending = ".html" if kind == _PAGE else ".png"
        path += ending
    if ending in _PAGE_ENDINGS:
        return write_file(path, page_of(record))
    return write_file(path, png_of_record(record))


def show_to_buyer(record: CheckRecord) -> Notice:
    """Write page and picture into your documents, and open the page in the browser."""
    documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    if not documents:
        return Notice("This PC has no folder for documents. Use “Save record…”.", Tone.FAILURE)
    folder = Path(documents) / _FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        return Notice(f"Could not make the folder {folder}: {reason}", Tone.FAILURE)
    name = record_file_name(record)
    page = folder / f"{name}.html"
    for path, contents in (
        (page, page_of(record)),
        (folder / f"{name}.png", png_of_record(record)),
    ):
        written = write_file(str(path), contents)
        if written.tone is Tone.FAILURE:
            return written
    saved = f"Saved as {name}.html and {name}.png in {folder}."
    if QDesktopServices.openUrl(QUrl.fromLocalFile(str(page))):
        return Notice(f"{saved} Send both: the page has everything, the picture is for a listing.")
    return Notice(f"{saved} No browser opened: open the page yourself.", Tone.AMBER)


def record_file_name(record: CheckRecord) -> str:
    """Return a file's name without ending: ``check-GT-1030-2026-11-22-1440``; safe on any PC."""
    day, _, time = record.started_at[:16].partition("T")
    parts = ("check", short_name(record.device.name)[:_LONGEST_NAME], day, time.replace(":", ""))
    return re.sub(r"[^0-9A-Za-z]+", "-", "-".join(parts)).strip("-") or "check"
