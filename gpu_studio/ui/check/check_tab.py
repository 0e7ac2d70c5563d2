"""The Check tab: is this card sound? Five stages, live sensors, one verdict, and a record.

Its cards are rows of words, and a check that was cut off. A stage is a row with its state, what it
tested, and its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QBoxLayout, QFrame, QGridLayout, QProgressBar, QVBoxLayout, QWidget

from gpu_studio.core.check.check_chart import record_chart, run_chart
from gpu_studio.core.check.check_code import check_code
from gpu_studio.core.check.record_words import VERDICT_WORDS, breakable
from gpu_studio.core.check.stages import STAGES, stage_words
from gpu_studio.core.device_name import address_there
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.switcher.whole_snippet import complete
from gpu_studio.model.check import check_words
from gpu_studio.model.check.card_check import CardCheck
from gpu_studio.model.pages import CHECK
from gpu_studio.model.text_rows import plain_tip
from gpu_studio.ui.check.check_curves import CheckCurves
from gpu_studio.ui.check.check_head import CheckHead, CheckHero
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, button, laid_out_once, letters, rule
from gpu_studio.ui.tabs import TabContents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QResizeEvent, QShowEvent

    from gpu_studio.core.check.record_words import RecordPart
    from gpu_studio.core.messages.check_messages import StageName
    from gpu_studio.model.check.check_words import StageWords
    from gpu_studio.model.pages import Destination
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme


class PartCard(Card):
    """A part of a record; hidden without any rows. The words of row 2 are the label ``NAME.2``."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self._title = Text("", "title")
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(2 * GAP)
        self._grid.setColumnStretch(1, 1)
        self.column.addWidget(self._title)
        self.column.addLayout(self._grid)
        self._labels: list[tuple[Text, Text]] = []

    def show_part(self, part: RecordPart | None) -> None:
        """Show a part; None for nothing to show."""
        rows = part.rows if part is not None else ()
        self.setVisible(bool(rows))
        self._title.setText(part.title if part is not None else "")
        while len(self._labels) < len(rows):
            self._add_row()
        for number, labels in enumerate(self._labels):
            for label in labels:
                label.setVisible(number < len(rows))
        for (title, words), row in zip(self._labels, rows, strict=False):
            title.setText(breakable(row.title) or "•")
            words.setText(breakable(row.words))
            words.set_tone(row.tone)
            words.setToolTip(plain_tip("\n".join(row.details)) if row.details else "")

    def _add_row(self) -> None:
        number = len(self._labels)
        pair = Text("", "muted"), Text("", name=f"{self.objectName()}.{number}", wraps=True)
        for column, label in enumerate(pair):
            self._grid.addWidget(label, number, column, Qt.AlignmentFlag.AlignTop)
        self._labels.append(pair)


class CutOffCard(Card):
    """A check that was cut off by a crash or a restart: continue it, or keep it as a result."""

    def __init__(self, check: CardCheck) -> None:
        super().__init__(name="check.cut_off")
        self._check = check
        self._text = Text("", "value", name="check.cut_off.text", wraps=True)
        self._resume = button(
            "Continue check", check.resume, name="check.resume",
            tip="Run the stages that are not finished; the interruption stays in the record",
        )  # fmt: skip
        conclude = button(
            "Keep as result", check.conclude, name="check.conclude",
            tip="End the check with the results so far",
        )  # fmt: skip
        self.column.addWidget(self._text)
        self.column.addWidget(FlowRow(self._resume, conclude))
        self.set_tone(Tone.AMBER)

    def show_check(self) -> None:
        """Show the last check that was cut off, if there is one."""
        cut_off = self._check.cut_off
        self.setVisible(cut_off is not None)
        if cut_off is not None:
            self._text.setText(check_words.cut_off_text(cut_off))
            self._resume.setVisible(cut_off.can_continue)
            self._resume.setEnabled(self._check.can_resume)


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


_PARTS = ("plan", "findings", "facts", "limits", "trust")
_WIDE_LETTERS = 96
_WORDS_MS = 200  # words that change faster cannot be read


class CheckTab(TabContents):
    """Choices and actions on top, the stages at the left, the result at the right."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self.check = CardCheck(studio, self)
        self._head = CheckHead(self.check, theme)
        self._stages = StageList()
        self._hero = CheckHero(self.check, theme)
        self._cut_off = CutOffCard(self.check)
        self._curves = CheckCurves(theme)
        self._parts = {name: PartCard(f"check.{name}") for name in _PARTS}
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_WORDS_MS)
        self._soon.timeout.connect(self._show_check)
        self._arrange()
        self.check.choices_changed.connect(self._show_choices)
        self.check.check_changed.connect(self._show_soon)
        self.check.notified.connect(self._head.outcome.show_notice)
        self._show_check()

    @property
    def is_up_to_date(self) -> bool:
        """Whether every change is shown."""
        return not self._soon.isActive()

    def showEvent(self, event: QShowEvent) -> None:
        """Show the present state."""
        super().showEvent(event)
        self._show_check()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the stages beside the result if there is room, or above it."""
        super().resizeEvent(event)
        is_wide = self.width() >= letters(self, _WIDE_LETTERS)
        directions = QBoxLayout.Direction
        self._halves.setDirection(directions.LeftToRight if is_wide else directions.TopToBottom)

    def _arrange(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)
        column.setSpacing(GAP)
        column.addWidget(self._head)
        column.addWidget(self._head.outcome)
        self._halves = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._halves.setSpacing(GAP)
        column.addLayout(self._halves, 1)
        side = Card(name="check.side")
        side.column.addWidget(Text("Stages", "title"))
        side.column.addWidget(self._stages)
        side.column.addStretch(1)
        self._halves.addWidget(side, 2)
        result = QVBoxLayout()
        result.setSpacing(GAP)
        self._halves.addLayout(result, 5)
        for card in (self._hero, self._cut_off, self._curves, *self._parts.values()):
            result.addWidget(card)
        result.addStretch(1)

    def _show_choices(self) -> None:
        """Show the choices at once, unless the tab is hidden: `showEvent` shows them then."""
        if self.isVisible():
            self._show_check()

    def _show_soon(self) -> None:
        """Show the changes of the next moment together."""
        if not self._soon.isActive():
            self._soon.start()

    def _show_check(self) -> None:
        self._soon.stop()
        check = self.check
        with laid_out_once(self):
            self._head.show_check()
            self._hero.show_check()
            self._cut_off.show_check()
            self._stages.show_stages(check_words.stage_rows(check), check_words.address(check))
            run, record = check_words.running(check), check.record
            chart = run_chart(run) if run is not None else record_chart(record) if record else None
            self._curves.show_chart(chart)
            parts = {part.name: part for part in check_words.parts(check)}
            for name, card in self._parts.items():
                card.show_part(parts.get(name))
        self._show_code()

    def _show_code(self) -> None:
        pc = self.check.pc
        inventory = pc.sensors.inventory
        code = complete(
            check_code(address_there(check_words.address(self.check))),
            device_count=len(inventory.cards) if inventory is not None else 0,
            visible_devices=pc.session.environment.visible_devices,
        )
        self._studio.snippets.show(code, CHECK)

    def go_to(self, destination: Destination) -> None:
        """Choose a device, or open the record of a check."""
        if destination.device:
            self.check.choose_device(destination.device)
        if destination.path is not None:
            self._head.outcome.show_notice(Notice())
            self.check.open_file(destination.path)
