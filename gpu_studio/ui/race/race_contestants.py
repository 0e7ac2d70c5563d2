"""Who races: a list for each side."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QComboBox

from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import Text

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.race.race import Race

_SIDES = ("left", "right")


class RaceContestants(FlowRow):
    """Two lists with the same entries; a ghost from a file is one more at the left."""

    def __init__(self, race: Race, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self.setObjectName("race.contestants")
        self.setAccessibleName("Contestants")
        self._race = race
        self._lists: list[QComboBox] = []
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
        entries, chosen = race.entries, race.chosen
        for number, (made, entry) in enumerate(zip(self._lists, chosen, strict=True)):
            shown = entries if entry in entries else (entry, *entries)
            labels = [one.label for one in shown]
            with QSignalBlocker(made):
                if [made.itemText(n) for n in range(made.count())] != labels:
                    made.clear()
                    for one in shown:
                        made.addItem(one.label, one.contestant)
                made.setCurrentIndex(labels.index(entry.label))
            made.setEnabled(not race.state.is_busy)
            made.setToolTip(f"Who runs {'first' if number == 0 else 'second'}")
        self.updateGeometry()

    def _choose(self, side: int, place: int) -> None:
        contestant = self._lists[side].itemData(place)
        if self._race.chosen[side].label != self._lists[side].itemText(place):
            self._race.choose_contestant(side, contestant)
