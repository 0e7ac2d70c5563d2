"""One line above the tabs while PyTorch is missing or being installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QProgressBar

from gpu_studio.core.builds.progress import InstallStage
from gpu_studio.core.notice import Action, Tone, action_label
from gpu_studio.model import setup_words as words
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, button, letters

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.model.builds import Builds

_EDGE = 4
_STEPS = 1000
_BAR_LETTERS = 20


class SetupLine(Card):
    """Says on every tab what happens to PyTorch, and leads to its page.

    Args:
        builds: the builds.
        show_page: shows the page.
    """

    def __init__(self, builds: Builds, show_page: Callable[[], object]) -> None:
        super().__init__(name="setup.line")
        self.setAccessibleName("PyTorch")
        self._builds = builds
        self._sentence = Text("", "value", name="setup.line.sentence", wraps=True)
        self._bar = QProgressBar()
        self._bar.setObjectName("setup.line.progress")
        self._bar.setAccessibleName("Progress of the installation")
        self._bar.setTextVisible(False)
        self._bar.setRange(0, _STEPS)
        self._show = button("", show_page, name="setup.line.show")
        self.column.setContentsMargins(MARGIN, _EDGE, _EDGE, _EDGE)
        line = QHBoxLayout()
        line.setSpacing(GAP)
        self.column.addLayout(line)
        line.addWidget(self._sentence, 1, Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(self._bar)
        line.addWidget(self._show)
        self._is_wanted = True
        builds.changed.connect(self.update_all)
        self.update_all()

    def set_wanted(self, is_wanted: bool) -> None:
        """Say whether the line may be seen: the page says the same."""
        self._is_wanted = is_wanted
        self.update_all()

    def update_all(self) -> None:
        """Show the present state."""
        builds, progress = self._builds, self._builds.progress
        is_at_work = builds.is_at_work
        self._sentence.setText(words.line_sentence(builds))
        self._bar.setFixedWidth(letters(self, _BAR_LETTERS))
        is_paused = progress.stage is InstallStage.PAUSED
        self._bar.setVisible(is_at_work or (is_paused and words.has_share(progress)))
        self._bar.setValue(round(_STEPS * progress.fraction))
        is_begun = is_at_work or is_paused or builds.trouble is not None
        label = "Show" if is_begun or builds.has_engine else action_label(Action.SET_UP)
        self._show.setText(label)
        self._show.setAccessibleName(label)
        self.set_tone(Tone.FAILURE if builds.trouble is not None else Tone.PLAIN)
        self.setVisible(self._is_wanted and builds.needs_attention)
