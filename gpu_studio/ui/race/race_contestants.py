"""Who races: a list for each side."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QComboBox

from gpu_studio.core.race.contestant import Contestant
from gpu_studio.model.tool_tip import plain_tip
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import Text

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.race.race import Race
    from gpu_studio.model.race.race_history import RaceHistory
    from gpu_studio.model.race.race_side import RaceSide

_SIDES = ("left", "right")


class RaceContestants(FlowRow):
    """Two lists with the same entries; at the left also the runs of earlier days, as ghosts."""

    def __init__(self, race: Race, history: RaceHistory, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self._history = history
        self.setObjectName("race.contestants")
        self.setAccessibleName("Contestants")
        self._race = race
        self._lists: list[QComboBox] = []
        self._choices: list[list[Contestant | RaceSide]] = [[], []]
        self._shown_places = [0, 0]  # of the shown choices
        for number, side in enumerate(_SIDES):
            made = QComboBox()
            made.setObjectName(f"race.contestants.{side}")
            made.setAccessibleName(f"Contestant at the {side}")
            made.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
            made.activated.connect(partial(self._choose, number))
            self._lists.append(made)
        self.add(self._lists[0])
        self.add(Text("against", "muted"))
        self.add(self._lists[1])
        self.show_race()

    def show_race(self) -> None:
        """Show the contestants that can be chosen, and the chosen ones."""
        race = self._race
        for number, (made, entry) in enumerate(zip(self._lists, race.choices.chosen, strict=True)):
            choices: dict[str, Contestant | RaceSide] = {
                one.label: one.contestant for one in race.choices.entries
            }
            if number == 0:
                chosen = [race.choices.ghost] if race.choices.ghost else []
                ghosts = [*chosen, *self._history.ghosts]
                choices |= {ghost.entry.label: ghost for ghost in ghosts}
            with QSignalBlocker(made):
                if [made.itemText(n) for n in range(made.count())] != list(choices):
                    made.clear()
                    made.addItems(list(choices))
                self._shown_places[number] = list(choices).index(entry.label)
                made.setCurrentIndex(self._shown_places[number])
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
