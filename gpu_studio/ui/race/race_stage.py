"""A race on a full screen: pictures, clocks and result alone, again and again until Esc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QWidget

from gpu_studio.core.notice import Tone
from gpu_studio.core.race.stage_view import FilmOrder, StageSide, StageView, times_of
from gpu_studio.core.units import format_duration, format_size
from gpu_studio.model.race import race_words
from gpu_studio.ui.race.stage import paint_stage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QCloseEvent, QImage, QKeyEvent, QMouseEvent, QPaintEvent

    from gpu_studio.core.race.photo import Detail
    from gpu_studio.model.race.race import Race
    from gpu_studio.model.race.race_side import RaceSide
    from gpu_studio.ui.theme import Theme

# How long a result stands before the race is shown again.
_RESULT_MS = 6000
# At a stand, a race is shown again so often before the next one is run.
_SHOWN_AGAIN = 1


class RaceStage(QWidget):
    """Shows the race on all of a screen, and again when it is over.

    Args:
        race: the race.
        theme: has the colors.
        roles: returns the colors of the sides.
        lens: returns what a lens shows.
        preview: returns what a side is to draw, before its first frame.
        runs_on: at a stand: run the race of the next picture after each result.

    Signals:
        closed(): the stage is gone.
    """

    closed = Signal()

    def __init__(
        self,
        race: Race,
        theme: Theme,
        roles: Callable[[], Sequence[str]],
        lens: Callable[[], Detail | None],
        preview: Callable[[RaceSide | None], QImage | None],
        *,
        runs_on: bool = False,
    ) -> None:
        super().__init__()
        self.setObjectName("race.stage")
        self.setWindowTitle("GPU Studio – Race")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setCursor(Qt.CursorShape.BlankCursor)
        self._race, self._theme = race, theme
        self._roles, self._lens, self._preview = roles, lens, preview
        self._runs_on, self._shown_again = runs_on, 0
        self._again = QTimer(self)
        self._again.setSingleShot(True)
        self._again.setInterval(_RESULT_MS)
        self._again.timeout.connect(self._go_on)
        race.moment_changed.connect(self.update)
        race.race_changed.connect(self._update)
        race.choices_changed.connect(self.update)
        theme.changed.connect(self.update)
        if self._runs_on and not race.sides:
            self._race.start()
        self._update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the moment."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._color("window"))
        view = stage_view(self._race, self._roles(), self._lens())
        to_come = [self._preview(side) for side in self._race.sides or (None,) * len(view.sides)]
        paint_stage(painter, QRectF(self.rect()), view, self._color, to_come)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Close with Esc or F11."""
        if event.key() in (Qt.Key.Key_Escape, Qt.Key.Key_F11):
            self.close()
        else:
            super().keyPressEvent(event)

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        """Close."""
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        """End what only this stage goes on with."""
        self._again.stop()
        self._race.clock.end_replay()
        if self._runs_on:
            self._race.stop()
        self.closed.emit()
        super().closeEvent(event)

    def _update(self) -> None:
        self.setAccessibleName(self._race.notice.sentence)
        is_waiting = self._race.state.is_busy or self._race.clock.is_replaying
        if is_waiting:
            self._again.stop()
        elif not self._again.isActive() and (self._race.sides or self._runs_on):
            self._again.start()
        self.update()

    def _go_on(self) -> None:
        """Show the race again, or run the next one."""
        race = self._race
        if self._runs_on and (not race.sides or self._shown_again >= _SHOWN_AGAIN):
            self._shown_again = 0
            if race.sides:
                race.choices.choose_next_picture()
            race.start()
            if not race.state.is_busy:  # the engine is not there yet, or this picture cannot run
                self._again.start()
            return
        self._shown_again += 1
        race.replay()

    def _color(self, role: str) -> QColor:
        return QColor(self._theme.colour(role))


def stage_view(race: Race, roles: Sequence[str], lens: Detail | None) -> StageView:
    """Return what the stage shows now.

    Args:
        race: what is shown of it is at its clock's time.
        roles: the colors of its sides.
        lens: what a lens shows of a learned picture.
    """
    notice = race.notice
    if not race.sides:
        chosen = zip(race.choices.chosen, roles, strict=False)
        return StageView(
            headline=notice.sentence,
            detail=race.what_is_missing or notice.detail,
            sides=tuple(StageSide(name=entry.label, role=role) for entry, role in chosen),
            foot="GPU Studio",
        )
    view = _view_at(race, roles, lens, race.clock.now_s)
    if race.state.is_busy:
        view = view._replace(headline=notice.sentence, detail=notice.detail)
    return view


def film_order(race: Race, roles: Sequence[str], lens: Detail | None) -> FilmOrder:
    """Return the order of the animation of a race that is over."""
    times = times_of(race.first_finish_s)
    return FilmOrder(
        moments=tuple((_view_at(race, roles, lens, now_s), shown_ms) for now_s, shown_ms in times)
    )


def _view_at(race: Race, roles: Sequence[str], lens: Detail | None, now_s: float) -> StageView:
    """Return what the stage shows of a race at a time of its clock."""
    is_result = race.is_result(now_s)
    headline, detail = race_words.progress(race.raced, race.sides, now_s).sentence, ""
    sides = zip(race.sides, roles, strict=False)
    trust = race_words.trust(race.verdict) if race.verdict is not None else None
    if is_result and race.verdict is not None:
        headline, detail = race.verdict.headline, _end_of(race)
    return StageView(
        headline=headline,
        detail=detail,
        sides=tuple(_side_at(race, side, role, now_s) for side, role in sides),
        foot=_foot_of(race),
        trust=trust.sentence if trust is not None and is_result else "",
        is_good=trust is not None and trust.tone is Tone.GOOD,
        lens=lens,
    )


def _foot_of(race: Race) -> str:
    """Return the picture, its size and the dtype."""
    requests = [side.run.request for side in race.sides]
    parts = (
        "GPU Studio",
        race.raced.title,
        format_size(requests[0].size, race.raced.size_text),
        " against ".join(dict.fromkeys(request.dtype for request in requests)),
        "in turns, each alone while it is timed",
    )
    return " · ".join(parts)


def _end_of(race: Race) -> str:
    """Return who was ahead, and the interval of the ratio; the sentence where nobody won."""
    assert race.verdict is not None
    finished = race.verdict.finished
    if finished.leader is None:
        return finished.sentence
    leader = race.sides[finished.leader]
    end = f"{leader.entry.label} was ahead when the time was up."
    if leader.is_reached:
        time = format_duration(leader.end_s)
        end = f"{leader.entry.label} finished after {time}. This is how far the other side was."
    return " · ".join(filter(None, (race_words.interval_text(finished), end)))


def _side_at(race: Race, side: RaceSide, role: str, now_s: float) -> StageSide:
    traits = race.raced.race
    assert traits is not None
    frame = side.at(now_s)
    achieved = (
        race_words.measure_text(frame.measure, traits) if frame and traits.measure_title else "",
        race_words.power_text(frame),
        race_words.energy_text(frame),
    )
    return StageSide(
        name=side.entry.label,
        role=role,
        picture=frame.picture if frame is not None else None,
        clock=race_words.clock_text(min(now_s, side.end_s)),
        pace=f"{race_words.pace_text(race.pace_of(side, now_s))} {traits.step_title}/s",
        steps=race_words.count_text(frame.steps if frame else 0, side.finish_steps, traits),
        achieved=" · ".join(filter(None, achieved)),
        share=frame.progress if frame is not None else 0.0,
        is_reached=side.is_reached and now_s + 1e-6 >= side.end_s,
    )
