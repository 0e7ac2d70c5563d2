"""What the plot in front shows, in words over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.model.tool_tip import rich_tip
from gpu_studio.ui.elided_text import ElidedText

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

_INDENT = 8


class Caption(ElidedText):
    """Sentences, or in one line the first words of them, with the whole in a tool tip."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("", "muted", name="benchmark.plot.caption", wraps=True)
        self.setParent(parent)
        self.setContentsMargins(_INDENT, 0, 0, 0)

    def say(self, sentences: str, *, in_one_line: bool) -> None:
        """Show sentences; in one line where the plot needs the room."""
        # The uncertainty of a crossing stands behind it, and is marked in the plot as well.
        first = sentences.partition(". ")[0].partition(" (")[0]
        is_cut = in_one_line and first != sentences
        self.setText(f"{first} …" if is_cut else sentences)
        self.setWordWrap(not in_one_line)
        self.setToolTip(rich_tip([sentences]) if in_one_line else "")
