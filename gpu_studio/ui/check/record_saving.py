"""Saves the record of a check as a picture or a page, by the ending that the user chooses."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog

from gpu_studio.core.check.record_page import page_of
from gpu_studio.core.notice import Notice
from gpu_studio.ui.check.record_picture import png_of_record
from gpu_studio.ui.saving import write_file

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.check.check_record import CheckRecord

_PICTURE, _PAGE = "Picture (*.png)", "Web page (*.html)"
_PAGE_ENDINGS = (".html", ".htm")


def save_record(window: QWidget, record: CheckRecord) -> Notice:
    """Ask for a file and write the record into it."""
    path, kind = QFileDialog.getSaveFileName(
        window, "Save record", "record-of-a-check.png", f"{_PICTURE};;{_PAGE}"
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
