"""The Benchmark tab before the first run: what you can do besides a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, button

if TYPE_CHECKING:
    from gpu_studio.ui.theme import Theme


class Invitation(QWidget):
    """Two buttons.

    Signals:
        published_wanted(): the user wants to repeat a published experiment.
        recording_wanted(): the user wants to watch recorded runs.
    """

    published_wanted = Signal()
    recording_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        published = button(
            "Repeat a published experiment", self.published_wanted.emit,
            name="benchmark.view.published", tip="Compare this PC with the GT 1030 experiment",
        )  # fmt: skip
        recording = button(
            "Open a recording…", self.recording_wanted.emit,
            name="benchmark.view.recording", tip="Watch runs from another PC",
        )  # fmt: skip
        recording.setIcon(icon("file", theme))
        published.setIcon(icon("refresh", theme))
        self.setProperty("page", True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(FlowRow(published, recording, spacing=GAP))
        column.addStretch(1)
