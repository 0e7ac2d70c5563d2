"""The Race tab: two contestants draw the same picture by the same code, in turn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout

from gpu_studio.core.failure import StudioError
from gpu_studio.core.moments import local_now
from gpu_studio.core.notice import Action, Notice, Tone, action_label
from gpu_studio.core.race.contestant import is_raceable
from gpu_studio.core.race.photo import LAKE, Detail
from gpu_studio.core.race.stage_view import encode_order
from gpu_studio.core.units import format_count
from gpu_studio.model.race import race_words
from gpu_studio.model.race.ghosts import ghost_of
from gpu_studio.model.race.race import Race
from gpu_studio.model.race.race_animation import RaceAnimation
from gpu_studio.model.race.race_history import RaceHistory
from gpu_studio.model.race.race_photo import RacePhoto
from gpu_studio.model.race.sharing import order_of, recorded
from gpu_studio.model.tool_tip import plain_tip
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.parts import GAP, MARGIN, Card, Role, Text, button, show_label
from gpu_studio.ui.race.framed_picture import image_of, poster
from gpu_studio.ui.race.painter import png_of
from gpu_studio.ui.race.race_head import RaceContestants, RaceHead
from gpu_studio.ui.race.race_lane import LaneFigures, RaceLane
from gpu_studio.ui.race.race_picture import PictureChip
from gpu_studio.ui.race.size_lever import SizeLever, SizeMark
from gpu_studio.ui.saving import ask_save_path, save_as
from gpu_studio.ui.tabs import TabContents
from gpu_studio.ui.theme import side_role
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from PySide6.QtGui import QImage, QResizeEvent, QShowEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.race.shared_race import SharedRace
    from gpu_studio.model.pages import Destination
    from gpu_studio.model.race.ghosts import RecordedRace
    from gpu_studio.model.race.race_side import RaceSide
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.race.race_stage import RaceStage
    from gpu_studio.ui.theme import Theme

_HEADLINES: tuple[Role, ...] = ("hero_words", "headline", "title")
_WORDS_MS = 250  # words that change faster cannot be read
_LOW = 480  # pixels
_SIZE_MARGIN = 12
_NO_RESULT = "The race in this picture has no result to race against."
_OTHER_PICTURES = (
    "This race was run by an older version of GPU Studio, which drew other pictures: no race "
    "against it would be fair."
)
_SEEDING = "Click in a picture, and the pattern starts there."


class RaceTab(TabContents):
    """Choices and actions on top, the sentence, two equal pictures, and the size lever."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self.race = Race(studio, RacePhoto(studio, self), self)
        self._history = RaceHistory(studio, self.race, self)
        self._animation = RaceAnimation(studio, self)
        self._stage: RaceStage | None = None
        self._theme = theme
        self._head = RaceHead(self.race, theme)
        self._sentence = Text("", "hero_words", name="race.sentence", wraps=True)
        self._chip = TrustChip(theme, name="race.trust")
        self._again = button(action_label(Action.RUN_AGAIN), self.race.start, name="race.again")
        self._again.hide()
        self._reason = Text("", "muted", name="race.reason", wraps=True)
        self._outcome = ElidedText("", "muted", name="race.outcome")
        self._outcome.hide()
        self._contestants = RaceContestants(self.race, self._history)
        self._lanes = tuple(RaceLane(theme, name=f"race.{side}") for side in ("left", "right"))
        self._size_title = Text("", "value", name="race.size.title")
        self._lever = SizeLever(theme, name="race.size")
        self._detail: Detail | None = None
        self._is_low = False
        self._words_soon = QTimer(self)
        self._words_soon.setSingleShot(True)
        self._words_soon.setInterval(_WORDS_MS)
        self._words_soon.timeout.connect(self._show_words)
        self._arrange()
        self._connect()
        self._show_outcome(self._animation.take_unsaved())
        self._show_all()

    def showEvent(self, event: QShowEvent) -> None:
        """Show everything when the tab is seen."""
        super().showEvent(event)
        self._history.refresh()
        self._show_all()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Choose the type in which the sentence fits."""
        super().resizeEvent(event)
        self._fit()

    def _arrange(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, GAP, MARGIN, GAP)
        column.setSpacing(GAP)
        column.addWidget(self._head)
        line = QHBoxLayout()
        line.setSpacing(GAP)
        column.addLayout(line)
        line.addWidget(self._sentence, 1)
        for beside in (self._chip, self._again, *self._head.of_result):
            line.addWidget(beside, 0, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._below = below = QHBoxLayout()
        below.setSpacing(2 * GAP)
        column.addLayout(below)
        for words in (self._reason, self._outcome):  # one in the place of the other
            below.addWidget(words, 1)
        below.addWidget(self._contestants)
        line = QHBoxLayout()
        line.setSpacing(GAP)
        column.addLayout(line, 1)
        left, right = self._lanes
        for widget in (left, right):
            line.addWidget(widget, 1)
        self._size = size = Card()
        column.addWidget(size)
        self._level = level = QHBoxLayout()
        level.setSpacing(2 * GAP)
        size.column.addLayout(level)
        level.addWidget(self._size_title)
        level.addWidget(self._lever, 1)

    def _connect(self) -> None:
        race = self.race
        race.begun.connect(self._forget_outcome)
        race.choices.question_changed.connect(self._forget_outcome)
        race.choices_changed.connect(self._update)
        race.race_changed.connect(self._update)
        race.moment_changed.connect(self._update_moment)
        race.choices.photo.changed.connect(self._change_photo)
        race.choices.photo.race_opened.connect(self._open_race)
        race.choices.photo.recording_opened.connect(self._open_recording)
        race.choices.photo.notified.connect(self._show_outcome)
        self._history.changed.connect(self._update)
        self._history.notified.connect(self._show_outcome)
        self._studio.session.state_changed.connect(self._update)
        self._head.save_wanted.connect(self._save)
        self._head.recording_wanted.connect(self._record)
        self._head.full_screen_wanted.connect(self.show_stage)
        self._head.animation_wanted.connect(self._animate)
        self._animation.notified.connect(self._show_outcome)
        self._lever.valueChanged.connect(self._move_lever)
        for lane in self._lanes:
            lane.picture.pointed.connect(self._point)

    # ── showing ──────────────────────────────────────────────────────────────────────────────

    def _update(self) -> None:
        """Show everything if visible; otherwise `showEvent` does it."""
        if self.isVisible():
            self._show_all()

    def _change_photo(self) -> None:
        self._detail = None
        self._update()

    def _update_moment(self) -> None:
        """Show the race's clock if visible; otherwise `showEvent` does it."""
        if self.isVisible():
            self._show_moment()

    def _show_all(self) -> None:
        """Show the choices, the words and the moment."""
        self._head.show_race()
        self._contestants.show_race()
        self._show_words()
        self._show_trust()
        self._show_sizes()
        self._show_moment()

    def _show_words(self) -> None:
        """Show the sentence, and the one below it."""
        notice = self.race.notice
        # Where a sentence stands anyway: a line that comes and goes would move the pictures.
        name = self._sentence.fontMetrics().elidedText(
            self.race.choices.photo.opening_name,
            Qt.TextElideMode.ElideMiddle,
            self._sentence.width() // 2,
        )
        opening = f"Opening {name}…" if name else ""
        self._sentence.setText(opening or self.race.choices.problem or notice.sentence)
        grows = self.race.choices.picture.name == "grow"
        seeding = _SEEDING if grows and not self.race.sides else ""
        waits = self._studio.session.absence
        reason = " ".join(filter(None, (notice.detail, seeding, waits)))
        self._reason.setText(reason)
        self._sentence.setToolTip(plain_tip(reason))
        show_label(self._again, action_label(notice.action))
        self._fit()

    def _show_trust(self) -> None:
        verdict = self.race.verdict
        self._chip.show_notice(race_words.trust(verdict) if verdict is not None else Notice())

    def _show_sizes(self) -> None:
        race = self.race
        picture = race.choices.picture
        self._size_title.setText(picture.size_title)
        names = [entry.label for entry in race.choices.chosen]
        roles = dict(zip(names, self._roles, strict=True))
        leaders = race.leaders  # each look at it asks for all contestants
        marks = [
            SizeMark(
                size,
                picture.size_text.replace("{size}", format_count(size)),
                roles.get(leaders.get(size, ""), ""),
            )
            for size in picture.sizes
        ]
        crossover = race.crossover
        place = picture.sizes.index(crossover.size) if crossover is not None else None
        words = f"{crossover.name} leads from here" if crossover is not None else ""
        self._lever.show_sizes(marks, race.choices.size, place, words)

    def _show_moment(self) -> None:
        """Show both sides at the time of the race's clock, and the words a little later."""
        if not self._words_soon.isActive():
            self._words_soon.start()
        traits = self.race.raced.race
        assert traits is not None
        chosen = self.race.choices.chosen
        for number, (lane, role) in enumerate(zip(self._lanes, self._roles, strict=True)):
            side = self.race.sides[number] if self.race.sides else None
            entry = side.entry if side is not None else chosen[number]
            words = self.race.words_of(number)
            lane.show_contestant(
                PictureChip(entry.label, role), PictureChip(words.text, words.role, words.sign)
            )
            self._show_side(lane, side, role)

    def _show_side(self, lane: RaceLane, side: RaceSide | None, role: str) -> None:
        race, traits = self.race, self.race.raced.race
        assert traits is not None
        frame = side.at(race.clock.now_s) if side is not None else None
        image = image_of(frame.picture) if frame is not None else None
        lane.picture.show_picture(image or self._preview(side), is_dimmed=image is None)
        lane.picture.show_seeds(race.choices.used_seeds if frame is None else ())
        lane.picture.show_detail(self._shown_detail())
        now_s = race.clock.now_s
        clock_s = min(now_s, side.end_s) if side is not None else 0.0
        is_reached = side is not None and side.is_reached and now_s + 1e-6 >= side.end_s
        measure = ""
        if frame is not None and traits.measure_title:
            measure = race_words.measure_text(frame.measure, traits)
        achieved = measure, race_words.power_text(frame), race_words.energy_text(frame)
        pace = race_words.pace_text(race.pace_of(side, now_s) if side is not None else 0.0)
        done = frame.steps if frame is not None else 0
        figures = LaneFigures(
            clock=race_words.clock_text(clock_s if frame is not None else 0.0),
            pace=f"{pace} {traits.step_title}/s",
            steps=race_words.count_text(done, side.finish_steps if side else None),
            achieved=" · ".join(filter(None, achieved)),
            share=frame.progress if frame is not None else 0.0,
            is_reached=is_reached,
        )
        lane.show_figures(figures, role)

    def _shown_detail(self) -> Detail | None:
        """Return what the lens shows: only a picture that is learned becomes sharper."""
        if self.race.raced.name != "learn":
            return None
        if self._detail is None:
            photo = self.race.choices.photo.picture
            self._detail = LAKE if photo is None else photo.detail
        return self._detail

    def _preview(self, side: RaceSide | None) -> QImage | None:
        """Return what a side is to draw; None if that is not known.

        A ghost may have learned another picture. A pattern that starts where you clicked is not the
        poster's.
        """
        picture = self.race.choices.picture.name
        if picture != "learn":
            return None if self.race.choices.used_seeds else poster(picture)
        photo, key = self.race.choices.photo.picture, self.race.choices.photo.identity
        if photo is None:
            return None
        learned = side.run.request.race if side is not None else None
        if learned is not None and learned.photo != key:
            return None
        return image_of(photo.picture)

    @property
    def _roles(self) -> tuple[str, str]:
        """The colors of the two sides."""
        theme, chosen = self._theme, self.race.choices.chosen
        own = [theme.run_role(side.run) for side in self.race.sides] or [
            theme.device_role(entry.contestant.device) for entry in chosen
        ]
        left, right = (side_role(role, n, own) for n, role in enumerate(own))
        return left, right

    def _fit(self) -> None:
        """Choose the largest type in which the sentence takes one line; a low page has less."""
        place = self.parentWidget()  # smaller than the tab if that scrolls
        is_low = min(self.height(), place.height() if place else self.height()) < _LOW
        self._reason.setHidden(is_low or not self._outcome.isHidden())  # it is also a tip
        if is_low is not self._is_low:
            self._is_low = is_low
            self._size_title.setHidden(is_low)
            if is_low:  # the pictures get the room of a line
                self._level.insertWidget(0, self._contestants, 0, Qt.AlignmentFlag.AlignVCenter)
            else:
                self._below.addWidget(self._contestants)
        margin = 0 if is_low else _SIZE_MARGIN
        self._size.column.setContentsMargins(MARGIN, margin, MARGIN, margin)
        roles = _HEADLINES[is_low:]
        self._sentence.fit_role(roles, self._sentence.width())
        self._sentence.setMinimumHeight(self._sentence.room_for(roles))
        self._reason.setFixedHeight(2 * self._reason.fontMetrics().lineSpacing() + 2)

    # ── acting ───────────────────────────────────────────────────────────────────────────────

    def _move_lever(self) -> None:
        size = self._lever.size_chosen
        if size is not None:
            self.race.choices.choose_size(size)

    def _point(self, x: float, y: float) -> None:
        """Plant a seed, or move the lens."""
        if self.race.choices.picture.name == "grow":
            self.race.choices.add_seed(x, y)
        elif (detail := self._shown_detail()) is not None:
            self._detail = detail._replace(x=x, y=y)
            self._show_moment()

    def go_to(self, destination: Destination) -> None:
        """Start a race, or open a picture or a recording."""
        if destination.plays:
            self.show_stage(runs_on=True).closed.connect(self.window().close)
        elif destination.starts:
            self.race.start()
        if destination.path is not None and not self.race.state.is_busy:
            self._forget_outcome()
            self.race.choices.photo.open_file(destination.path)

    def _open_race(self, shared: SharedRace) -> None:
        ghost = ghost_of(shared)
        if ghost is None:
            is_old = any(run.result is not None for run in shared.runs)
            text = _OTHER_PICTURES if is_old else _NO_RESULT
            self._show_outcome(Notice(text, Tone.FAILURE))
            return
        self._race_against(ghost, shared.race.picture, shared.race.size)

    def _open_recording(self, recording: RecordedRace) -> None:
        sides = recording.sides
        if not sides:
            text = "This recording has no race. To replay its runs, drop it on the Benchmark tab."
            self._show_outcome(Notice(text, Tone.FAILURE))
        elif len(sides) == 2:
            self.race.show_recorded((sides[0], sides[1]))
            self._show_outcome(Notice(f"Recording: {recording.label}."))
        else:
            request = sides[0].run.request
            if not is_raceable(sides[0].run.result):
                self._show_outcome(Notice(_OTHER_PICTURES, Tone.FAILURE))
                return
            self._race_against(sides[0], request.workload, request.size)

    def _race_against(self, ghost: RaceSide, picture: str, size: int) -> None:
        self.race.choices.race_against(ghost, picture, size)
        text = f"Ghost: {ghost.entry.label}. Press Run race to race against it."
        self._show_outcome(Notice(text))

    def _show_outcome(self, notice: Notice) -> None:
        """Show what became of a file."""
        self._outcome.show_notice(notice)
        self._fit()

    def _forget_outcome(self) -> None:
        """Hide what became of a file: it goes with its race, and with the choices for it."""
        self._show_outcome(Notice())

    def _save(self) -> None:
        order = order_of(self.race, self._studio, local_now(), self._roles)
        if order is not None:
            kind = "PNG picture (*.png)"
            self._save_as("Save picture", "race.png", kind, png_of(order))

    def _record(self, keeps_pictures: bool) -> None:
        try:
            contents = recorded(self.race, self._studio, local_now(), keeps_pictures=keeps_pictures)
        except StudioError as error:
            self._show_outcome(Notice(str(error), Tone.FAILURE))
            return
        self._save_as("Save recording", "race.jsonl", "Recording (*.jsonl)", contents)

    def _save_as(self, title: str, name: str, kind: str, contents: bytes) -> None:
        self._show_outcome(save_as(self.window(), title, name, kind, contents))

    def show_stage(self, *, runs_on: bool = False) -> RaceStage:
        """Show the race on all of the screen that this window is on.

        Args:
            runs_on: run the race of the next picture after each result, as at a stand.
        """
        from gpu_studio.ui.race.race_stage import RaceStage  # 3 ms

        if self._stage is not None:
            self._stage.activateWindow()
            return self._stage
        stage = RaceStage(
            self.race, self._theme, lambda: self._roles, self._shown_detail, self._preview,
            runs_on=runs_on,
        )  # fmt: skip
        self._stage = stage
        stage.closed.connect(self._forget_stage)
        self._studio.closing.connect(stage.close)
        screen = self.window().screen()
        stage.setGeometry(screen.geometry())
        stage.showFullScreen()
        stage.activateWindow()
        return stage

    def _forget_stage(self) -> None:
        self._stage = None
        self._update()

    def _animate(self) -> None:
        """Save an animation: ask for the file, then let a child paint it."""
        if self.race.verdict is None:
            return
        path = ask_save_path(
            self.window(), "Save animation", "race.webp", "WebP animation (*.webp)"
        )
        if path:
            from gpu_studio.ui.race.race_stage import film_order

            order = film_order(self.race, self._roles, self._shown_detail())
            self._show_outcome(Notice("Painting the animation…"))
            self._animation.save(encode_order(order), Path(path))
