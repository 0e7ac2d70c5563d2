"""Recordings: open a file, see its origin, and watch its runs as if they ran now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal

from gpu_studio.core.program_form import typed
from gpu_studio.model.benchmark.recording import AT_ONCE, OWN_PACE, RECORDING_ENDING
from gpu_studio.ui.eliding import ComboBox
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import Card, Text, button
from gpu_studio.ui.saving import ask_open_path

if TYPE_CHECKING:
    from PySide6.QtWidgets import QComboBox, QWidget

    from gpu_studio.model.benchmark.benchmark_history import BenchmarkHistory
    from gpu_studio.model.benchmark.recording import RecordingPlayer
    from gpu_studio.ui.theme import Theme

_OPEN = "Open a recording…"
_PACES = (
    ("Original speed", OWN_PACE),
    ("10 × faster", 10 * OWN_PACE),
    ("Skip to the end", AT_ONCE),
)
_ABOUT = (
    "A recording contains every sample of a run, replayable in order. Make one with Export or "
    "“{command}”. Its numbers are always labeled as recorded, with the device."
)
_KINDS = f"GPU Studio recording (*{RECORDING_ENDING});;All files (*)"


class RecordingCard(Card):
    """One recording at a time; its runs appear in the live plot and in the results table.

    Signals:
        kept(): its results are being added to the kept runs.
    """

    kept = Signal()

    def __init__(
        self,
        player: RecordingPlayer,
        history: BenchmarkHistory,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent, name="benchmark.recording")
        self._player, self._history = player, history
        self._about = Text(
            _ABOUT.format(command=typed("gpu-studio bench --record FILE")), "muted",
            name="benchmark.recording.about", wraps=True,
        )  # fmt: skip
        self._sentences = Text("", name="benchmark.recording.sentences", wraps=True)
        self._outcome = Text("", "failure", name="benchmark.recording.outcome", wraps=True)
        self.open_button = button(
            _OPEN, self.choose_file, name="benchmark.recording.open",
            tip="Watch runs from a file; nothing in the file is executed",
        )  # fmt: skip
        self.open_button.setIcon(icon("file", theme))
        self.open_button.setMinimumWidth(self.open_button.sizeHint().width())  # also as it reads
        self._pace = _pace_combo()
        self._play = button(
            "Play", self._play_it, name="benchmark.recording.play",
            tip="Play all its runs in the live plot; Esc stops",
        )  # fmt: skip
        self._play.setIcon(icon("play", theme))
        self._keep = button(
            "Keep the results", self._keep_it, name="benchmark.recording.keep",
            tip="Add its results to the kept runs, labeled, so that you can compare with them",
        )  # fmt: skip
        self.column.addWidget(FlowRow(self.open_button, self._keep))
        self.column.addWidget(FlowRow(self._play, self._pace))
        self.column.addWidget(self._about)
        self.column.addWidget(self._sentences)
        self.column.addWidget(self._outcome)
        self.column.addStretch(1)
        player.changed.connect(self._show)
        player.notified.connect(self._outcome.show_notice)
        self._outcome.hide()
        self._show()

    def choose_file(self) -> None:
        """Ask for a file and open it."""
        path = ask_open_path(self.window(), "Open a recording", _KINDS)
        if path:
            self._player.open_file(Path(path))

    def _play_it(self) -> None:
        self._player.play(self._pace.currentData())

    def _keep_it(self) -> None:
        if self._player.path is not None:
            self._history.import_file(self._player.path)
            self.kept.emit()

    def _show(self) -> None:
        sentences = self._player.sentences
        self._sentences.setText("\n".join(sentences))
        self._sentences.setVisible(bool(sentences))
        self._about.setVisible(not sentences)
        self.open_button.setText("Reading…" if self._player.is_reading else _OPEN)
        self.open_button.setEnabled(not self._player.is_reading)
        for part in (self._play, self._pace):
            part.setEnabled(self._player.can_play)
        self._keep.setEnabled(bool(sentences))


def _pace_combo() -> QComboBox:
    combo = ComboBox()
    combo.setObjectName("benchmark.recording.pace")
    combo.setAccessibleName("Playback speed")
    for title, speed in _PACES:
        combo.addItem(title, speed)
    return combo
