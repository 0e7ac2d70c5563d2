"""The choices of a race: its picture, its size and its contestants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.messages.race_messages import MOST_SEEDS
from gpu_studio.core.race.pictures import PICTURES
from gpu_studio.model.race.race_entries import first_contestants, race_entries

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.core.race.contestant import Contestant
    from gpu_studio.model.race.race_entries import RaceEntry
    from gpu_studio.model.race.race_photo import RacePhoto
    from gpu_studio.model.race.race_side import RaceSide
    from gpu_studio.model.studio import Studio


class RaceChoices(QObject):
    """What the next race is to be.

    Signals:
        changed(): another size or contestant is chosen or can be.
        size_changed(): another size is chosen; only the size differs from the last race.
        question_changed(): the next race is about something else than the last one.

    Attributes:
        photo: the picture to learn.
        is_locked: whether a race runs, so that only its size and its contestants can be chosen.
        seeds: where a pattern begins to grow; empty for the usual places.
        ghost: the run from elsewhere that the next race is against.
    """

    changed = Signal()
    size_changed = Signal()
    question_changed = Signal()

    def __init__(self, studio: Studio, photo: RacePhoto, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio, self.photo = studio, photo
        self.is_locked = False
        self.seeds: tuple[tuple[float, float], ...] = ()
        self.ghost: RaceSide | None = None
        self._picture_name = PICTURES[0].name
        self._sizes: dict[str, int] = {}
        self._contestants: tuple[Contestant, Contestant] | None = None
        self._photo_identity = photo.identity
        photo.changed.connect(self._photo_changed)
        studio.session.engine_described.connect(self.changed)
        studio.board.changed.connect(self.changed)

    @property
    def pictures(self) -> tuple[WorkloadDescription, ...]:
        """The pictures that can be drawn."""
        engine = self._studio.session.description
        return (engine.pictures if engine is not None else ()) or PICTURES

    @property
    def picture(self) -> WorkloadDescription:
        """The chosen picture."""
        named = (one for one in self.pictures if one.name == self._picture_name)
        return next(named, self.pictures[0])

    @property
    def size(self) -> int:
        """The chosen size."""
        picture = self.picture
        assert picture.race is not None
        return self._sizes.get(picture.name, picture.race.default_size)

    @property
    def entries(self) -> tuple[RaceEntry, ...]:
        """The contestants that can be chosen."""
        engines = {pc.name: pc.session.description for pc in self._studio.pcs.all}
        return race_entries(self.picture, self._studio.board, engines)

    @property
    def left_out(self) -> str:
        """Why some cards cannot race, a line for each; empty if all can."""
        cards = (card for card in self._studio.board.cards if card.obstacle is not None)
        return "\n".join(f"{card.label}: {card.reason}" for card in cards)

    @property
    def chosen(self) -> tuple[RaceEntry, RaceEntry]:
        """The contestants of the next race; a ghost from elsewhere stands at the left."""
        entries = {entry.choice: entry for entry in self.entries}
        chosen = self._contestants
        if chosen is None or any(one not in entries for one in chosen):
            entries = {entry.contestant: entry for entry in entries.values()}
            engine = self._studio.session.description
            chosen = first_contestants(tuple(entries.values()), engine)
        left, right = (entries[one] for one in chosen)
        return (self.ghost.entry if self.ghost is not None else left), right

    @property
    def used_seeds(self) -> tuple[tuple[float, float], ...]:
        """The seeds of the chosen picture; empty for one that does not grow."""
        return self.seeds if self.picture.name == "grow" else ()

    @property
    def problem(self) -> str:
        """Why the chosen picture cannot be drawn here; empty if it can."""
        return self.picture.skipped

    @property
    def question(self) -> tuple[object, ...]:
        """What must be the same for two races to differ only in their size."""
        return self.picture.name, self.chosen, self.photo.identity, self.seeds

    def choose_picture(self, name: str) -> None:
        """Choose what is drawn."""
        if name != self._picture_name and not self.is_locked:
            self._picture_name = name
            self.ghost = None
            self.question_changed.emit()

    def choose_next_picture(self) -> None:
        """Choose the picture after this one, and after the last one the first."""
        names = [one.name for one in self.pictures if not one.skipped]
        if names:
            place = names.index(self._picture_name) if self._picture_name in names else -1
            self.choose_picture(names[(place + 1) % len(names)])

    def choose_size(self, size: int) -> None:
        """Choose how large the picture is."""
        if size != self.size:
            self._sizes[self.picture.name] = size
            self.changed.emit()
            self.size_changed.emit()

    def choose_contestant(self, side: int, contestant: Contestant) -> None:
        """Choose one of the entries for a side, 0 for the left one."""
        chosen = [entry.choice for entry in self.chosen]
        if side == 0:
            self.ghost = None
        same = (one.choice for one in self.entries if one.contestant == contestant)
        chosen[side] = next(same, contestant)
        self._contestants = (chosen[0], chosen[1])
        if not self.is_locked:
            self.question_changed.emit()

    def add_seed(self, x: float, y: float) -> None:
        """Let the pattern also begin to grow at a place, as shares of width and height."""
        if not self.is_locked and len(self.seeds) < MOST_SEEDS:
            self.seeds = (*self.seeds, (min(max(x, 0.0), 1.0), min(max(y, 0.0), 1.0)))
            self.question_changed.emit()

    def clear_seeds(self) -> None:
        """Let the pattern begin at the usual places."""
        self.seeds = ()
        self.question_changed.emit()

    def race_against(self, ghost: RaceSide | None, picture: str, size: int) -> bool:
        """Choose a run from elsewhere to race against, at its picture and size.

        Args:
            ghost: the run; None if only the picture and the size are chosen.
            picture: the name of its picture.
            size: its size.

        Returns:
            Whether that can be chosen now.
        """
        if self.is_locked or all(one.name != picture for one in self.pictures):
            return False
        self._picture_name = picture
        self._sizes[picture] = size
        self.ghost = ghost
        self.question_changed.emit()
        return True

    def _photo_changed(self) -> None:
        """Ask the question again for another photo, but not if one was only opened."""
        if self.photo.identity != self._photo_identity:
            self._photo_identity = self.photo.identity
            if not self.is_locked:
                self.question_changed.emit()
