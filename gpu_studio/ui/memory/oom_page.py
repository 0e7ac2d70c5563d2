"""The page for out-of-memory experiments: choices on the left, results on the right."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gpu_studio.core.memory.oom_text import read_oom_text
from gpu_studio.core.memory.presets import PRESETS
from gpu_studio.core.memory.tank import tank_of_error
from gpu_studio.model.memory.oom_experiment import EXPANDABLE
from gpu_studio.ui.eliding import RoomText
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.memory.oom_panel import OomPanel
from gpu_studio.ui.memory.tank import TankBar
from gpu_studio.ui.parts import (
    GAP,
    Card,
    Text,
    button,
    laid_out_once,
    letters,
)
from gpu_studio.ui.saving import ask_save_path
from gpu_studio.ui.scroll_page import PageColumn

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.memory.tank import Tank
    from gpu_studio.core.notice import Notice
    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.model.memory.oom_experiment import LabResult
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_PANEL_LETTERS = 46
_INVITATION = (
    "Choose an experiment and press Run. It runs in a separate engine within a budget, so it "
    "cannot break anything else. You will see the real error, its numbers and what they mean."
)
_SNAPSHOT = "A saved snapshot opens in the segment map here, and at pytorch.org/memory_viz."
_DEFAULT = "PyTorch's default"


class OomPage(QWidget):
    """Runs experiments and shows their results side by side.

    Signals:
        segments_wanted(): the user wants to see the segments of that moment.
        history_wanted(Path): the user wants to see the recorded history on another card.
    """

    segments_wanted = Signal()
    history_wanted = Signal(object)

    def __init__(
        self, studio: Studio, model: MemoryModel, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("memory.lab")
        self._model, self._experiment = model, model.experiment
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(GAP)
        self.panel = panel = OomPanel(studio, model, self)
        panel.setMaximumWidth(letters(self, _PANEL_LETTERS))
        line.addWidget(panel, 2, Qt.AlignmentFlag.AlignTop)
        page = PageColumn("Results of the experiment")
        line.addWidget(page, 3)
        self._invitation = self._make_invitation()
        page.column.addWidget(self._invitation)
        self._results = LabResults(theme, model.reached)
        self._actions = self._make_actions()
        page.column.addWidget(self._actions)
        page.column.addWidget(self._results)
        page.column.addStretch(1)
        self._experiment.outcome_changed.connect(self._show_outcome)
        self._experiment.results_changed.connect(self._show_results)
        self._experiment.state_changed.connect(self._show_actions)
        self._show_actions()

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _make_invitation(self) -> Card:
        card = Card(name="memory.oom.invitation")
        card.column.addWidget(Text("Break memory on purpose", "title"))
        card.column.addWidget(Text(_INVITATION, "muted", wraps=True))
        for preset in PRESETS:
            card.column.addSpacing(6)
            card.column.addWidget(Text(preset.title, "value"))
            card.column.addWidget(Text(preset.sentence, "muted", wraps=True))
        return card

    def _make_actions(self) -> QWidget:
        self._compare = button(
            "Try with expandable_segments", self._experiment.compare, name="memory.oom.compare",
            tip=(
                "Run the same in a new engine with PYTORCH_CUDA_ALLOC_CONF="
                "expandable_segments:True, side by side. Linux only: PyTorch ignores it on Windows"
            ),
        )  # fmt: skip
        self._segments = button(
            "Show segments", self._want_segments, name="memory.oom.segments",
            tip="Show the segment map of the moment when it failed",
        )  # fmt: skip
        self._save = button(
            "Save snapshot…", self._ask_place, name="memory.snapshot.save",
            tip="Save the recorded history with all its segments",
        )  # fmt: skip
        self._what_if = button(
            "What if…", self._want_history, name="memory.oom.what_if",
            tip="Replay the recorded history on a card of another size, or with other settings",
        )  # fmt: skip
        self._saved = RoomText(_SNAPSHOT, "muted", name="memory.snapshot.saved", lines=1)
        actions = QWidget()
        column = QVBoxLayout(actions)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(FlowRow(self._compare, self._segments, self._save, self._what_if))
        column.addWidget(self._saved)
        return actions

    # ── showing ──────────────────────────────────────────────────────────────────────────────

    def _want_segments(self) -> None:
        self.segments_wanted.emit()

    def _want_history(self) -> None:
        self.history_wanted.emit(Path(self._recorded()))

    def _show_outcome(self, outcome: Notice) -> None:
        request = self._experiment.request
        if request is None:  # it has ended: the results show it
            return
        number = len(self._experiment.results)
        is_modelled = request.device.startswith("model:")
        with laid_out_once(self):
            self._invitation.hide()
            self._results.show_now(
                outcome, number, conf=EXPANDABLE if number else "", is_modelled=is_modelled
            )

    def _show_results(self) -> None:
        with laid_out_once(self):
            self._saved.setText(_SNAPSHOT)
            self._results.show_results(self._experiment.results)
            self._show_actions()

    def _show_actions(self) -> None:
        with laid_out_once(self):
            results = self._experiment.results
            is_idle = self._experiment.request is None
            self._actions.setVisible(bool(results))
            self._compare.setVisible(bool(results))
            self._compare.setEnabled(self._experiment.can_compare)
            last = results[-1] if results else None
            self._segments.setVisible(last is not None and last.segments is not None)
            self._segments.setEnabled(is_idle)
            for recorded in (self._save, self._what_if):
                recorded.setVisible(bool(self._recorded()))
                recorded.setEnabled(is_idle)
            self._saved.setVisible(bool(self._recorded()))

    def _recorded(self) -> str:
        paths = [
            result.finished.snapshot_path
            for result in self._experiment.results
            if result.finished is not None and result.finished.snapshot_path
        ]
        return paths[0] if paths else ""

    def _ask_place(self) -> None:
        path = ask_save_path(self, "Save the snapshot", "snapshot.pickle", "Snapshots (*.pickle)")
        if path:
            self.save_snapshot(path)

    def save_snapshot(self, path: str) -> None:
        """Copy the snapshot to the chosen file."""
        try:
            shutil.copyfile(self._recorded(), path)
        except OSError as error:
            self._saved.setText(f"Could not save it: {error.strerror or error}.")
        else:
            self._saved.setText(f"Saved as {path}")


class ResultCard(Card):
    """One outcome: its name, what happened, the memory at that moment, and what to try next.

    Args:
        theme: gives the bar's colors.
        name: the prefix of the object names: ``NAME.headline`` and so on.
    """

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, name=f"{name}.result")
        self._conf = Text(role="section", name=f"{name}.conf", wraps=True)
        self._headline = Text(role="title", name=f"{name}.headline", wraps=True)
        self._outcome = Text(name=f"{name}.outcome", wraps=True)
        self._tank = TankBar(theme, name=f"{name}.tank")
        self._tank.part_described.connect(self._describe_part)
        self._tank_words = Text(role="muted", name=f"{name}.tank_words", wraps=True)
        self._stages = Text(name=f"{name}.stages", wraps=True)
        self._next_step = Text(role="muted", name=f"{name}.next", wraps=True)
        for widget in (
            self._conf, self._headline, self._outcome, self._stages, self._tank, self._tank_words,
            self._next_step,
        ):  # fmt: skip
            self.column.addWidget(widget)
        self.column.addStretch(1)
        self._words = ""

    def show_outcome(self, outcome: Notice, *, conf: str, is_modelled: bool) -> None:
        """Show the current outcome, also during the run."""
        modelled = " · simulated" if is_modelled else ""
        self._conf.setText(f"{conf or _DEFAULT}{modelled}".upper())
        self._headline.setText(outcome.sentence)
        self._outcome.setText(outcome.detail)
        self._next_step.setText(f"Try next: {outcome.next_step}" if outcome.next_step else "")
        self._next_step.setVisible(bool(outcome.next_step))
        self.set_tone(outcome.tone)
        self.setAccessibleDescription(
            f"{outcome.sentence} {outcome.detail} {outcome.next_step}".strip()
        )
        self._show_tank(None, "")
        self._stages.hide()

    def show_result(self, result: LabResult, tank: Tank | None) -> None:
        """Show how it ended, with the memory of that moment."""
        finished = result.finished
        self.show_outcome(
            result.outcome, conf=result.conf,
            is_modelled=finished is not None and finished.modelled,
        )  # fmt: skip
        if finished is None:
            return
        stages = [f"• {stage.sentence}" for stage in finished.stages]
        self._stages.setText("\n".join(stages))
        self._stages.setVisible(bool(stages))
        read = tank_of_error(read_oom_text(finished.error_text))
        if read is None:
            self._show_tank(tank, "Memory at the end, before everything was freed.")
        elif tank is not None and _is_the_errors(result):
            self._show_tank(tank, "Memory when it failed, exact to the byte.")
        else:
            self._show_tank(read, "Memory when it failed, from the error's text, to two decimals.")

    def _show_tank(self, tank: Tank | None, words: str) -> None:
        self._words = words
        self._tank.setVisible(tank is not None)
        self._tank.show_tank(tank)
        self._tank_words.setText(words)
        self._tank_words.setVisible(tank is not None)

    def _describe_part(self, words: str) -> None:
        self._tank_words.setText(words or self._words)


class LabResults(QWidget):
    """One result, or two side by side."""

    def __init__(
        self,
        theme: Theme,
        tank_reached: Callable[[LabResult], Tank | None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._tank_reached = tank_reached
        self._shown: tuple[LabResult, ...] = ()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GAP)
        side_by_side = QHBoxLayout()
        side_by_side.setSpacing(GAP)
        column.addLayout(side_by_side)
        self.first = ResultCard(theme, "memory.oom")
        self.second = ResultCard(theme, "memory.oom.other")
        side_by_side.addWidget(self.first, 1)
        side_by_side.addWidget(self.second, 1)
        self.first.hide()
        self.second.hide()

    def show_now(self, outcome: Notice, number: int, *, conf: str, is_modelled: bool) -> None:
        """Show the progress of the run that follows this many results."""
        card = self.second if number else self.first
        card.show_outcome(outcome, conf=conf, is_modelled=is_modelled)
        card.show()

    def show_results(self, results: tuple[LabResult, ...]) -> None:
        """Show the finished results."""
        cards = (self.first, self.second)
        for card, result in zip(cards, results, strict=False):
            # The other users of the card are shown as of the experiment's end and stay that way.
            if not any(result is shown for shown in self._shown):
                card.show_result(result, self._tank_reached(result))
        self._shown = results
        for index, card in enumerate(cards):
            card.setVisible(index < len(results))


def _is_the_errors(result: LabResult) -> bool:
    """Return whether the counters were read before anything changed after the error."""
    read, finished = result.reached, result.finished
    if read is None or finished is None:
        return False
    counted = (read.free_bytes, read.total_bytes)
    return counted == (finished.free_bytes, finished.total_bytes)
