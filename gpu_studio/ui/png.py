"""Pictures to share: a widget laid out and painted off the screen, or an image, as a PNG file."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QLayout, QWidget

from gpu_studio.model.settings import Settings
from gpu_studio.ui.theme import Theme, styled_application

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
