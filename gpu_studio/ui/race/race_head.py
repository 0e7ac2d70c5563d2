"""The top of the Race tab: what is drawn, who races, and the actions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QButtonGroup,
    QComboBox,
    QHBoxLayout,
    QMenu,
    QPushButton,
    QSizePolicy,
    QWidget,
)

from gpu_studio.core.race.contestant import Contestant
from gpu_studio.model.tool_tip import plain_tip
from gpu_studio.ui.combo_box import narrow_combo, show_items
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page_keys import runs, saves, stops
from gpu_studio.ui.parts import Text, button, show_label
from gpu_studio.ui.saving import ask_open_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.model.race.race import Race
    from gpu_studio.model.race.race_entries import RaceEntry
    from gpu_studio.model.race.race_history import RaceHistory
    from gpu_studio.model.race.race_side import RaceSide
    from gpu_studio.ui.theme import Theme

_PICTURES = (
    "Pictures and recordings (*.png *.jpg *.jpeg *.jfif *.webp *.bmp *.gif *.jsonl);;All files (*)"
)
_LETTERS_OF_PHOTO = 10
_AGAIN, _END_AGAIN = "Watch again", "Stop watching"


class RaceHead(FlowRow):
    """One line in a wide window, more in a narrow one.

    Attributes:
        of_result: the buttons for the race that is over, which stand beside its sentence.

    Signals:
        animation_wanted(): the race that is over is to be saved as an animation.
        save_wanted(): the user wants the race as a picture.
        recording_wanted(bool): the user wants it as a recording; whether with its pictures.
        full_screen_wanted(): the user wants the whole screen, or the window back.
    """

    save_wanted = Signal()
    animation_wanted = Signal()
    recording_wanted = Signal(bool)
    full_screen_wanted = Signal()

    def __init__(self, race: Race, theme: Theme, parent: QWidget | None = None) -> None:
        gap = QWidget()
        gap.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        super().__init__(fills=gap, parent=parent)
        self._race, self._theme = race, theme
        self._pictures = QWidget()
        self._pictures.setObjectName("race.picture")
        self._pictures.setAccessibleName("What the race draws")
        self._group = QButtonGroup(self)
        self._fill_pictures()
        self._photo = narrow_combo("race.photo", "Picture to learn", _LETTERS_OF_PHOTO)
        self._photo.activated.connect(race.choices.photo.choose)
        self._open = button(
            "Open…", self._choose_file, name="race.open",
            tip="Learn a photo of yours, or open a saved or recorded race",
        )  # fmt: skip
        self._open.setAccessibleName("Open picture…")
        self._clear = button(
            "Clear points", race.choices.clear_seeds, name="race.seeds.clear",
            tip="Start the pattern at the usual places",
        )  # fmt: skip
        self._replay = self._action(_AGAIN, race.replay, "race.replay", "refresh")
        self._save = QPushButton("Save")
        self._save.setObjectName("race.save")
        self._save.setToolTip("Save this race to post, or to watch and race against on another PC")
        self._save.setIcon(icon("export", theme))
        self._save.setMenu(self._saving())
        self.of_result = self._replay, self._save
        saves(self._save)
        full = self._action(
            "Full screen", self.full_screen_wanted.emit, "race.full_screen", "full_screen"
        )
        full.setToolTip("Only pictures, clocks and result, again and again; Esc ends it")
        self.run = button("Run race", race.start, name="race.run", primary=True)
        self.run.setIcon(icon("flag", theme, "on_accent"))
        runs(self.run)
        self.stop = self._action("Stop race", race.stop, "race.stop", "stop")
        stops(self.stop)
        for widget in (
            self._pictures, self.run, self.stop, full, self._photo, self._open, self._clear, gap,
        ):  # fmt: skip
            self.add(widget)
        for pressed in (self.run, self.stop):  # one takes the place of the other
            pressed.setMinimumWidth(max(self.run.sizeHint().width(), self.stop.sizeHint().width()))
        self.show_race()

    def show_race(self) -> None:
        """Show the choices, and what can be pressed now."""
        race = self._race
        busy = race.state.is_busy
        for picture in self._group.buttons():
            picture.setChecked(picture.property("picture") == race.choices.picture.name)
        learns = race.choices.picture.name == "learn"
        with QSignalBlocker(self._photo):
            show_items(self._photo, [(name, name) for name in race.choices.photo.names])
            self._photo.setCurrentIndex(race.choices.photo.chosen)
        for chosen in (*self._group.buttons(), self._photo, self._open, self._clear):
            chosen.setEnabled(not busy)
        self._photo.setVisible(learns)
        self._open.setVisible(learns)
        self._clear.setVisible(bool(race.choices.used_seeds))
        is_over = bool(race.sides) and not busy
        show_label(self._replay, (_END_AGAIN if race.clock.is_replaying else _AGAIN) * is_over)
        self._save.setVisible(is_over)
        self._save.setEnabled(race.verdict is not None)
        self.run.setVisible(not busy)
        self.run.setEnabled(race.can_run and not race.choices.problem)
        self.stop.setVisible(busy)

    def _saving(self) -> QMenu:
        menu = QMenu(self)
        menu.setObjectName("race.save.menu")
        for text, name, wanted in (
            ("Save &picture…", "picture", self.save_wanted.emit),
            ("Save &animation…", "animation", self.animation_wanted.emit),
            ("Save &recording…", "recording", partial(self.recording_wanted.emit, False)),
            ("Save recording &with pictures…", "film", partial(self.recording_wanted.emit, True)),
        ):
            action = QAction(text, menu)
            action.setObjectName(f"race.save.{name}")
            action.triggered.connect(lambda _checked, wanted=wanted: wanted())
            menu.addAction(action)
        return menu

    def _fill_pictures(self) -> None:
        line = QHBoxLayout(self._pictures)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(6)
        for picture in self._race.choices.pictures:
            shown = QPushButton(picture.title.partition(" ")[0])
            shown.setObjectName(f"race.picture.{picture.name}")
            shown.setAccessibleName(picture.title)
            shown.setToolTip(picture.sentence)
            shown.setProperty("picture", picture.name)
            shown.setCheckable(True)
            shown.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            self._group.addButton(shown)
            line.addWidget(shown)
        self._group.buttonClicked.connect(self._choose_picture)

    def _choose_picture(self, shown: QPushButton) -> None:
        self._race.choices.choose_picture(shown.property("picture"))

    def _choose_file(self) -> None:
        path = ask_open_path(self.window(), "Open picture", _PICTURES)
        if path:
            self._race.choices.photo.open_file(Path(path))

    def _action(
        self, text: str, clicked: Callable[[], object], name: str, sign: str
    ) -> QPushButton:
        action = button(text, clicked, name=name)
        action.setIcon(icon(sign, self._theme))
        return action


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
            combo = narrow_combo(f"race.contestants.{side}", f"Contestant at the {side}", _LETTERS)
            combo.activated.connect(partial(self._choose, number))
            self._lists.append(combo)
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
        for number, (combo, chosen) in enumerate(
            zip(self._lists, race.choices.chosen, strict=True)
        ):
            choices = at_the_left if number == 0 else dict(entries)
            shown = list(choices)
            with QSignalBlocker(combo):
                if shown != self._entries[number]:
                    combo.clear()
                    combo.addItems([entry.label for entry in shown])
                self._shown_places[number] = shown.index(chosen)
                combo.setCurrentIndex(self._shown_places[number])
            self._entries[number] = shown
            self._choices[number] = list(choices.values())
            combo.setEnabled(not race.state.is_busy)
            turn = f"Who runs {'first' if number == 0 else 'second'}"
            combo.setToolTip(plain_tip(f"{turn}\n{race.choices.left_out}".rstrip()))
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
