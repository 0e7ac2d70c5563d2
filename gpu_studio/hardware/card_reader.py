"""What reads the cards of one maker, under one set of names.

A new maker is a folder beside `nvidia` and a line in `makers.MAKERS`. Its reader fills the types of
`core`: a value that a card does not report is None, and what cannot be read at all says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gpu_studio.core.devices.devices import Device, GpuProcess
from gpu_studio.core.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpu_studio.core.devices.devices import CardLoad, CardState, Driver, Unreadable
    from gpu_studio.core.messages.check_messages import CheckedDevice
    from gpu_studio.core.messages.engine_messages import TorchCard
    from gpu_studio.hardware.pci import DisplayAdapter

ProcessLookup = Callable[[int], tuple[str, "str | None"]]
"""Returns the name and the user of a process id; an unknown name is empty."""


def no_lookup(_pid: int) -> tuple[str, str | None]:
    """Look up nothing, where no names of processes are needed: a lookup reads files."""
    return "", None


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


class OpenCard(Protocol):
    """One card of an open reader. All but `describe` raise `CardUnreadableError` for a lost one."""

    def describe(self, index: int | None, lookup: ProcessLookup) -> Device:
        """Return all facts and sensors; ``unreadable`` of it says that the card is lost."""

    def telemetry(self) -> Telemetry:
        """Return one reading of the sensors."""

    def processes(self, lookup: ProcessLookup) -> tuple[GpuProcess, ...]:
        """Return the processes on the card, by process id."""

    def state(self, own_pid: int) -> CardState:
        """Return what decides whether a time can be trusted."""

    def load(self, own_pid: int, lookup: ProcessLookup) -> CardLoad:
        """Return how busy the card is, and which other program keeps it busy."""

    def power_w(self) -> float | None:
        """Return the power that the card takes now."""

    def vitals(self) -> Telemetry:
        """Return what a check reads every second."""

    def checked_device(
        self, address: str, driver: Driver, torch_card: TorchCard | None
    ) -> CheckedDevice:
        """Return the facts for the record of a check; ``torch_card`` is PyTorch's account."""


class CardReader(Protocol):
    """An open session with a maker's driver; it may keep a laptop's card awake until `close`."""

    def driver(self) -> Driver:
        """Return the driver's facts."""

    def count(self) -> int:
        """Return the number of cards that the driver serves."""

    def card(self, index: int) -> OpenCard:
        """Return the card with the driver's number; raises `CardUnreadableError`."""

    def card_at(self, slot: str) -> OpenCard:
        """Return the card in a slot, without touching any other card; raises like `card`.

        Args:
            slot: `DisplayAdapter.slot` of the card.
        """

    def card_with(self, uuid: str) -> OpenCard:
        """Return the card with a UUID; raises like `card`."""

    def process_name(self, pid: int) -> str | None:
        """Return the driver's name of a process that the system hides."""

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


def processes_of(
    held_bytes: Mapping[int, int | None], kinds: Mapping[int, str], lookup: ProcessLookup
) -> tuple[GpuProcess, ...]:
    """Return the processes on a card, by process id.

    Args:
        held_bytes: the memory that each process has on the card; None if the system hides it.
        kinds: what each one does there; a process without a kind draws.
        lookup: returns the name and the user of a process id.
    """
    found = []
    for pid in sorted(held_bytes):
        name, user = lookup(pid)
        found.append(
            GpuProcess(
                pid=pid,
                name=name or "unknown",
                user=user,
                kind=kinds.get(pid, "graphics"),
                memory_bytes=held_bytes[pid],
            )
        )
    return tuple(found)


def kind_of(maker: str) -> str:
    """Return PyTorch's word for the cards of a maker; another word if it cannot use any."""
    return _KINDS.get(maker, _NO_KIND)


def vitals_of(now: Telemetry) -> Telemetry:
    """Return what a check reads every second, as far as a reading of the sensors has it."""
    return Telemetry(
        temperature_c=now.temperature_c,
        hotspot_c=now.hotspot_c,
        memory_temperature_c=now.memory_temperature_c,
        sm_clock_mhz=now.sm_clock_mhz,
        memory_clock_mhz=now.memory_clock_mhz,
        power_w=now.power_w,
        fan_percent=now.fan_percent,
        clock_event_reasons=now.clock_event_reasons,
        pcie_generation=now.pcie_generation,
        pcie_width=now.pcie_width,
    )


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
