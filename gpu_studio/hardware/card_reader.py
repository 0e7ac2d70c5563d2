"""What reads the cards of one maker, under one set of names.

A new maker is a folder beside `nvidia` and a line in `makers.MAKERS`. Its reader fills the types of
`core`: a value that a card does not report is None, and what cannot be read at all says why.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from gpu_studio.core.devices.devices import Device, GpuProcess
from gpu_studio.core.telemetry import SENSORS, Telemetry

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpu_studio.core.devices.devices import Driver, Unreadable
    from gpu_studio.hardware.pci import DisplayAdapter


class DriverUnavailableError(Exception):
    """The maker's driver cannot be asked; ``driver`` says why."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver.error)
        self.driver = driver


class CardUnreadableError(Exception):
    """A card that cannot be read at all; the text says why, and ``code`` says it to programs."""

    def __init__(self, sentence: str, code: Unreadable = "unknown") -> None:
        super().__init__(sentence)
        self.code: Unreadable = code


NOT_THERE = "There is no card in this slot."


class OpenCard(Protocol):
    """One card of an open reader. Its methods raise `CardUnreadableError` for a lost one."""

    def describe(self) -> Device:
        """Return the facts that do not change, without sensors and processes."""

    def telemetry(self, fields: Collection[str] = SENSORS) -> Telemetry:
        """Return one reading.

        Args:
            fields: those of `Telemetry` to read; some take long, or hang with some drivers.
        """

    def processes(self, *, with_load: bool = False) -> tuple[GpuProcess, ...]:
        """Return the processes on the card by process id, without names and users.

        Args:
            with_load: whether to read how busy each one keeps the card, if the driver says it.
        """


class CardReader(ABC):
    """An open session with a maker's driver; it may keep a laptop's card awake until `close`."""

    @abstractmethod
    def driver(self) -> Driver:
        """Return the driver's facts."""

    @abstractmethod
    def card(self, which: int | str) -> OpenCard:
        """Return a card, without touching any other one; raises `CardUnreadableError`.

        Args:
            which: the driver's number, `DisplayAdapter.slot`, or the UUID.
        """

    def count(self) -> int:
        """Return the number of cards in the driver's own list; 0 without one."""
        return 0

    def process_name(self, pid: int) -> str | None:
        """Return the driver's name of a process that the system hides."""
        return None

    @abstractmethod
    def close(self) -> None:
        """End the session."""


@dataclass(frozen=True, kw_only=True)
class Maker:
    """One maker of cards.

    Attributes:
        name: as it is written on the screen.
        claims: whether a card on the bus is one of these.
        kind: PyTorch's word for the cards, the first part of their addresses.
        open: opens a session with the driver, or raises `DriverUnavailableError`.
        running_version: the version of the driver that runs, without a session; wakes no card.
        library_version: the version of the driver's library that this process uses.
        is_replaced: whether an update has replaced that library on the disk.
        is_system: the system reads the cards, of whatever makers they are. They are opened by
            their slots, and only an engine knows PyTorch's numbers of them.
    """

    name: str
    claims: Callable[[DisplayAdapter], bool]
    kind: str
    open: Callable[[], CardReader]
    running_version: Callable[[], str | None] = lambda: None
    library_version: Callable[[], str | None] = lambda: None
    is_replaced: Callable[[], bool] = lambda: False
    is_system: bool = False


_KINDS = {"NVIDIA": "cuda", "AMD": "cuda", "Intel": "xpu"}
_NO_KIND = "display"
_TOLERANCE = 0.02  # two counters are not of the same instant


Sources = Mapping["str | tuple[str, ...]", Callable[[], Any]]
"""How each field of a reading is read; several that one question answers have one entry."""


def read_from(sources: Sources, wanted: Collection[str]) -> Telemetry:
    """Return a reading of the wanted fields."""
    values: dict[str, Any] = {}
    for names, read in sources.items():
        if isinstance(names, str):
            if names in wanted:
                values[names] = read()
        elif not set(names).isdisjoint(wanted):
            values |= zip(names, read(), strict=True)
    return Telemetry(**values)


@dataclass(slots=True)
class AdapterUse:
    """What programs do with one adapter; None for what Windows does not say.

    Attributes:
        percent: how busy its busiest engine is.
        own_bytes: the card's own memory in use.
        shared_bytes: the PC's memory in use by it.
        processes: the bytes of each process, by its id: own and shared.
        computing: the processes that were seen to compute.
        drawing: those that were seen to draw.
        tells_apart: whether it has an engine for computing alone. If not, one that draws may
            compute.
        busy_percent: how busy each process keeps the engine that it uses most.
    """

    percent: float | None = None
    own_bytes: int | None = None
    shared_bytes: int | None = None
    processes: dict[int, tuple[int, int]] | None = None
    computing: set[int] = field(default_factory=set)
    drawing: set[int] = field(default_factory=set)
    tells_apart: bool = False
    busy_percent: dict[int, float] | None = None

    def kind(self, pid: int) -> str:
        """Return what a process does here, as in `GpuProcess.kind`."""
        computes = pid in self.computing or (pid in self.drawing and not self.tells_apart)
        words = {"compute": computes, "graphics": pid in self.drawing}
        return " and ".join(word for word, is_so in words.items() if is_so)

    def held_bytes(self, total_bytes: int | None, used_bytes: int | None) -> dict[int, int | None]:
        """Return the card's own memory of each process; None where the counter cannot be right.

        That of Windows' desktop is known to grow beyond the card.

        Args:
            total_bytes: the card's memory; None if unknown.
            used_bytes: how much of it is in use; None if unknown.
        """
        held: dict[int, int | None] = {pid: own for pid, (own, _) in (self.processes or {}).items()}
        most = total_bytes if used_bytes is None else used_bytes
        if most is None:
            return held
        tolerance = _TOLERANCE * (total_bytes or most)
        known = sorted((pid for pid in held if held[pid]), key=lambda pid: held[pid] or 0)
        excess = sum(held[pid] or 0 for pid in known) - most
        while excess > tolerance and known:
            # The smallest one that explains it all; if none does, the largest is wrong too.
            enough = [pid for pid in known if (held[pid] or 0) + tolerance >= excess]
            wrong = enough[0] if enough else known.pop()
            excess -= held[wrong] or 0
            held[wrong] = None
        return held


def processes_of(
    held_bytes: Mapping[int, int | None],
    kinds: Mapping[int, str],
    busy_percent: Mapping[int, float] | None = None,
    shared_bytes: Mapping[int, int] | None = None,
) -> tuple[GpuProcess, ...]:
    """Return the processes on a card, by process id, without their names.

    Args:
        held_bytes: the memory that each process has on the card; None if the system hides it.
        kinds: what each one does there; of one without a kind nothing says it.
        busy_percent: each one's part of the card's time, 0 for one that is not named; None if it
            was not read.
        shared_bytes: the PC's memory that each has through the card.
    """
    return tuple(
        GpuProcess(
            pid=pid,
            kind=kinds.get(pid, ""),
            memory_bytes=held_bytes[pid],
            busy_percent=None if busy_percent is None else min(busy_percent.get(pid, 0.0), 100.0),
            shared_bytes=(shared_bytes or {}).get(pid),
        )
        for pid in sorted(held_bytes)
    )


def kind_of(maker: str) -> str:
    """Return PyTorch's word for the cards of a maker; another word if it cannot use any."""
    return _KINDS.get(maker, _NO_KIND)


def unreadable_card(maker: str, kind: str, index: int | None, error: CardUnreadableError) -> Device:
    """Return a card that could not be read; only the reason is known."""
    return Device(
        kind=kind,
        maker=maker,
        name=f"{maker} card" if index is None else f"{maker} card {index}",
        driver_index=index,
        unreadable=str(error),
        unreadable_code=error.code,
    )
