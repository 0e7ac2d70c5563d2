"""The stages of a check: a row each with its state, what it tested, and its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QProgressBar, QVBoxLayout, QWidget

from gpu_studio.core.check.record_words import VERDICT_WORDS, breakable
from gpu_studio.core.check.stages import STAGES, stage_words
from gpu_studio.core.notice import Tone
from gpu_studio.model.text_rows import plain_tip
from gpu_studio.ui.parts import GAP, Text, rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.check_messages import StageName
    from gpu_studio.model.check.check_words import StageWords

_STEPS = 1000  # of a progress bar
# The sign of a state, its tone, and its name.
_STATES = {
    "waiting": ("○", Tone.QUIET, "Waiting"),
    "running": ("●", Tone.PLAIN, "Running"),
    "passed": ("✓", Tone.GOOD, VERDICT_WORDS["passed"]),
    "failed": ("✗", Tone.FAILURE, VERDICT_WORDS["failed"]),
    "inconclusive": ("!", Tone.AMBER, VERDICT_WORDS["inconclusive"]),
    "partial": ("!", Tone.AMBER, VERDICT_WORDS["partial"]),
    "skipped": ("–", Tone.QUIET, VERDICT_WORDS["skipped"]),
}


class StageList(QWidget):
    """The rows; one of a stage that is not part of the check is hidden."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("check.stages")
        self.setAccessibleName("Stages of the check")
        self.rows = {stage.name: StageRow(stage.name) for stage in STAGES}
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for row in self.rows.values():
            column.addWidget(row)

    def show_stages(self, stages: Sequence[StageWords], address: str) -> None:
        """Show the stages of a check of a device."""
        by_name = {words.name: words for words in stages}
        for name, row in self.rows.items():
            row.setVisible(name in by_name)
            if name in by_name:
                row.show_words(by_name[name], address)


class StageRow(QFrame):
    """One stage; its tool tip says what it catches and what it cannot find.

    Attributes:
        state: ``waiting``, ``running`` or a verdict.
    """

    def __init__(self, name: StageName) -> None:
        super().__init__()
        self._name, self.state = name, "waiting"
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setObjectName(f"check.stage.{name}")
        self._sign = Text("", "value")
        self._sign.setFixedWidth(2 * self.fontMetrics().averageCharWidth() + GAP)
        self._title = Text("", "value", name=f"check.stage.{name}.title")
        self._time = Text("", "muted", name=f"check.stage.{name}.time")
        self._detail = Text("", "muted", name=f"check.stage.{name}.tested", wraps=True)
        self._bar = QProgressBar()
        self._bar.setObjectName(f"check.stage.{name}.progress")
        self._bar.setRange(0, _STEPS)
        self._bar.setTextVisible(False)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 7, 0, 0)
        grid.setColumnStretch(1, 1)
        grid.addWidget(self._sign, 0, 0)
        grid.addWidget(self._title, 0, 1)
        grid.addWidget(self._time, 0, 2)
        grid.addWidget(self._detail, 1, 1, 1, 2)
        grid.addWidget(self._bar, 2, 1, 1, 2)
        grid.addWidget(rule(), 3, 0, 1, 3)

    def show_words(self, words: StageWords, address: str) -> None:
        """Show the stage's present state, with the words for a device."""
        self.state = words.state
        sign, tone, state = _STATES[words.state]
        stage = stage_words(self._name, address)
        self.setToolTip(
            plain_tip(f"{stage.tests}\nCatches: {stage.catches}\nCannot find: {stage.misses}")
        )
        self._sign.setText(sign)
        self._sign.set_tone(tone)
        self._title.setText(words.title)
        self._title.set_tone(Tone.QUIET if tone is Tone.QUIET else Tone.PLAIN)
        self._time.setText(words.time)
        self._detail.setText(breakable(words.detail))
        self._detail.set_tone(Tone.FAILURE if tone is Tone.FAILURE else Tone.PLAIN)
        self._detail.setVisible(bool(words.detail))
        self._bar.setAccessibleName(f"Progress of {words.title}")
        self._bar.setVisible(words.state == "running")
        self._bar.setValue(round(_STEPS * words.fraction))
        self.setAccessibleName(f"{words.title}: {state}")
        self.setAccessibleDescription(words.detail)
