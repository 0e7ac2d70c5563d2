"""Asks for files in the folders where people keep them, and saves what goes into one.

Pictures to share: a widget laid out and painted off the screen, or an image, as a PNG file.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, QSaveFile, QStandardPaths, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QFileDialog, QLayout, QWidget

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.settings import Settings
from gpu_studio.ui.theme import Theme, styled_application

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_FOLDER = "lastFolder"  # a property of the window
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

    The next file of this window is suggested in the same folder.

    Args:
        parent: the dialog's parent.
        title: the dialog's title.
        name: the kind of file, which begins its suggested name, with its suffix.
        kind: the kind of file for the dialog: ``CSV table (*.csv)``.
    """
    window, suggested = parent.window(), PurePath(suggested_path(name))
    folder = window.property(_FOLDER)
    if folder and Path(folder).is_dir():
        suggested = Path(folder) / suggested.name
    path, _ = QFileDialog.getSaveFileName(parent, title, str(suggested), kind)
    if path:
        window.setProperty(_FOLDER, str(PurePath(path).parent))
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


_MOST_PASSES = 4  # a headline's type follows the width, and the height follows the type
_NO_TEXTS: Mapping[str, str] = {}


def picture_of(
    page: QWidget,
    width: int,
    *,
    background: str,
    scale: int = 1,
    texts: Mapping[str, str] = _NO_TEXTS,
) -> bytes:
    """Return a widget as a PNG file, whatever screen there is; the widget is deleted.

    Args:
        page: has a layout and no parent, and is not shown.
        width: in pixels.
        background: the color behind it.
        scale: the pixels of the picture for one of the widget: 2 is sharp in print.
        texts: text chunks, each in ASCII, by keywords without spaces.
    """
    _lay_out(page, width)
    image = QImage(page.size() * scale, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    image.fill(background)
    painter = QPainter(image)
    page.render(painter, QPoint(), renderFlags=QWidget.RenderFlag.DrawChildren)
    painter.end()
    page.hide()
    page.deleteLater()
    for keyword, text in texts.items():
        image.setText(keyword, text)
    image.setText("Software", "GPU Studio")
    return png_bytes(image)


def _lay_out(page: QWidget, width: int) -> None:
    """Lay a widget out at a width, as high as it then has to be."""
    layout = page.layout()
    assert layout is not None
    # A window would be at least as high as in a narrow column, where text takes more lines.
    layout.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
    page.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    page.resize(width, page.height())
    page.show()
    for _ in range(_MOST_PASSES):
        layout.activate()
        height = layout.totalSizeHint().height()
        if layout.hasHeightForWidth():
            height = layout.totalHeightForWidth(width)
        if page.height() == height:
            break
        page.resize(width, height)


def png_bytes(image: QImage) -> bytes:
    """Return the PNG file of an image, with its text chunks."""
    contents = QByteArray()
    buffer = QBuffer(contents)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]  # the stubs say bytes
    return bytes(contents.data())


@contextmanager
def painting_theme() -> Iterator[Theme]:
    """Have Qt with its dark look for a picture in a child process without a window."""
    has_screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform == "linux" and not has_screen:
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = styled_application([])
    settings = Settings(None)
    settings.change(theme="dark")
    theme = Theme(settings)
    theme.apply()
    yield theme
    application.quit()
