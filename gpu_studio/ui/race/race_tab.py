"""The Race tab: two contestants draw the same picture by the same code, in turn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout

from gpu_studio.core.failure import StudioError
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.race.side import kept_frames
from gpu_studio.core.race.stage_view import film_order, picture_order, trust
from gpu_studio.core.units import local_now
from gpu_studio.model.benchmark.recording import recording_from
from gpu_studio.model.race.race import Race
from gpu_studio.model.race.race_photo import RacePhoto
from gpu_studio.model.race.race_saving import RaceSaving
from gpu_studio.model.text_rows import plain_tip
from gpu_studio.ui.eliding import ElidedText, RoomText
from gpu_studio.ui.parts import GAP, MARGIN, Card, Role, Text
from gpu_studio.ui.race.race_head import RaceContestants, RaceHead
from gpu_studio.ui.race.race_lane import RaceLane
from gpu_studio.ui.race.size_lever import SizeLever, SizeMark
from gpu_studio.ui.saving import ask_save_path, save_as
from gpu_studio.ui.tabs import TabContents
from gpu_studio.ui.theme import side_role
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent, QShowEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.race.stage_view import PaintOrder
    from gpu_studio.model.pages import Destination
    from gpu_studio.model.race.race_photo import OpenedRace
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.race.race_stage import RaceStage
    from gpu_studio.ui.theme import Theme

_HEADLINES: tuple[Role, ...] = ("hero_words", "headline", "title")
_WORDS_MS = 250  # words that change faster cannot be read
_SMALL = (1060, 480)  # pixels
_PAINTED = {
    "picture": ("race.png", "PNG picture (*.png)"),
    "animation": ("race.webp", "WebP animation (*.webp)"),
}
_OTHER_PICTURES = (
    "This race was run by an older version of GPU Studio, which drew other pictures: no race "
    "against it would be fair."
)
_NO_RACE = (
    "This file has no race with a result. To replay the runs of a recording, drop it on the "
    "Benchmark tab."
)


class RaceTab(TabContents):
    """Choices and actions on top, the sentence, two equal pictures, and the size lever."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._studio, self._theme = studio, theme
        self.race = Race(studio, RacePhoto(studio, self), self)
        self._saving = RaceSaving(studio, self)
        self._stage: RaceStage | None = None
        self._head = RaceHead(self.race, theme)
        self._sentence = Text("", "hero_words", name="race.sentence", wraps=True)
        self._chip = TrustChip(theme, name="race.trust")
        self._reason = RoomText("", "muted", name="race.reason", lines=2)
        self._outcome = ElidedText("", "muted", name="race.outcome")
        self._outcome.hide()
        self._contestants = RaceContestants(self.race)
        self._lanes = tuple(RaceLane(theme, name=f"race.{side}") for side in ("left", "right"))
        self._size_title = Text("", "value", name="race.size.title")
        self._lever = SizeLever(theme, name="race.size")
        self._words_soon = QTimer(self)
        self._words_soon.setSingleShot(True)
        self._words_soon.setInterval(_WORDS_MS)
        self._words_soon.timeout.connect(self._show_words)
        self._arrange()
        self._connect()

    def showEvent(self, event: QShowEvent) -> None:
        """Show everything when the tab is seen."""
        super().showEvent(event)
        self._show_outcome(self._saving.take_unsaved())
        self._show()

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
        for beside in (self._chip, *self._head.of_result):
            line.addWidget(beside, 0, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        column.addWidget(self._reason)
        column.addWidget(self._outcome)
        line = QHBoxLayout()
        line.setSpacing(GAP)
        column.addLayout(line, 1)
        for lane in self._lanes:
            line.addWidget(lane, 1)
        size = Card()
        size.column.setContentsMargins(MARGIN, 2, MARGIN, 2)
        column.addWidget(size)
        line = QHBoxLayout()
        line.setSpacing(2 * GAP)
        size.column.addLayout(line)
        line.addWidget(self._contestants, 0, Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(self._size_title)
        line.addWidget(self._lever, 1)

    def _connect(self) -> None:
        race, photo = self.race, self.race.choices.photo
        race.begun.connect(self._forget_outcome)
        race.choices.question_changed.connect(self._forget_outcome)
        race.race_changed.connect(self._show)
        race.moment_changed.connect(self._on_moment_changed)
        self._studio.session.state_changed.connect(self._show)
        photo.race_opened.connect(self._on_race_opened)
        photo.notified.connect(self._show_outcome)
        self._saving.notified.connect(self._show_outcome)
        self._head.save_wanted.connect(self._save)
        self._head.full_screen_wanted.connect(self.show_stage)
        self._lever.chosen.connect(race.choices.choose_size)

    # ── showing ──────────────────────────────────────────────────────────────────────────────

    def _show(self) -> None:
        """Show the choices, the words and the moment, if anybody sees them."""
        if self.isVisible():
            self._head.show_race()
            self._contestants.show_race()
            self._show_words()
            verdict = self.race.verdict
            self._chip.show_notice(trust(verdict) if verdict is not None else Notice())
            self._show_sizes()
            self._on_moment_changed()

    def _show_words(self) -> None:
        """Show the sentence, and the one below it."""
        notice = self.race.notice
        self._sentence.setText(self.race.choices.problem or notice.sentence)
        reason = " ".join(filter(None, (notice.detail, self._studio.session.absence)))
        self._reason.setText(reason)
        self._sentence.setToolTip(plain_tip(reason))
        self._fit()

    def _show_sizes(self) -> None:
        race, roles = self.race, self._roles
        picture, leaders = race.choices.picture, race.leaders
        self._size_title.setText(picture.size_title)
        names = [entry.label for entry in race.choices.chosen]
        marks = []
        for size in picture.sizes:
            leader = leaders.get(size, "")
            role = roles[names.index(leader)] if leader in names else ""
            marks.append(SizeMark(size, _short(size), leader, role))
        self._lever.show_sizes(marks, race.choices.size)

    def _on_moment_changed(self) -> None:
        """Show both sides at the time of the race's clock, and the words a little later."""
        if not self.isVisible():
            return
        if not self._words_soon.isActive():
            self._words_soon.start()
        for lane, view in zip(self._lanes, self.race.moment(self._roles).lanes(), strict=True):
            lane.show_lane(view)

    @property
    def _roles(self) -> list[str]:
        """The colors of the two sides."""
        own = [self._theme.run_role(side.run) for side in self.race.shown_sides]
        return [side_role(role, number, own) for number, role in enumerate(own)]

    def _fit(self) -> None:
        """Choose the largest type in which the sentence takes one line; a small page has less."""
        is_low = self.height() < _SMALL[1]
        # The reason is also a tip of the sentence.
        self._reason.setHidden(is_low or not self._outcome.isHidden())
        self._size_title.setHidden(is_low or self.width() < _SMALL[0])
        roles = _HEADLINES[is_low:]
        self._sentence.fit_role(roles, self._sentence.width())
        self._sentence.setMinimumHeight(self._sentence.room_for(roles))
        line = self._outcome.fontMetrics().lineSpacing()
        self._outcome.setFixedHeight(line if is_low else self._reason.sizeHint().height())

    # ── acting ───────────────────────────────────────────────────────────────────────────────

    def go_to(self, destination: Destination) -> None:
        """Start a race, or open a picture or a recording."""
        if destination.starts:
            self.race.start()
        if destination.path is not None and not self.race.state.is_busy:
            self._forget_outcome()
            self.race.choices.photo.open_file(destination.path)

    def _on_race_opened(self, opened: OpenedRace) -> None:
        sides = opened.sides
        if not sides:
            self._fail(_NO_RACE)
        elif len(sides) == 2:
            self.race.show_recorded(sides)
            self._show_outcome(Notice(f"Recording: {opened.label}."))
        elif not sides[0].is_raceable:
            self._fail(_OTHER_PICTURES)
        else:
            request = sides[0].run.request
            self.race.choices.race_against(sides[0], request.workload, request.size)
            words = f"Ghost: {sides[0].label}. Press Run race to race against it."
            self._show_outcome(Notice(words))

    def _fail(self, sentence: str) -> None:
        self._show_outcome(Notice(sentence, Tone.FAILURE))

    def _show_outcome(self, notice: Notice) -> None:
        """Show what became of a file."""
        self._outcome.show_notice(notice)
        self._fit()

    def _forget_outcome(self) -> None:
        """Hide what became of a file: it goes with its race, and with the choices for it."""
        self._show_outcome(Notice())

    def _save(self, form: str) -> None:
        """Save the race that is over in one of the forms of `RaceHead.save_wanted`."""
        race, studio = self.race, self._studio
        if race.verdict is None:
            return
        moment = race.moment(self._roles)
        if form == "picture":
            pc = studio.pcs.of(race.sides[1].run.request.device)
            inventory, engine = pc.sensors.inventory, pc.session.description
            cpu = inventory.cpu.name if inventory is not None else ""
            torch = engine.torch_version if engine is not None else ""
            self._paint("picture", picture_order(moment, local_now(), cpu, torch))
        elif form == "animation":
            self._paint("animation", film_order(moment))
        else:
            self._record()

    def _record(self) -> None:
        race = self.race
        try:
            contents = recording_from(
                self._studio,
                [side.run for side in race.sides],
                local_now(),
                kept_frames(race.sides),
            )
        except StudioError as error:
            self._fail(str(error))
            return
        name, kind = "race.jsonl", "Recording (*.jsonl)"
        self._show_outcome(save_as(self.window(), "Save recording", name, kind, contents))

    def _paint(self, form: str, order: PaintOrder) -> None:
        """Ask for the file, then let a child paint it."""
        path = ask_save_path(self.window(), f"Save {form}", *_PAINTED[form])
        if path:
            self._show_outcome(Notice(f"Painting the {form}…"))
            self._saving.save(order.encode(), Path(path))

    def open_stage(self) -> bool:
        self.show_stage()
        return True

    def show_stage(self) -> RaceStage:
        """Show the race on all of the screen that this window is on."""
        from gpu_studio.ui.race.race_stage import RaceStage  # 3 ms

        if self._stage is not None:
            self._stage.activateWindow()
            return self._stage
        stage = self._stage = RaceStage(self.race, self._theme, lambda: self._roles)
        stage.closed.connect(self._on_stage_closed)
        self._studio.closing.connect(stage.close)
        stage.setGeometry(self.window().screen().geometry())
        stage.showFullScreen()
        stage.activateWindow()
        return stage

    def _on_stage_closed(self) -> None:
        self._stage = None
        self._show()


def _short(size: int) -> str:
    """Return a size as it stands under the lever: ``512``, ``100k``, ``1M``."""
    for unit, letter in ((1_000_000, "M"), (1000, "k")):
        if size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)
