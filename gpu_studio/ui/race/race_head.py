"""The controls of the Race tab: what is drawn, who races, and the actions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QMenu, QPushButton, QSizePolicy, QWidget

from gpu_studio.model.text_rows import plain_tip
from gpu_studio.ui.eliding import narrow_combo, show_items
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import Text, button, press_by_key, show_label
from gpu_studio.ui.saving import ask_open_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.model.race.race import Race
    from gpu_studio.ui.theme import Theme

_FILES = (
    "Pictures and recordings (*.png *.jpg *.jpeg *.jfif *.webp *.bmp *.gif *.jsonl);;All files (*)"
)
_LETTERS_OF_PHOTO = 10
_SAVES = {
    "picture": "Save &picture…",
    "animation": "Save &animation…",
    "recording": "Save &recording…",
}


class RaceHead(FlowRow):
    """One line in a wide window, more in a narrow one.

    Attributes:
        of_result: the buttons for the race that is over, which stand beside its sentence.

    Signals:
        save_wanted(str): the user wants the race as a picture, an animation or a recording.
        full_screen_wanted(): the user wants the whole screen.
    """

    save_wanted = Signal(str)
    full_screen_wanted = Signal()

    def __init__(self, race: Race, theme: Theme, parent: QWidget | None = None) -> None:
        gap = QWidget()
        gap.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        super().__init__(fills=gap, parent=parent)
        self._race, self._theme = race, theme
        self._pictures = self._picture_buttons()
        self._photo = narrow_combo("race.photo", "Picture to learn", _LETTERS_OF_PHOTO)
        self._photo.activated.connect(race.choices.photo.choose)
        self._open = button(
            "Open…", self._choose_file, name="race.open",
            tip="Learn a photo of yours, or open a saved or recorded race",
        )  # fmt: skip
        self._open.setAccessibleName("Open picture…")
        self._replay = self._action("Watch again", race.replay, "race.replay", "refresh")
        self._save = self._action("Save", None, "race.save", "export")
        self._save.setToolTip("Save this race to post, or to watch and race against on another PC")
        self._save.setMenu(self._save_menu())
        press_by_key(self._save, "save")
        self.of_result = self._replay, self._save
        full = self._action(
            "Full screen", self.full_screen_wanted.emit, "race.full_screen", "full_screen"
        )
        full.setToolTip("Only pictures, clocks and result, again and again; Esc ends it")
        self._run = button("Run race", race.start, name="race.run", primary=True)
        self._run.setIcon(icon("flag", theme, "on_accent"))
        press_by_key(self._run, "run")
        self._stop = self._action("Stop race", race.stop, "race.stop", "stop")
        press_by_key(self._stop, "stop")
        for widget in (
            self._pictures, self._run, self._stop, full, self._photo, self._open, gap,
        ):  # fmt: skip
            self.add(widget)
        width = max(self._run.sizeHint().width(), self._stop.sizeHint().width())
        for pressed in (self._run, self._stop):  # one takes the place of the other
            pressed.setMinimumWidth(width)

    def show_race(self) -> None:
        """Show the choices, and what can be pressed now."""
        race, choices = self._race, self._race.choices
        is_busy = race.state.is_busy
        for picture in self._group.buttons():
            picture.setChecked(picture.property("picture") == choices.picture.name)
        with QSignalBlocker(self._photo):
            show_items(self._photo, [(name, name) for name in choices.photo.names])
            self._photo.setCurrentIndex(choices.photo.chosen)
        for control in (*self._group.buttons(), self._photo, self._open):
            control.setEnabled(not is_busy)
        self._photo.setVisible(choices.learns)
        self._open.setVisible(choices.learns)
        is_over = bool(race.sides) and not is_busy
        again = "Stop watching" if race.clock.is_replaying else "Watch again"
        show_label(self._replay, again * is_over)
        self._save.setVisible(is_over)
        self._run.setVisible(not is_busy)
        self._run.setEnabled(race.can_run)
        self._stop.setVisible(is_busy)

    def _save_menu(self) -> QMenu:
        menu = QMenu(self)
        menu.setObjectName("race.save.menu")
        for name, text in _SAVES.items():
            action = QAction(text, menu)
            action.setObjectName(f"race.save.{name}")
            action.triggered.connect(partial(self.save_wanted.emit, name))
            menu.addAction(action)
        return menu

    def _picture_buttons(self) -> QWidget:
        pictures = QWidget()
        pictures.setObjectName("race.picture")
        pictures.setAccessibleName("What the race draws")
        self._group = QButtonGroup(self)
        line = QHBoxLayout(pictures)
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
        self._group.buttonClicked.connect(self._on_picture_clicked)
        return pictures

    def _on_picture_clicked(self, shown: QPushButton) -> None:
        self._race.choices.choose_picture(shown.property("picture"))

    def _choose_file(self) -> None:
        path = ask_open_path(self.window(), "Open picture", _FILES)
        if path:
            self._race.choices.photo.open_file(Path(path))

    def _action(
        self, text: str, clicked: Callable[[], object] | None, name: str, sign: str
    ) -> QPushButton:
        action = QPushButton(text) if clicked is None else button(text, clicked)
        action.setObjectName(name)
        action.setIcon(icon(sign, self._theme))
        return action


_SIDES = ("left", "right")
_LETTERS = 14  # a list that gets another entry moves nothing


class RaceContestants(FlowRow):
    """Two lists with the same entries; at the left also the ghost that was opened."""

    def __init__(self, race: Race, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self.setObjectName("race.contestants")
        self.setAccessibleName("Contestants")
        self._race = race
        self._lists = [
            narrow_combo(f"race.contestants.{side}", f"Contestant at the {side}", _LETTERS)
            for side in _SIDES
        ]
        for number, combo in enumerate(self._lists):
            combo.activated.connect(partial(self._on_activated, number))
        for widget in (self._lists[0], Text("against", "muted"), self._lists[1]):
            self.add(widget)

    def show_race(self) -> None:
        """Show the contestants that can be chosen, and the chosen ones."""
        choices = self._race.choices
        entries = choices.entries
        for number, (combo, chosen) in enumerate(zip(self._lists, choices.chosen, strict=True)):
            is_ghost = number == 0 and choices.ghost is not None
            shown = (*entries, chosen) if is_ghost else entries
            show_items(combo, [(entry.label, entry.label) for entry in shown])
            combo.setCurrentIndex(shown.index(chosen))
            combo.setEnabled(not self._race.state.is_busy)
            turn = f"Who runs {'first' if number == 0 else 'second'}"
            combo.setToolTip(plain_tip(f"{turn}\n{choices.left_out}".rstrip()))
        self.updateGeometry()

    def _on_activated(self, side: int, place: int) -> None:
        choices = self._race.choices
        entries = choices.entries
        if place < len(entries) and entries[place] != choices.chosen[side]:
            choices.choose_contestant(side, entries[place].contestant)
