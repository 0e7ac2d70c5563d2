"""One side of a race: the picture, the clock, the steps, and the way to the finish line."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QVBoxLayout

from gpu_studio.ui.parts import GAP, Card, Text
from gpu_studio.ui.race.progress_line import ProgressLine
from gpu_studio.ui.race.race_picture import PictureChip, RacePicture

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.ui.theme import Theme

_NO_CHIP = PictureChip()


class LaneFigures(NamedTuple):
    """What stands below a picture.

    Attributes:
        clock: the race's own time of this contestant.
        steps: the number of steps.
        step_title: the name of the steps, in the plural.
        measure: the quantity of the finish line, with its unit.
        goal: the name of the quantity, and where it finishes.
        share: the share of the way that is done, 0 to 1.
        is_reached: whether the finish line is reached.
    """

    clock: str = "0.0\u202fs"
    steps: str = "0"
    step_title: str = "steps"
    measure: str = ""
    goal: str = ""
    share: float = 0.0
    is_reached: bool = False


class RaceLane(Card):
    """Shows one contestant. Both sides are equal in everything but their names and colors."""

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, name=name)
        self.picture = RacePicture(theme, name=f"{name}.picture")
        self._clock = Text("", "hero_words", name=f"{name}.clock")
        self._steps = Text("", "value", name=f"{name}.steps")
        self._step_title = Text("", "muted", name=f"{name}.step_title")
        self._measure = Text("", "value", name=f"{name}.measure")
        self._goal = Text("", "muted", name=f"{name}.goal", wraps=True)
        self._goal.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._way = ProgressLine(theme, name=f"{name}.way")
        self.column.setContentsMargins(1, 1, 1, GAP)
        self.column.addWidget(self.picture, 1)
        self._arrange()

    def show_contestant(self, chip: PictureChip, state: PictureChip = _NO_CHIP) -> None:
        """Show the name of the contestant, and its state."""
        self.picture.show_chips(chip, state)
        self.setAccessibleName(chip.text)
        self.setAccessibleDescription(state.text)

    def show_figures(self, figures: LaneFigures, role: str) -> None:
        """Show the figures, and the way in the color of the contestant."""
        self._clock.setText(figures.clock)
        self._steps.setText(figures.steps)
        self._step_title.setText(figures.step_title)
        self._measure.setText(figures.measure)
        self._measure.set_tone("good" if figures.is_reached else "")
        self._goal.setText(figures.goal)
        self._way.show_share(figures.share, role, is_reached=figures.is_reached)

    def set_dense(self, is_dense: bool) -> None:
        """Leave the picture more of a low window: one line of figures, with their units."""
        self._counted.setDirection(
            QBoxLayout.Direction.LeftToRight if is_dense else QBoxLayout.Direction.TopToBottom
        )
        self._counted.setSpacing(GAP // 2 if is_dense else 0)
        self._goal.setVisible(not is_dense)
        self._measure.setToolTip(self._goal.text())

    def set_large(self, is_large: bool) -> None:
        """Use the largest type, for a class room."""
        self._clock.set_role("hero" if is_large else "hero_words")
        for text in (self._step_title, self._goal):
            text.set_role("lead" if is_large else "muted")
        for text in (self._steps, self._measure):
            text.set_role("headline" if is_large else "value")

    def _arrange(self) -> None:
        below = QVBoxLayout()
        below.setContentsMargins(2 * GAP, 0, 2 * GAP, 0)
        below.setSpacing(4)
        self.column.addLayout(below)
        line = QHBoxLayout()
        line.setSpacing(2 * GAP)
        below.addLayout(line)
        below.addWidget(self._way)
        line.addWidget(self._clock)
        self._counted = QVBoxLayout()
        self._counted.setSpacing(0)
        line.addLayout(self._counted)
        self._counted.addWidget(self._steps)
        self._counted.addWidget(self._step_title)
        measure = QVBoxLayout()
        measure.setSpacing(0)
        line.addLayout(measure, 1)
        measure.addWidget(self._measure, 0, Qt.AlignmentFlag.AlignRight)
        measure.addWidget(self._goal)
