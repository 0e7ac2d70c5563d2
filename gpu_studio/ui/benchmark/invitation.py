"""The Benchmark tab before the first run: what Run does, and what else you can do."""

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
    ("Is your graphics card faster than your processor, and from which size?", "title"),
    ("Press Run: each device does the same work, one after the other.", "muted"),
    (
        "You see every sample here as it arrives. The table below fills, and the line above names "
        "the faster device.",
        "muted",
    ),
)


class Invitation(Card):
    """A few words and two buttons.

    Signals:
        published_wanted(): the user wants to repeat a published experiment.
        recording_wanted(): the user wants to watch recorded runs.
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
            "Repeat a published experiment", self.published_wanted.emit,
            name="benchmark.view.published", tip="Compare this PC with the GT 1030 experiment",
        )  # fmt: skip
        recording = button(
            "Open a recording…", self.recording_wanted.emit,
            name="benchmark.view.recording", tip="Watch runs from another PC",
        )  # fmt: skip
        self.column.addSpacing(GAP)
        self.column.addWidget(FlowRow(published, recording, centred=True, spacing=GAP))
        self.column.addStretch(3)
