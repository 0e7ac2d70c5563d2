"""Which programs use a card's memory: one bar each, the largest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QHBoxLayout

from gpu_studio.core.devices.program_memory import memory_by_program
from gpu_studio.core.units import format_bytes
from gpu_studio.ui.parts import GAP, Card, Text
from gpu_studio.ui.share_bars import Bar, BarPart, ShareBars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.devices.devices import GpuProcess
    from gpu_studio.ui.theme import Theme

_MOST_BARS = 3


class ProgramMemory(Card):
    """The programs with the most GPU memory; hidden if the driver reports no memory."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(name="devices.programs.card")
        self._total = Text("", "muted", name="devices.programs.total")
        self._bars = ShareBars(theme, name="devices.programs")
        self._bars.setAccessibleName("GPU memory by program")
        head = QHBoxLayout()
        head.setSpacing(GAP)
        self.column.addLayout(head)
        head.addWidget(Text("Programs using VRAM", "value"), 1)
        head.addWidget(self._total)
        self.column.addWidget(self._bars)
        self.hide()

    def show_programs(self, processes: Sequence[GpuProcess], total: str, role: str) -> None:
        """Show the memory by program.

        Args:
            processes: all processes on the card.
            total: the memory used on the whole card, in words.
            role: the card's color.
        """
        shown = memory_by_program(processes, _MOST_BARS)
        self._bars.show_bars(
            [
                Bar(name, (BarPart("", float(size), role),), format_bytes(size))
                for name, size in shown
            ]
        )
        self._total.setText(total)
        self.setVisible(bool(shown))
