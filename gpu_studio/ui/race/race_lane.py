"""One side of a race: its picture, and below it the way to the finish, its name and its figures."""

from __future__ import annotations

import functools
import logging
import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from gpu_studio.core.notice import Tone
from gpu_studio.core.packed_frame import CHANNELS
from gpu_studio.core.resources import MissingResourceError, resource_path
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.parts import GAP, Card, Text

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from gpu_studio.core.packed_frame import PackedFrame
    from gpu_studio.core.race.stage_view import LaneView
    from gpu_studio.ui.theme import Theme

# A picture may lose so much of its area to fill its frame; beyond, it is shown whole.
_CUT = 0.16
_DIMMED = 0.35
# In lines of the widget's font.
_LEAST, _USUAL, _WAY = (12.0, 6.0), (30.0, 18.0), 0.45
_RADIUS = 7.0
_SIGNS = {Tone.GOOD: "✓ ", Tone.AMBER: "▲ "}
_OF_POWER = (
    "The average over the whole race, in which the card idles while the other side has its turns. "
    "Drivers report no shorter one."
)
_log = logging.getLogger(__name__)


def image_of(picture: PackedFrame | None) -> QImage | None:
    """Return an image of its own pixels; None without a picture, or for a damaged one.

    Qt scales four bytes a pixel in half the time that it takes for three.
    """
    rows = picture.rows if picture is not None else None
    if picture is None or rows is None:
        return None
    width, height = picture.width, picture.height
    image = QImage(rows, width, height, CHANNELS * width, QImage.Format.Format_RGB888)
    return image.convertToFormat(QImage.Format.Format_RGB32)


@functools.cache
def poster(picture: str) -> QImage | None:
    """Return what a picture will become, as seen before it is run (`packaging/draw_posters.py`).

    Args:
        picture: the workload's name.

    Returns:
        The poster; None if the program's file cannot be read: the place for it is plain then.
    """
    try:
        image = QImage(str(resource_path(f"posters/{picture}.jpg")))
    except MissingResourceError as error:
        _log.warning("%s", error)
        return None
    return None if image.isNull() else image


def place_in(frame: QRectF, shape: QSizeF) -> QRectF:
    """Return where a picture of some shape is painted, around the middle of its frame.

    It fills the frame if it loses little by that, and is whole otherwise.
    """
    size = shape.scaled(frame.size(), Qt.AspectRatioMode.KeepAspectRatioByExpanding)
    lost = 1 - frame.width() * frame.height() / max(size.width() * size.height(), 1.0)
    if lost > _CUT:
        size = shape.scaled(frame.size(), Qt.AspectRatioMode.KeepAspectRatio)
    place = QRectF(QPointF(0, 0), size)
    place.moveCenter(frame.center())
    return place


class RacePicture(QWidget):
    """Paints a picture in its own shape, and the share of the way that is done as a bar below it.

    Attributes:
        image: the shown picture.
        is_dimmed: whether it is only to come.
        share: the share of the way, 0 to 1.
    """

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._theme = theme
        self.image: QImage | None = None
        self.is_dimmed = False
        self.share, self._role = 0.0, "other"
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.update)

    def show_lane(self, view: LaneView) -> None:
        """Show the picture of a moment and the way until then."""
        self.image = image_of(view.picture) or (poster(view.poster) if view.poster else None)
        self.is_dimmed = view.is_to_come
        self.share, self._role = view.share, view.role
        self.setAccessibleName(f"Picture of {view.name}")
        self.setAccessibleDescription(f"{view.share:.0%} of the way to the finish line")
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size of a picture that is easy to see."""
        return QSize(*(math.ceil(self._lines(count)) for count in _USUAL))

    def minimumSizeHint(self) -> QSize:
        """Return the size at which a picture can still be told from another."""
        return QSize(*(math.ceil(self._lines(count)) for count in _LEAST))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the picture and the bar; the bar alone is as high as the picture would be."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        outline, way = QPainterPath(), self._lines(_WAY)
        outline.addRoundedRect(QRectF(self.rect()), _RADIUS, _RADIUS)
        painter.setClipPath(outline)
        painter.fillRect(self.rect(), self._color("track"))
        frame = QRectF(self.rect()).adjusted(0, 0, 0, -way)
        done = min(self.share, 1.0) * frame.width()
        painter.setOpacity(_DIMMED if self.image is None or self.is_dimmed else 1.0)
        if self.image is not None:
            painter.drawImage(place_in(frame, self.image.size().toSizeF()), self.image)
        else:
            painter.fillRect(QRectF(0, 0, done, frame.height()), self._color(self._role))
        painter.setOpacity(1.0)
        painter.fillRect(QRectF(0, frame.bottom(), frame.width(), way), self._color("border"))
        painter.fillRect(QRectF(0, frame.bottom(), done, way), self._color(self._role))

    def _color(self, role: str) -> QColor:
        return QColor(self._theme.colour(role))

    def _lines(self, count: float) -> float:
        return count * self.fontMetrics().height()


class RaceLane(Card):
    """Shows one contestant. Both sides are equal in everything but their names and colors."""

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, name=name)
        self.picture = RacePicture(theme, name=f"{name}.picture")
        self._name = ElidedText("", "value", name=f"{name}.name")
        self._state = Text("", "muted", name=f"{name}.state")
        self._clock = Text("", "value", name=f"{name}.clock")
        self._clock.setToolTip("The race's clock: it runs only while this side works")
        self._pace = Text("", "value", name=f"{name}.pace")
        self._steps = Text("", "muted", name=f"{name}.steps")
        self._achieved = ElidedText("", "muted", name=f"{name}.achieved")
        self._achieved.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._achieved.setToolTip(_OF_POWER)
        self.column.setContentsMargins(1, 1, 1, 1)
        self.column.addWidget(self.picture, 1)
        below = QVBoxLayout()
        below.setContentsMargins(GAP, 0, GAP, GAP // 2)
        below.setSpacing(2)
        self.column.addLayout(below)
        for first, *others, last in (
            (self._name, self._state),
            (self._clock, self._pace, self._steps, self._achieved),
        ):
            line = QHBoxLayout()
            line.setSpacing(GAP)
            below.addLayout(line)
            for widget in (first, *others):
                line.addWidget(widget, int(widget is self._name))
            line.addWidget(last, int(last is self._achieved))

    def show_lane(self, view: LaneView) -> None:
        """Show a contestant at a moment."""
        self.picture.show_lane(view)
        self.setAccessibleName(view.name)
        self.setAccessibleDescription(view.state)
        self._name.setText(view.name)
        self._state.setText(_SIGNS.get(view.state_tone, "") + view.state)
        self._state.set_tone(view.state_tone)
        self._clock.setText(view.clock)
        self._pace.setText(view.pace)
        self._steps.setText(f"✓ {view.steps}" if view.is_reached else view.steps)
        self._achieved.setText(view.achieved)
