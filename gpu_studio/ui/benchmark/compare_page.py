"""The page Compare: this PC's standard run beside those in files from other PCs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout

from gpu_studio.core.benchmark.standard import STANDARD
from gpu_studio.core.benchmark.standard_words import (
    MOST_FILES,
    compared_works,
    headline,
    trust_of,
)
from gpu_studio.core.notice import Notice
from gpu_studio.model.pages import DEVICES
from gpu_studio.ui.benchmark.comparison_sheet import ComparisonSheet
from gpu_studio.ui.file_drop import FileDrop
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page_keys import saves
from gpu_studio.ui.parts import GAP, Card, Text, button, keep_room
from gpu_studio.ui.saving import ask_open_paths
from gpu_studio.ui.scroll_page import PageColumn
from gpu_studio.ui.standard_picture import standard_dialog
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from PySide6.QtGui import QShowEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.benchmark.standard_sides import StandardSides
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_KINDS = "Standard runs (*.png *.json *.jsonl);;All files (*)"
_EMPTY = (
    f"Compare up to {MOST_FILES} other PCs with this one. Add their files, or drop them on the "
    "window: pictures (PNG), recordings or JSON of a standard run."
)


class ComparePage(PageColumn):
    """The result in a sentence, a chip for each side, and a card for each work."""

    def __init__(
        self, studio: Studio, sides: StandardSides, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__("Comparison with other PCs", parent)
        self.setObjectName("benchmark.compare")
        self._studio, self._sides, self._theme = studio, sides, theme
        self._heading = Text("", "headline", name="benchmark.compare.heading", wraps=True)
        self._sentence = Text("", "muted", name="benchmark.compare.sentence", wraps=True)
        self._standard = Text(f"standard {STANDARD}", "muted", name="benchmark.compare.standard")
        self._trust = TrustChip(theme, name="benchmark.compare.trust")
        self._outcome = Text("", "muted", name="benchmark.compare.outcome", wraps=True)
        self._outcome.setMinimumHeight(self._outcome.fontMetrics().lineSpacing())
        keep_room(self._outcome)
        self._own = Card(name="benchmark.compare.own")
        self._own.column.addWidget(
            Text(
                "This PC has no standard run yet. Press “Measure this PC” on Devices: about a "
                "minute for each device. Then its figures stand here first.", wraps=True,
            )
        )  # fmt: skip
        self._own.column.addWidget(
            button("Go to Devices", self._go_to_devices, name="benchmark.compare.devices"),
            0, Qt.AlignmentFlag.AlignLeft,
        )  # fmt: skip
        self._sheet = ComparisonSheet(theme)
        self._sheet.removed.connect(sides.remove)
        self._sheet.device_chosen.connect(sides.choose)
        self._arrange()
        FileDrop(self).dropped.connect(self._sides.open_files)
        sides.changed.connect(self._show)
        sides.notified.connect(self._outcome.show_notice)
        self._outcome.show_notice(Notice())
        self._show()

    def _arrange(self) -> None:
        self._add = button(
            "Add file…", self._ask_files, name="benchmark.compare.add",
            tip="Compare with the standard run in a picture, a recording or JSON",
        )  # fmt: skip
        self._add.setIcon(icon("file", self._theme))
        self._share = button(
            "Share…", self._share_shown, name="benchmark.compare.share",
            tip="Save or copy what is shown as a picture that others can open, or as a table",
            primary=True,
        )  # fmt: skip
        self._share.setIcon(icon("export", self._theme))
        saves(self._share)
        head = QHBoxLayout()
        self.column.addLayout(head)
        head.setSpacing(GAP)
        head.addWidget(self._heading, 1)
        head.addWidget(self._add)
        head.addWidget(self._share)
        line = QHBoxLayout()
        self.column.addLayout(line)
        line.setSpacing(GAP)
        line.addWidget(self._sentence, 1)
        line.addWidget(self._standard)
        line.addWidget(self._trust, 0, Qt.AlignmentFlag.AlignVCenter)
        for part in (self._outcome, self._own, self._sheet):
            self.column.addWidget(part)
        self.column.addStretch(1)

    def _show(self) -> None:
        sides = self._sides.sides
        self._own.setVisible(not self._sides.has_own)
        self._sheet.setVisible(bool(sides))
        self._sheet.show_sides(sides)
        heading, sentence = headline(sides, compared_works(sides)) if sides else ("Compare", _EMPTY)
        self._heading.setText(heading)
        self._sentence.setText(sentence)
        self._trust.show_notice(trust_of(sides))
        self._add.setEnabled(self._sides.can_add)
        self._share.setEnabled(bool(sides))

    def showEvent(self, event: QShowEvent) -> None:
        """Read this PC's newest run again."""
        super().showEvent(event)
        self._sides.refresh()

    def _go_to_devices(self) -> None:
        self._studio.go_to(DEVICES)

    def _ask_files(self) -> None:
        self._sides.open_files(
            Path(path) for path in ask_open_paths(self.window(), "Add standard runs", _KINDS)
        )

    def _share_shown(self) -> None:
        standard_dialog(self._sides.sides, self._theme, self.window()).exec()
