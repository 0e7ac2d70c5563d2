"""What the Benchmark tab shows before anything was run: what Run does, and what else there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QLabel

from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, Card, Role, Text, button

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.ui.theme import Theme

_INVITATION: tuple[tuple[str, Role], ...] = (
    ("Is your graphics card faster than your processor, and from which size on?", "title"),
    ("Press Run: each device does the same work, one after the other.", "muted"),
    (
        "Every sample is drawn here as it comes, a table fills below, and the line above says who "
        "wins.",
        "muted",
    ),
)


class Invitation(Card):
    """A few words and two buttons.

    Signals:
        published_wanted(): a published experiment is to be repeated.
        recording_wanted(): somebody else's runs are to be watched.
    """

    published_wanted = Signal()
    recording_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.column.addStretch(2)
        picture = QLabel()
        picture.setPixmap(icon("chart", theme, "muted").pixmap(QSize(48, 48)))
        picture.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.column.addWidget(picture)
        for text, role in _INVITATION:
            label = Text(text, role, wraps=True)
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            self.column.addWidget(label)
        published = button(
            "Or repeat a published experiment", self.published_wanted.emit,
            name="benchmark.view.published", tip="The GT 1030 experiment, beside this PC",
        )  # fmt: skip
        recording = button(
            "Or open a recording…", self.recording_wanted.emit,
            name="benchmark.view.recording", tip="Watch runs that were made on another PC",
        )  # fmt: skip
        self.column.addSpacing(GAP)
        self.column.addWidget(FlowRow(published, recording, centred=True, spacing=GAP))
        self.column.addStretch(3)
