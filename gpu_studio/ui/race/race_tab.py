"""The Race tab: two contestants draw the same picture by the same code, in turn."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout

from gpu_studio.core.failure import StudioError
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.race.side import kept_frames
from gpu_studio.core.race.stage_view import film_order, trust
from gpu_studio.core.units import local_now
from gpu_studio.model.benchmark.recording import recording_from
from gpu_studio.model.race.race import OWN, Race
from gpu_studio.ui.ask_adapters import ask_press, ask_words
from gpu_studio.ui.eliding import RoomText
from gpu_studio.ui.page import Box, Columns, Flow, Own, Page
from gpu_studio.ui.page_controls import Pick, Switch
from gpu_studio.ui.page_parts import More, Press, Words
from gpu_studio.ui.parts import GAP, MARGIN, Role, Text
from gpu_studio.ui.race.race_lane import RaceLane
from gpu_studio.ui.race.size_lever import SizeLever, SizeMark
from gpu_studio.ui.saving import ask_open_path, ask_save_path, save_as
from gpu_studio.ui.tabs import TabContents
from gpu_studio.ui.theme import side_role
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QResizeEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.race.stage_view import PaintOrder
    from gpu_studio.model.pages import Destination
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.race.race_stage import RaceStage
    from gpu_studio.ui.theme import Theme

_HEADLINES: tuple[Role, ...] = ("hero_words", "headline", "title")
_NARROW = 1060  # pixels
_FILES = (
    "Pictures and recordings (*.png *.jpg *.jpeg *.jfif *.webp *.bmp *.gif *.jsonl);;All files (*)"
)


class RacePage(Page):
    """Choices and actions on top, the sentence, two equal pictures, and the size lever.

    Signals:
        full_screen_wanted(): the user wants the whole screen.
    """

    model: Race
    full_screen_wanted = Signal()

    def parts(self) -> Sequence[Part]:
        """Return the parts from top to bottom."""
        m = self.model
        self.lanes = [RaceLane(self.theme, name=f"race.{side}") for side in ("left", "right")]
        self.lever = SizeLever(self.theme, name="race.size")
        self.lever.chosen.connect(lambda size: m.choose(size=size))
        m.moment_changed.connect(self._show_lanes)

        def is_free() -> bool:
            return not m.state.is_busy

        def turn(words: str) -> Callable[[], str]:
            return lambda: f"{words}\n{m.left_out}".rstrip()

        return (
            Flow(
                Switch(of="picture", title="What the race draws", name="picture", enabled=is_free,
                       items=[*((one.title.partition(" ")[0], one.name) for one in m.pictures),
                              ("Your code", OWN)]),
                Press("Run race", m.start, name="run", primary=True, icon="flag", key="run",
                      enabled=lambda: m.can_run),
                Press("Stop race", m.stop, name="stop", icon="stop", key="stop",
                      enabled=lambda: m.state.is_busy),
                Press("Full screen", self.full_screen_wanted.emit, name="full_screen",
                      icon="full_screen",
                      tip="Only pictures, clocks and result, again and again; Esc ends it"),
                Press("Open…", self._open, name="open", enabled=is_free, shown=lambda: m.learns,
                      tip="Learn a photo of yours, or open a saved or recorded race"),
                Pick(of="photo", title="Picture to learn", name="photo", items=lambda: m.photos,
                     least_letters=10, enabled=is_free,
                     shown=lambda: m.learns and len(m.photos) > 1),
            ),
            Columns(
                Own(_Sentence, lambda sentence: sentence.show_words(m.notice.sentence), stretch=1),
                Flow(
                    ask_press(m, shown=lambda: not m.is_over),
                    Own(lambda: TrustChip(name="race.trust"), self._show_trust,
                        shown=lambda: m.verdict is not None and trust(m.verdict).sentence),
                    Press(lambda: "Stop watching" if m.is_replaying else "Watch again", m.replay,
                          name="replay", icon="refresh", shown=lambda: m.is_over),
                    More("Save", self._forms, name="save", icon="export", key="save",
                         shown=lambda: m.is_over, tip="Save this race to post, or to watch and "
                         "race against on another PC"),
                ),
            ),
            Own(lambda: RoomText("", "muted", name="race.outcome", lines=2),
                lambda text: text.show_notice(
                    m.outcome if m.outcome.sentence else Notice(m.reason))),
            ask_words(m),
            Columns(*(Own(lane, stretch=1) for lane in self.lanes), stretch=1),
            Box(Columns(
                Flow(
                    Pick(of="left", title="Contestant at the left", name="contestants.left",
                         items=lambda: m.contestants(0), least_letters=14, enabled=is_free,
                         tip=turn("Who runs first")),
                    Words("against", "muted", wraps=False),
                    Pick(of="right", title="Contestant at the right", name="contestants.right",
                         items=lambda: m.contestants(1), least_letters=14, enabled=is_free,
                         tip=turn("Who runs second")),
                ),
                Words(lambda: m.picture.size_title, "value", wraps=False, name="size.title",
                      shown=lambda: not self.is_narrow and len(m.picture.sizes) > 1),
                Own(self.lever, self._show_sizes, stretch=1,
                    shown=lambda: len(m.picture.sizes) > 1),
            )),
        )  # fmt: skip

    @property
    def roles(self) -> list[str]:
        """The colors of the two sides."""
        own = [self.theme.run_role(side.run) for side in self.model.shown_sides]
        return [side_role(role, number, own) for number, role in enumerate(own)]

    def update_parts(self) -> None:
        """Show the present state of the race, and its pictures."""
        super().update_parts()
        self._show_lanes()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave out the title of the lever where it is narrow."""
        super().resizeEvent(event)
        if (is_narrow := self.width() < _NARROW) is not self.is_narrow:
            self.turn(is_narrow=is_narrow)

    def _show_lanes(self) -> None:
        """Show both sides at the time of the race's clock."""
        if self.isVisible():
            for lane, view in zip(self.lanes, self.model.moment(self.roles).lanes(), strict=True):
                lane.show_lane(view)

    def _show_trust(self, chip: TrustChip) -> None:
        verdict = self.model.verdict
        chip.show_notice(trust(verdict) if verdict is not None else Notice())

    def _show_sizes(self, lever: SizeLever) -> None:
        m, roles = self.model, self.roles
        names = [entry.label for entry in m.chosen]
        marks = []
        for size in m.picture.sizes:
            leader = m.leaders.get(size, "")
            role = roles[names.index(leader)] if leader in names else ""
            marks.append(SizeMark(size, _short(size), leader, role))
        lever.show_sizes(marks, m.size)

    def _open(self) -> None:
        if path := ask_open_path(self.window(), "Open picture", _FILES):
            self.model.files.open_file(Path(path))

    def _forms(self) -> list[tuple[str, Callable[[], None]]]:
        """Return how the race that is over can be saved."""
        m = self.model
        png, webp = ("race.png", "PNG picture (*.png)"), ("race.webp", "WebP animation (*.webp)")
        return [
            ("Save &picture…",
             partial(self._paint, "picture", *png, lambda: m.picture_order(self.roles))),
            ("Save &animation…",
             partial(self._paint, "animation", *webp, lambda: film_order(m.moment(self.roles)))),
            ("Save &recording…", self._record),
        ]  # fmt: skip

    def _paint(self, form: str, name: str, kind: str, order: Callable[[], PaintOrder]) -> None:
        """Ask for the file, then let a child paint it."""
        if path := ask_save_path(self.window(), f"Save {form}", name, kind):
            self.model.note(Notice(f"Painting the {form}…"))
            self.model.files.save(order().encode(), Path(path))

    def _record(self) -> None:
        m = self.model
        runs = [side.run for side in m.sides]
        try:
            contents = recording_from(m.studio, runs, local_now(), kept_frames(m.sides))
        except StudioError as error:
            m.note(Notice(str(error), Tone.FAILURE))
            return
        kind = "Recording (*.jsonl)"
        m.note(save_as(self.window(), "Save recording", "race.jsonl", kind, contents))


class _Sentence(Text):
    """The headline, in the largest type in which it takes one line."""

    def __init__(self) -> None:
        super().__init__("", "hero_words", name="race.sentence", wraps=True)
        self.setMinimumHeight(self.room_for(_HEADLINES))

    def show_words(self, words: str) -> None:
        self.setText(words)
        self.fit_role(_HEADLINES, self.width())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit_role(_HEADLINES, self.width())


class RaceTab(TabContents):
    """One page; its model is `race`."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._studio, self._theme = studio, theme
        self.race = Race(studio, self)
        self._stage: RaceStage | None = None
        self.page = RacePage("race", self.race, theme)
        self.page.full_screen_wanted.connect(self.show_stage)
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, GAP, MARGIN, GAP)
        column.addWidget(self.page)

    def go_to(self, destination: Destination) -> None:
        """Start a race, of an adapter or of own code if they are named, or open a file."""
        if destination.device:
            self.race.choose_adapters(destination.device)
        if destination.code is not None and destination.workload is not None:
            self.race.race_code(destination.code, destination.workload)
        elif destination.starts:
            self.race.start()
        if destination.path is not None and not self.race.state.is_busy:
            self.race.note(Notice())
            self.race.files.open_file(destination.path)

    def open_stage(self) -> bool:
        self.show_stage()
        return True

    def show_stage(self) -> RaceStage:
        """Show the race on all of the screen that this window is on."""
        from gpu_studio.ui.race.race_stage import RaceStage  # 3 ms

        if self._stage is not None:
            self._stage.activateWindow()
            return self._stage
        stage = self._stage = RaceStage(self.race, self._theme, lambda: self.page.roles)
        stage.closed.connect(self._on_stage_closed)
        self._studio.closing.connect(stage.close)
        stage.setGeometry(self.window().screen().geometry())
        stage.showFullScreen()
        stage.activateWindow()
        return stage

    def _on_stage_closed(self) -> None:
        self._stage = None


def _short(size: int) -> str:
    """Return a size as it stands under the lever: ``512``, ``100k``, ``1M``."""
    for unit, letter in ((1_000_000, "M"), (1000, "k")):
        if size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)
