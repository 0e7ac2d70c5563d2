"""Who races: a list for each side."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker

from gpu_studio.core.race.contestant import Contestant
from gpu_studio.model.tool_tip import plain_tip
from gpu_studio.ui.eliding import narrow_combo
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import Text

if TYPE_CHECKING:
    from PySide6.QtWidgets import QComboBox, QWidget

    from gpu_studio.model.race.race import Race
    from gpu_studio.model.race.race_entries import RaceEntry
    from gpu_studio.model.race.race_history import RaceHistory
    from gpu_studio.model.race.race_side import RaceSide

_SIDES = ("left", "right")
_LETTERS = 20  # a list that gets another entry moves nothing


class RaceContestants(FlowRow):
    """Two lists with the same entries; at the left also the runs of earlier days, as ghosts."""

    def __init__(self, race: Race, history: RaceHistory, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self._history = history
        self.setObjectName("race.contestants")
        self.setAccessibleName("Contestants")
        self._race = race
        self._lists: list[QComboBox] = []
        self._entries: list[list[RaceEntry]] = [[], []]
        self._choices: list[list[Contestant | RaceSide]] = [[], []]
        self._shown_places = [0, 0]  # of the shown choices
        for number, side in enumerate(_SIDES):
            made = narrow_combo(f"race.contestants.{side}", f"Contestant at the {side}", _LETTERS)
            made.activated.connect(partial(self._choose, number))
            self._lists.append(made)
        self.add(self._lists[0])
        self.add(Text("against", "muted"))
        self.add(self._lists[1])
        self.show_race()

    def show_race(self) -> None:
        """Show the contestants that can be chosen, and the chosen ones."""
        race = self._race
        entries: list[tuple[RaceEntry, Contestant | RaceSide]] = [
            (one, one.contestant) for one in race.choices.entries
        ]
        ghost = race.choices.ghost
        ghosts = [*([ghost] if ghost else []), *self._history.ghosts]
        # Of ghosts with equal entries, the last one is raced against.
        at_the_left = dict([*entries, *((one.entry, one) for one in ghosts)])
        for number, (made, chosen) in enumerate(zip(self._lists, race.choices.chosen, strict=True)):
            choices = at_the_left if number == 0 else dict(entries)
            shown = list(choices)
            with QSignalBlocker(made):
                if shown != self._entries[number]:
                    made.clear()
                    made.addItems([entry.label for entry in shown])
                self._shown_places[number] = shown.index(chosen)
                made.setCurrentIndex(self._shown_places[number])
            self._entries[number] = shown
            self._choices[number] = list(choices.values())
            made.setEnabled(not race.state.is_busy)
            turn = f"Who runs {'first' if number == 0 else 'second'}"
            made.setToolTip(plain_tip(f"{turn}\n{race.choices.left_out}".rstrip()))
        self.updateGeometry()

    def _choose(self, side: int, place: int) -> None:
        if place == self._shown_places[side]:
            return
        choices = self._race.choices
        chosen = self._choices[side][place]
        if isinstance(chosen, Contestant):
            choices.choose_contestant(side, chosen)
        else:
            choices.race_against(chosen, choices.picture.name, choices.size)
