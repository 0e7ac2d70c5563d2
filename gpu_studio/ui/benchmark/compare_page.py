"""The page Compare: this PC's standard run beside those in files from other PCs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout

from gpu_studio.core.benchmark.standard_words import MOST_FILES
from gpu_studio.model.pages import DEVICES
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page_keys import saves
from gpu_studio.ui.parts import GAP, Card, Text, button
from gpu_studio.ui.saving import ask_open_paths
from gpu_studio.ui.scroll_page import PageColumn
from gpu_studio.ui.standard_page import StandardPage, standard_dialog
from gpu_studio.ui.window_files import FileDrop

if TYPE_CHECKING:
    from PySide6.QtGui import QShowEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.notice import Notice
    from gpu_studio.model.benchmark.standard_sides import StandardSides
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_KINDS = "Standard runs (*.png *.json *.jsonl);;All files (*)"
_EMPTY = (
    f"Compare up to {MOST_FILES} other PCs with this one. Add their files, or drop them on the "
    "window: pictures (PNG), recordings or JSON of a standard run."
)
_NO_OWN = (
    "This PC has no standard run yet. Press “Measure this PC” on Devices: about a minute for each "
    "device. Then its figures stand here first."
)


class ComparePage(PageColumn):
    """The standard runs side by side, and the buttons that add files and share them."""

    def __init__(
        self, studio: Studio, sides: StandardSides, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__("Comparison with other PCs", parent)
        self.setObjectName("benchmark.compare")
        self._studio, self._sides, self._theme = studio, sides, theme
        self._outcome = Text("", "muted", name="benchmark.compare.outcome", wraps=True)
        self._empty = Text(_EMPTY, "muted", name="benchmark.compare.empty", wraps=True)
        self._own = Card(name="benchmark.compare.own")
        self._own.column.addWidget(Text(_NO_OWN, wraps=True))
        self._own.column.addWidget(
            button("Go to Devices", self._go_to_devices, name="benchmark.compare.devices"),
            0, Qt.AlignmentFlag.AlignLeft,
        )  # fmt: skip
        self._add = button(
            "Add file…", self._ask_files, name="benchmark.compare.add",
            tip="Compare with the standard run in a picture, a recording or JSON",
        )  # fmt: skip
        self._add.setIcon(icon("file", theme))
        self._share = button(
            "Share…", self._share_shown, name="benchmark.compare.share",
            tip="Save or copy what is shown as a picture that others can open, or as a table",
            primary=True,
        )  # fmt: skip
        self._share.setIcon(icon("export", theme))
        saves(self._share)
        self._page = StandardPage(theme, has_controls=True)
        self._page.removed.connect(sides.remove)
        self._page.device_chosen.connect(sides.choose)
        head = QHBoxLayout()
        self.column.addLayout(head)
        head.setSpacing(GAP)
        head.addWidget(self._outcome, 1)
        head.addWidget(self._add)
        head.addWidget(self._share)
        for part in (self._own, self._empty, self._page):
            self.column.addWidget(part)
        self.column.addStretch(1)
        FileDrop(self).dropped.connect(sides.open_files)
        sides.changed.connect(self._show)
        sides.notified.connect(self._on_notified)
        self._show()

    def showEvent(self, event: QShowEvent) -> None:
        """Read this PC's newest run again."""
        super().showEvent(event)
        self._sides.refresh()

    def _show(self) -> None:
        sides = self._sides.sides
        self._own.setVisible(not self._sides.has_own)
        self._empty.setVisible(not sides)
        self._page.show_sides(sides)
        self._add.setEnabled(self._sides.can_add)
        self._share.setEnabled(bool(sides))

    def _on_notified(self, notice: Notice) -> None:
        self._outcome.setText(notice.sentence)
        self._outcome.set_tone(notice.tone)

    def _go_to_devices(self) -> None:
        self._studio.go_to(DEVICES)

    def _ask_files(self) -> None:
        self._sides.open_files(
            Path(path) for path in ask_open_paths(self.window(), "Add standard runs", _KINDS)
        )

    def _share_shown(self) -> None:
        standard_dialog(self._sides.sides, self._theme, self.window()).exec()
