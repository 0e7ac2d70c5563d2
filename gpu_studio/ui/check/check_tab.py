"""The Check tab: is this card sound? Seven stages, live sensors, one verdict, and a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtWidgets import (
    QBoxLayout,
    QGridLayout,
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.check.memory_map import memory_map
from gpu_studio.core.check.record_words import (
    LIMITS_TITLE,
    TRUST_TITLE,
    breakable,
    device_facts,
    finding_lines,
    record_facts,
    record_limits,
    record_trust,
)
from gpu_studio.core.check.stage_code import stage_code
from gpu_studio.core.check.steps_table import STEPS_NOTE, STEPS_TITLE, StepCell, steps_table
from gpu_studio.core.device_name import address_there
from gpu_studio.core.messages.check_messages import STAGE_NAMES
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.switcher.whole_snippet import complete
from gpu_studio.model.check import check_words
from gpu_studio.model.check.card_check import CardCheck
from gpu_studio.model.pages import CHECK
from gpu_studio.ui.check.check_curves import CheckCurves
from gpu_studio.ui.check.check_head import CheckHead, CheckHero
from gpu_studio.ui.check.memory_card import CheckFindings, MemoryCard
from gpu_studio.ui.check.record_document import save_record, show_to_buyer
from gpu_studio.ui.check.stage_list import StageList
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, button, laid_out_once, letters
from gpu_studio.ui.tabs import TabContents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QObject
    from PySide6.QtGui import QResizeEvent, QShowEvent

    from gpu_studio.core.check.steps_table import StepsTable
    from gpu_studio.core.messages.check_messages import StageName
    from gpu_studio.model.pages import Destination
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.parts import Role
    from gpu_studio.ui.theme import Theme

_WIDE_LETTERS = 96
_PAIR_LETTERS = 120  # of the whole page, for memory and findings side by side
_LOW_LINES = 44  # in a lower window, the curves would be below its end
_WORDS_MS = 200  # words that change faster cannot be read


class CheckTab(TabContents):
    """Choices and actions on top, the stages at the left, the result at the right."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self.check = CardCheck(studio, self)
        self._coded, self._began = STAGE_NAMES[0], ""
        self._head = CheckHead(self.check, theme)
        self._cut_off = CutOffCard(self.check)
        self._heading = Text("", "title", name="check.heading", wraps=True)
        self._stages = StageList(theme)
        self._side = Card(name="check.side")
        self._hero = CheckHero(studio, self.check, theme)
        self._sensors = CheckCurves(theme)
        self._memory = MemoryCard(theme)
        self._findings = CheckFindings(theme)
        self._plan = Card(name="check.plan")
        self._plan_rows = FactRows(name="check.plan.rows", accessible_name="What the stages test")
        self._facts = Card(name="check.record")
        self._fact_rows = FactRows(name="check.facts", accessible_name="Facts of the record")
        self._steps = StepsCard()
        self._limits = SentenceCard(LIMITS_TITLE, name="check.limits")
        self._trust = SentenceCard(TRUST_TITLE, name="check.trust")
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_WORDS_MS)
        self._soon.timeout.connect(self._show_check)
        self._arrange()
        self._connect()
        self._show_check()

    @property
    def is_up_to_date(self) -> bool:
        """Whether every change is shown."""
        return not self._soon.isActive()

    def showEvent(self, event: QShowEvent) -> None:
        """Show the present state, and follow the size of the place for the tab."""
        super().showEvent(event)
        self._show_check()
        room = self.parentWidget()
        if room is not None:
            room.installEventFilter(self)
        self._fold()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fold for a small window."""
        super().resizeEvent(event)
        self._fold()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Fold for a low window: the tab itself is as high as its contents."""
        if event.type() is QEvent.Type.Resize:
            self._fold()
        return super().eventFilter(watched, event)

    def _fold(self) -> None:
        """Put the stages beside the result if there is room, or above it."""
        is_wide = self.width() >= letters(self, _WIDE_LETTERS)
        directions = QBoxLayout.Direction
        self._halves.setDirection(directions.LeftToRight if is_wide else directions.TopToBottom)
        room = (self.parentWidget() or self).height()
        self._sensors.set_low(room < _LOW_LINES * self.fontMetrics().height())
        is_pair = self.width() >= letters(self, _PAIR_LETTERS)
        self._pair.setDirection(directions.LeftToRight if is_pair else directions.TopToBottom)

    def _arrange(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)
        column.setSpacing(GAP)
        column.addWidget(self._head)
        self._halves = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._halves.setSpacing(GAP)
        column.addLayout(self._halves, 1)
        self._side.column.addWidget(self._heading)
        self._side.column.addWidget(self._stages)
        self._side.column.addStretch(1)
        self._halves.addWidget(self._side, 2)
        result = QVBoxLayout()
        result.setSpacing(GAP)
        self._halves.addLayout(result, 5)
        self._plan.column.addWidget(Text("What the stages test", "title"))
        self._plan.column.addWidget(self._plan_rows)
        self._facts.column.addWidget(Text("Record of the check", "title"))
        self._facts.column.addWidget(self._fact_rows)
        result.addWidget(self._hero)
        result.addWidget(self._cut_off)  # it comes late: no control is below
        result.addWidget(self._plan)
        result.addWidget(self._sensors)
        self._pair = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._pair.setSpacing(GAP)
        result.addLayout(self._pair)
        self._pair.addWidget(self._memory, 1)
        self._pair.addWidget(self._findings, 1)
        result.addWidget(self._steps)
        result.addWidget(self._facts)
        result.addWidget(self._limits)
        result.addWidget(self._trust)
        result.addStretch(1)

    def _connect(self) -> None:
        check = self.check
        check.choices_changed.connect(self._show_choices)
        check.check_changed.connect(self._show_soon)
        check.notified.connect(self._hero.show_outcome)
        self._hero.save_wanted.connect(self._save)
        self._hero.share_wanted.connect(self._share)
        self._stages.chosen.connect(self._choose_stage)

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
        with laid_out_once(self):
            self._show_parts()

    def _show_parts(self) -> None:
        check = self.check
        self._hero.show_check()
        self._head.show_check(is_primary=not self._hero.has_primary)
        self._cut_off.show_check()
        self._heading.setText(check_words.heading(check))
        self._stages.show_stages(check_words.stage_rows(check), check_words.address(check))
        plan = check_words.plan_rows(check)
        self._plan_rows.show_rows(plan)
        self._plan.setVisible(bool(plan))
        record = check.record
        facts = record_facts(record) if record is not None else ()
        if check.is_barred and record is None and not check.phase.is_busy:
            facts = tuple(device_facts(check.known))  # what the record would have
        self._fact_rows.show_rows(facts)
        self._facts.setVisible(bool(facts))
        self._limits.show_sentences(record_limits(record) if record is not None else ())
        self._trust.show_sentences(record_trust(record) if record is not None else ())
        self._follow_stage()
        self._show_result()

    def _show_result(self) -> None:
        """Show curves, memory and findings of the check that runs, or of the record."""
        check = self.check
        is_busy = check.phase.is_busy
        source = check.record or (check.run if is_busy else None)
        self._sensors.show_chart(check.chart)
        self._steps.show_table(steps_table(source.load_steps if source is not None else ()))
        coverage = source.coverage if source is not None else None
        findings = tuple(source.findings) if source is not None else ()
        self._memory.show_memory(memory_map(coverage, findings, is_running=is_busy), coverage)
        self._findings.show_lines(finding_lines(findings, check_words.quoted(check)))

    def _choose_stage(self, name: StageName) -> None:
        """Show the code of a stage, until the next one begins."""
        self._coded = name
        self._stages.mark(name)
        self._show_code()

    def _follow_stage(self) -> None:
        """Show the code of a stage that began."""
        run = self.check.run
        present = run.present if run is not None and self.check.phase.is_busy else None
        name = present.name if present is not None else ""
        if name and name != self._began:
            self._coded = name
            self._stages.mark(None)
        self._began = name
        self._show_code()

    def _show_code(self) -> None:
        check, studio = self.check, self._studio
        pc = check.pc
        inventory = pc.sensors.inventory
        address = address_there(check_words.address(check))
        code = complete(
            stage_code(self._coded, address),
            device_count=len(inventory.cards) if inventory is not None else 0,
            visible_devices=pc.session.environment.visible_devices,
        )
        studio.snippets.show(code, CHECK)

    def go_to(self, destination: Destination) -> None:
        """Choose a device, or open the record of a check."""
        if destination.device:
            self.check.choose_device(destination.device)
        if destination.path is not None:
            self._hero.show_outcome(Notice())
            self.check.open_file(destination.path)

    def _save(self) -> None:
        record = self._hero.record
        if record is not None:
            self._hero.show_outcome(save_record(self.window(), record))

    def _share(self) -> None:
        record = self._hero.record
        if record is not None:
            self._hero.show_outcome(show_to_buyer(record))


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
        line = QHBoxLayout()
        self.column.addLayout(line)
        line.addWidget(self._text, 1)
        line.addWidget(FlowRow(self._resume, conclude))
        self.set_tone(Tone.AMBER)

    def show_check(self) -> None:
        """Show the last check that was cut off, if there is one."""
        cut_off = self._check.cut_off
        self.setVisible(cut_off is not None)
        if cut_off is not None:
            self._text.setText(check_words.cut_off_text(cut_off))
            self._resume.setVisible(cut_off.can_continue)
            self._resume.setEnabled(self._check.can_resume)


class StepsCard(Card):
    """The table of the load in steps; hidden without one."""

    def __init__(self) -> None:
        super().__init__(name="check.steps")
        self._cells: dict[tuple[int, int], Text] = {}
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(GAP)
        self.column.addWidget(Text(STEPS_TITLE, "title"))
        self.column.addLayout(self._grid)
        self.column.addWidget(Text(STEPS_NOTE, "muted", wraps=True))

    def show_table(self, table: StepsTable | None) -> None:
        """Show a table."""
        self.setVisible(table is not None)
        if table is None:
            return
        heads = [StepCell(head) for head in ("Period", *table.heads)]
        rows = [heads, *([StepCell(title), *cells] for title, cells in table.rows)]
        shown = {
            (row, column): cell
            for row, cells in enumerate(rows)
            for column, cell in enumerate(cells)
        }
        for place in {*shown, *self._cells}:
            self._show_cell(place, shown.get(place))

    def _show_cell(self, place: tuple[int, int], cell: StepCell | None) -> None:
        row, column = place
        if place not in self._cells:
            role: Role = "" if row and column else "muted"
            label = Text("", role, name=f"check.steps.{row}.{column}", wraps=bool(column))
            self._cells[place] = label
            self._grid.addWidget(label, row, column, Qt.AlignmentFlag.AlignTop)
            self._grid.setColumnStretch(column, int(column > 0))
        label = self._cells[place]
        label.setVisible(cell is not None)
        if cell is not None:
            label.setText(cell.text)
            label.set_tone(Tone.FAILURE if cell.is_bad else Tone.PLAIN)


class SentenceCard(Card):
    """Sentences under a title, a paragraph each; hidden without any."""

    def __init__(self, title: str, *, name: str) -> None:
        super().__init__(name=name)
        self._words = Text("", name=f"{name}.text", wraps=True)
        self.column.addWidget(Text(title, "title"))
        self.column.addWidget(self._words)

    def show_sentences(self, sentences: Sequence[str]) -> None:
        """Show these sentences."""
        self._words.setText("\n".join(f"• {sentence}" for sentence in sentences))
        self.setVisible(bool(sentences))


class FactRows(QWidget):
    """A row for each fact; long values wrap. Without facts it is hidden.

    The value of row 2 is the label ``NAME.2``.
    """

    def __init__(self, *, name: str, accessible_name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(accessible_name)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, GAP, 0, 0)
        self._grid.setHorizontalSpacing(2 * GAP)
        self._grid.setColumnStretch(1, 1)
        self._rows: list[tuple[Text, Text]] = []

    def show_rows(self, facts: Sequence[tuple[str, str]]) -> None:
        """Show these titles and values."""
        while len(self._rows) < len(facts):
            row = len(self._rows)
            name = f"{self.objectName()}.{row}"
            pair = (Text("", "muted"), Text("", name=name, wraps=True))
            for column, label in enumerate(pair):
                self._grid.addWidget(label, row, column, Qt.AlignmentFlag.AlignTop)
            self._rows.append(pair)
        for number, pair in enumerate(self._rows):
            is_shown = number < len(facts)
            for label, text in zip(pair, facts[number] if is_shown else ("", ""), strict=True):
                label.setText(breakable(text))
                label.setVisible(is_shown)
        self.setVisible(bool(facts))
