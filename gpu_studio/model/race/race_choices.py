"""The choices of a race: its picture, its size and its contestants."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.device_name import is_cpu, name_at, pc_of
from gpu_studio.core.race.contestant import Contestant, usual_contestants
from gpu_studio.core.race.pictures import LEARN, PICTURES
from gpu_studio.core.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.core.race.side import RaceSide
    from gpu_studio.model.race.race_photo import RacePhoto
    from gpu_studio.model.studio import Studio


class RaceEntry(NamedTuple):
    """A contestant to choose.

    Attributes:
        contestant: what runs, on a device by its name in this engine.
        label: its name in a list and on its picture.
        identity: its device's permanent name; empty for a run from elsewhere.
    """

    contestant: Contestant
    label: str
    identity: str = ""

    @property
    def choice(self) -> Contestant:
        """The contestant on its device by the permanent name: the same in every engine."""
        return msgspec.structs.replace(self.contestant, device=self.identity)


class RaceChoices(QObject):
    """What the next race is to be.

    Signals:
        changed(): another size or contestant is chosen or can be.
        size_changed(): another size is chosen; only the size differs from the last race.
        question_changed(): the next race is about something else than the last one.

    Attributes:
        photo: the picture to learn.
        is_locked: whether a race runs, so that only its size and its contestants can be chosen.
        ghost: the run from elsewhere that the next race is against.
    """

    changed = Signal()
    size_changed = Signal()
    question_changed = Signal()

    def __init__(self, studio: Studio, photo: RacePhoto, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio, self.photo = studio, photo
        self.is_locked = False
        self.ghost: RaceSide | None = None
        self._picture_name = PICTURES[0].name
        self._sizes: dict[str, int] = {}
        self._contestants: tuple[Contestant, Contestant] | None = None
        photo.changed.connect(self._on_photo_changed)
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
    def learns(self) -> bool:
        """Whether the chosen picture is learned from a photo."""
        return self.picture.name == LEARN.name

    @property
    def size(self) -> int:
        """The chosen size."""
        picture = self.picture
        assert picture.race is not None
        return self._sizes.get(picture.name, picture.race.default_size)

    @property
    def entries(self) -> tuple[RaceEntry, ...]:
        """The contestants of all PCs: the usual precision first, the CPUs before the cards."""
        board, picture = self._studio.board, self.picture
        entries: list[RaceEntry] = []
        for dtype in picture.dtypes:
            suffix = "" if dtype == picture.dtypes[0] else f", {dtype}"
            for cpu in board.cpus:
                if cpu.address is None:  # of a PC that is not connected
                    continue
                for threads, label in self._cpu_threads(cpu.address):
                    contestant = Contestant(device=cpu.address, threads=threads, dtype=dtype)
                    name = name_at(cpu.pc, label + suffix)
                    entries.append(RaceEntry(contestant, name, cpu.identity))
            for card in board.usable_cards:
                contestant = Contestant(device=card.address or "", dtype=dtype)
                entries.append(RaceEntry(contestant, card.label + suffix, card.identity))
        return tuple(entries)

    @property
    def left_out(self) -> str:
        """Why some cards cannot race, a line for each; empty if all can."""
        cards = self._studio.board.cards
        return "\n".join(f"{card.label}: {card.reason}" for card in cards if card.obstacle)

    @property
    def chosen(self) -> tuple[RaceEntry, RaceEntry]:
        """The contestants of the next race; a ghost from elsewhere stands at the left."""
        entries = {entry.choice: entry for entry in self.entries}
        if self._contestants is None or any(one not in entries for one in self._contestants):
            left, right = self._usual(tuple(entries.values()), pc="")
        else:
            left, right = (entries[one] for one in self._contestants)
        return (left if self.ghost is None else _entry_of(self.ghost)), right

    @property
    def problem(self) -> str:
        """Why the chosen picture cannot be drawn here; empty if it can."""
        return self.picture.skipped

    @property
    def question(self) -> tuple[object, ...]:
        """What must be the same for two races to differ only in their size."""
        return self.picture.name, self.chosen, self.photo.identity

    def choose_picture(self, name: str) -> None:
        """Choose what is drawn."""
        if name != self._picture_name and not self.is_locked:
            self._picture_name = name
            self.ghost = None
            self.question_changed.emit()

    def choose_size(self, size: int) -> None:
        """Choose how large the picture is."""
        if size != self.size:
            self._sizes[self.picture.name] = size
            self.changed.emit()
            self.size_changed.emit()

    def choose_contestant(self, side: int, contestant: Contestant) -> None:
        """Choose one of the entries for a side, 0 for the left one; a ghost there leaves.

        Both take turns in one engine: with a device of another PC, the other side changes, too.
        """
        if side == 0:
            self.ghost = None
        chosen = list(self.chosen)
        chosen[side] = next(one for one in self.entries if one.contestant == contestant)
        pc = pc_of(contestant.device)
        if self.ghost is None and pc != pc_of(chosen[1 - side].contestant.device):
            usual = self._usual(self.entries, pc)
            chosen[1 - side] = next((one for one in usual if one != chosen[side]), usual[0])
        self._contestants = (chosen[0].choice, chosen[1].choice)
        if not self.is_locked:
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

    def _cpu_threads(self, address: str) -> list[tuple[int | None, str]]:
        engine = self._studio.pcs.session_of(address).description
        count = engine.cpu_threads if engine is not None else 0
        known = f"CPU, {counted(count, 'thread')}" if count else "CPU, all threads"
        return [(1, "CPU, 1 thread"), *([] if count == 1 else [(None, known)])]

    def _usual(self, entries: Sequence[RaceEntry], pc: str) -> tuple[RaceEntry, RaceEntry]:
        """Return the race that is offered first on a PC.

        On a single core without a card, two precisions race.
        """
        entries = [one for one in entries if pc_of(one.contestant.device) == pc]
        devices = dict.fromkeys(entry.contestant.device for entry in entries)
        cpu = next(filter(is_cpu, devices))
        threads = 2 if len(self._cpu_threads(cpu)) > 1 else 1
        usual = usual_contestants([one for one in devices if not is_cpu(one)], threads, cpu)
        first = [entry for one in usual for entry in entries if entry.contestant == one]
        others = [one for one in entries if one.contestant.dtype != usual[0].dtype]
        left, right, *_ = (*first, *others, *first)
        return left, right

    def _on_photo_changed(self) -> None:
        if not self.is_locked:
            self.question_changed.emit()


def _entry_of(ghost: RaceSide) -> RaceEntry:
    request = ghost.run.request
    threads = request.race.threads if request.race is not None else None
    contestant = Contestant(device=request.device, threads=threads, dtype=request.dtype)
    return RaceEntry(contestant, ghost.label)
