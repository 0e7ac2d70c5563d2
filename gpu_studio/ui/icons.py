"""Icons as names in one table, painted in the theme's colors.

An icon reads the theme each time it is painted, so it follows light and dark by itself. Creating
one costs the reading of a small file.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QIconEngine, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from gpu_studio.core.resources import MissingResourceError, resource_path

if TYPE_CHECKING:
    from gpu_studio.ui.theme import Theme

_log = logging.getLogger(__name__)

# Files of resources/icons: strokes in "currentColor" on a field of 24 × 24.
ICONS = (
    "card", "chart", "check", "clock", "code", "copy", "cpu", "export", "file", "flag",
    "full_screen", "ghost", "image", "info", "memory", "move", "play", "refresh", "shield", "stop",
    "switch", "trash", "warning",
)  # fmt: skip


def icon(name: str, theme: Theme, role: str = "text", checked_role: str = "") -> QIcon:
    """Return an icon that follows the theme; if its file is missing, an empty one with a log entry.

    Args:
        name: one of `ICONS`.
        theme: gives the colors.
        role: the color role, for example ``on_accent`` on a primary button.
        checked_role: the role on a selected tab or a checked button; "" is the same as ``role``.
    """
    if not _drawing(name):
        return QIcon()
    return QIcon(_TintedIcon(name, theme, role, checked_role or role))


class _TintedIcon(QIconEngine):
    """Paints a drawing in the current colors of its roles."""

    def __init__(self, name: str, theme: Theme, role: str, checked_role: str) -> None:
        super().__init__()
        self._name, self._theme = name, theme
        self._role, self._checked_role = role, checked_role

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        scale = painter.device().devicePixelRatio()
        painter.drawPixmap(rect, self.scaledPixmap(rect.size(), mode, state, scale))

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        return self.scaledPixmap(size, mode, state, 1.0)

    def scaledPixmap(
        self, size: QSize, mode: QIcon.Mode, state: QIcon.State, scale: float
    ) -> QPixmap:
        role = self._checked_role if state is QIcon.State.On else self._role
        colour = self._theme.colour("disabled" if mode is QIcon.Mode.Disabled else role)
        return _painted(self._name, colour, size.width(), size.height(), scale)

    def clone(self) -> QIconEngine:
        return _TintedIcon(self._name, self._theme, self._role, self._checked_role)


@functools.cache
def _drawing(name: str) -> str:
    """Return the text of an icon's file, empty if it is missing."""
    try:
        return resource_path(f"icons/{name}.svg").read_text(encoding="utf-8")
    except (MissingResourceError, OSError, UnicodeDecodeError):
        _log.warning("The icon %s is missing", name)
        return ""


@functools.lru_cache(maxsize=256)
def _painted(name: str, colour: str, width: int, height: int, scale: float) -> QPixmap:
    # Imported with the first painted icon, not with the window.
    picture = QPixmap(QSize(width, height) * scale)
    picture.setDevicePixelRatio(scale)
    picture.fill(Qt.GlobalColor.transparent)
    renderer = QSvgRenderer(QByteArray(_drawing(name).replace("currentColor", colour).encode()))
    renderer.setAspectRatioMode(Qt.AspectRatioMode.KeepAspectRatio)
    painter = QPainter(picture)
    renderer.render(painter, QRectF(0, 0, width, height))
    painter.end()
    return picture
