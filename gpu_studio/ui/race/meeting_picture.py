"""One picture that both sides paint, each from its own end: their colors meet at their ratio."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath
from PySide6.QtWidgets import QSizePolicy, QWidget

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from gpu_studio.ui.theme import Theme

# In lines of the widget's font.
_LEAST, _USUAL = (12, 7), (30, 18)
_RADIUS = 7.0
_LEVELS = 256
# Darker levels go up to the contestant's color, lighter ones from there to white. Black is a dark
# shade of it, because a side that paints a black place must be seen.
_DARKEST, _MIDDLE = 0.3, 0.6


class Painted(NamedTuple):
    """How far one side has painted.

    Attributes:
        steps: its tiles.
        share: the share of the whole way, 0 to 1.
        role: its color.
    """

    steps: int = 0
    share: float = 0.0
    role: str = "other"


class MeetingPicture(QWidget):
    """Shows one picture in two colors: how far each side has painted in the same time.

    Before they meet, the middle is empty.
    """

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName("Picture of both sides")
        self._theme = theme
        self._image: QImage | None = None
        self._sides = (Painted(), Painted())
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.update)

    @property
    def share(self) -> float | None:
        """Where the colors meet, as a share of the width; None before they do."""
        left, right = self._sides
        has_met = left.steps and right.steps and left.share + right.share >= 1
        return left.steps / (left.steps + right.steps) if has_met else None

    @property
    def ends(self) -> tuple[float, float]:
        """The right end of the left color and the left end of the right one, 0 to 1."""
        left, right = self._sides
        share = self.share
        return (share, share) if share is not None else (left.share, 1 - right.share)

    def show_sides(self, image: QImage | None, left: Painted, right: Painted, title: str) -> None:
        """Show what both sides have painted until the same time of the race's clock.

        Args:
            image: the newest picture; None before there is one.
            left: the side that paints from the left.
            right: the side that paints from the right.
            title: the name of the steps, in the plural.
        """
        self._image, self._sides = image, (left, right)
        self.setToolTip(
            f"The left side has painted {left.steps} {title}, the right side {right.steps} in the "
            "same time. Their colors meet at the ratio of these numbers."
        )
        self.setAccessibleDescription(f"{left.steps} and {right.steps} {title}")
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size of a picture that is easy to see."""
        return self._lines(*_USUAL)

    def minimumSizeHint(self) -> QSize:
        """Return the least size at which two colors can be compared."""
        return self._lines(*_LEAST)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint both parts, with a thin line where they meet."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        outline = QPainterPath()
        outline.addRoundedRect(QRectF(self.rect()), _RADIUS, _RADIUS)
        painter.fillPath(outline, QColor(self._theme.colour("track")))
        painter.setClipPath(outline)
        if self._image is None:
            return
        line = max(self.fontMetrics().height() / 10, 1.0) if self.share is not None else 0.0
        first, second = (end * self.width() for end in self.ends)
        left = QRectF(0, 0, first - line, self.height())
        right = QRectF(second + line, 0, self.width() - second - line, self.height())
        for place, side in zip((left, right), self._sides, strict=True):
            if place.width() > 0:
                painter.save()
                painter.setClipRect(place, Qt.ClipOperation.IntersectClip)
                self._paint_image(painter, side.role)
                painter.restore()

    def _paint_image(self, painter: QPainter, role: str) -> None:
        """Paint the picture over the whole place, in one color."""
        assert self._image is not None
        size = self._image.size().scaled(self.size(), Qt.AspectRatioMode.KeepAspectRatioByExpanding)
        target = QRect(0, 0, size.width(), size.height())
        target.moveCenter(self.rect().center())
        painter.drawImage(target, tinted(self._image, QColor(self._theme.colour(role))))

    def _lines(self, across: int, down: int) -> QSize:
        high = self.fontMetrics().height()
        return QSize(across * high, down * high)


def tinted(image: QImage, color: QColor) -> QImage:
    """Return an image in the shades of one color, from dark over the color to white."""
    gray = image.convertToFormat(QImage.Format.Format_Grayscale8)
    made = QImage(
        gray.constBits(), gray.width(), gray.height(), gray.bytesPerLine(),
        QImage.Format.Format_Indexed8,
    ).copy()  # fmt: skip
    made.setColorTable([_shade(color, level / (_LEVELS - 1)) for level in range(_LEVELS)])
    return made


def _shade(color: QColor, light: float) -> int:
    """Return a shade of a color, 0 for black and 1 for white."""
    parts = color.red(), color.green(), color.blue()
    if light <= _MIDDLE:
        share = _DARKEST + (1 - _DARKEST) * light / _MIDDLE
        shade = [round(part * share) for part in parts]
    else:
        rise = (light - _MIDDLE) / (1 - _MIDDLE)
        shade = [round(part + (255 - part) * rise) for part in parts]
    return QColor(*shade).rgb()
