"""What experiments of the memory lab came to: one, or two side by side, and their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QHBoxLayout, QHeaderView, QVBoxLayout, QWidget

from gpu_studio.core.memory.oom_text import read_oom_text
from gpu_studio.core.memory.tank import tank_of_error
from gpu_studio.core.units import format_bytes
from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.memory.tank import TankBar
from gpu_studio.ui.memory.whole_rows import show_whole_rows
from gpu_studio.ui.parts import GAP, Card, Text, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.memory.oom_words import Outcome
    from gpu_studio.core.memory.tank import Tank
    from gpu_studio.model.memory.oom_experiment import LabResult
    from gpu_studio.ui.theme import Theme

_ROW_HEIGHT = 28
_DEFAULT = "PyTorch's default"


class ResultCard(Card):
    """One outcome: its name, what happened, the tank at that moment, and what to try next.

    Args:
        theme: gives the tank's colours.
        name: the object names' start: ``NAME.headline`` and so on.
    """

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, name=f"{name}.result")
        self._conf = Text(role="section", name=f"{name}.conf", wraps=True)
        self._headline = Text(role="title", name=f"{name}.headline", wraps=True)
        self._outcome = Text(name=f"{name}.outcome", wraps=True)
        self._tank = TankBar(theme, name=f"{name}.tank")
        self._tank.part_told.connect(self._tell_part)
        self._told = Text(role="muted", name=f"{name}.tank_words", wraps=True)
        self._stages = Text(name=f"{name}.stages", wraps=True)
        self._next_step = Text(role="muted", name=f"{name}.next", wraps=True)
        for widget in (
            self._conf, self._headline, self._outcome, self._stages, self._tank, self._told,
            self._next_step,
        ):  # fmt: skip
            self.column.addWidget(widget)
        self.column.addStretch(1)
        self._words = ""

    def show_outcome(self, outcome: Outcome, *, conf: str, is_modelled: bool) -> None:
        """Say what there is to say now, while it runs as well."""
        modelled = " · modelled" if is_modelled else ""
        self._conf.setText(f"{conf or _DEFAULT}{modelled}".upper())
        self._headline.setText(outcome.headline)
        self._outcome.setText(outcome.sentence)
        self._next_step.setText(f"Try next: {outcome.next_step}" if outcome.next_step else "")
        self._next_step.setVisible(bool(outcome.next_step))
        self.set_tone(outcome.tone)
        self.setAccessibleDescription(
            f"{outcome.headline} {outcome.sentence} {outcome.next_step}".strip()
        )
        self._show_tank(None, "")
        self._stages.hide()

    def show_result(self, result: LabResult, tank: Tank | None) -> None:
        """Say how it ended, with the tank of that moment."""
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
        told = tank_of_error(read_oom_text(finished.error_text))
        if told is None:
            self._show_tank(tank, "The tank at the end, before all was freed.")
        elif tank is not None and _is_the_errors(result):
            self._show_tank(tank, "The tank of the error: its own numbers, to the byte.")
        else:
            self._show_tank(told, "The tank as the error's text tells it, to two decimals.")

    def _show_tank(self, tank: Tank | None, words: str) -> None:
        self._words = words
        self._tank.setVisible(tank is not None)
        self._tank.show_tank(tank)
        self._told.setText(words)
        self._told.setVisible(tank is not None)

    def _tell_part(self, told: str) -> None:
        self._told.setText(told or self._words)


class LabResults(QWidget):
    """One result or two beside each other; `numbers` is the card with the table of both."""

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
        self.numbers = Card(name="memory.oom.numbers_card")
        self._rows = TextRows(("", _DEFAULT, ""), numbers=(1, 2), parent=self)
        self._table = table(
            self._rows, name="memory.oom.numbers", accessible_name="The numbers of the experiment"
        )
        self._table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self._table.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
        self.numbers.column.addWidget(self._table)
        self.first.hide()
        self.second.hide()
        self.numbers.hide()

    def show_now(self, outcome: Outcome, number: int, *, conf: str, is_modelled: bool) -> None:
        """Say how far the run has come that follows so many results."""
        card = self.second if number else self.first
        card.show_outcome(outcome, conf=conf, is_modelled=is_modelled)
        card.show()

    def show_results(self, results: tuple[LabResult, ...]) -> None:
        """Show what is over."""
        cards = (self.first, self.second)
        for card, result in zip(cards, results, strict=False):
            # Who else uses the card is told as it was when the experiment ended, and not again.
            if not any(result is shown for shown in self._shown):
                card.show_result(result, self._tank_reached(result))
        self._shown = results
        for index, card in enumerate(cards):
            card.setVisible(index < len(results))
        rows = _rows_of(results)
        self.numbers.setVisible(bool(rows))
        self._rows.set_head(("", *(result.conf or _DEFAULT for result in results), "")[:3])
        self._rows.set_rows(rows)
        self._table.setColumnHidden(2, len(results) < 2)
        show_whole_rows(self._table)


def _is_the_errors(result: LabResult) -> bool:
    """Return whether the counters were read before anything changed after the error."""
    read, finished = result.reached, result.finished
    if read is None or finished is None:
        return False
    counted = (read.free_bytes, read.total_bytes)
    return counted == (finished.free_bytes, finished.total_bytes)


def _rows_of(results: tuple[LabResult, ...]) -> list[tuple[str, str, str]]:
    """Return the numbers that at least one result has: what it is, the first's, the second's."""
    columns = [_numbers_of(result) for result in results]
    rows = []
    for key in dict.fromkeys(key for column in columns for key in column):
        cells = [column.get(key, "–") for column in columns]
        rows.append((key, cells[0], cells[1] if len(cells) > 1 else ""))
    return rows


def _numbers_of(result: LabResult) -> dict[str, str]:
    finished = result.finished
    if finished is None:
        return {}
    sizes = {
        "The last request": finished.tried_bytes or finished.tensor_bytes,
        "Allocated": finished.allocated_bytes,
        "Reserved": finished.reserved_bytes,
        "Largest block to be had": finished.largest_block_bytes,
        "Free in all": finished.free_total_bytes,
        "Budget": finished.budget_bytes,
    }
    numbers = {key: format_bytes(size) for key, size in sizes.items() if size is not None}
    if finished.budget_bytes is None:
        numbers["Budget"] = "the whole card"
    for stage in finished.stages:
        if stage.batch is not None:
            numbers[f"Largest batch, {stage.stage.replace('_', ' ')}"] = str(stage.batch)
    return {"Tensors at the end": str(finished.tensors), **numbers}
