"""The sensors that an engine reads for its runs and its checks, the CPU's heat among them."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import psutil

from gpu_studio.core.clock_reasons import ClockReason
from gpu_studio.core.messages.check_messages import CheckedDevice
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.hardware.card_reader import (
    CardUnreadableError,
    DriverUnavailableError,
    no_lookup,
)
from gpu_studio.hardware.cpu import clock_mhz, critical_c, temperature_c
from gpu_studio.hardware.maker_cards import ProcessNames
from gpu_studio.hardware.makers import MAKERS
from gpu_studio.hardware.pci import is_slot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.core.devices.devices import CardLoad, CardState
    from gpu_studio.core.messages.engine_messages import TorchCard
    from gpu_studio.hardware.card_reader import CardReader, Maker, OpenCard

_Answer = TypeVar("_Answer")

_log = logging.getLogger(__name__)
_CPUS = Path("/sys/devices/system/cpu")
# Intel's count of how often the hardware lowered the clock because of heat, for each core and for
# the whole chip (Linux, drivers of the kernel).
_COUNTERS = "cpu[0-9]*/thermal_throttle/*_throttle_count"


class EngineSensor:
    """Reads cards by UUID or slot, and the CPU. It never raises: None means "unknown".

    It opens a driver at the first reading, when the engine already uses the card.

    Args:
        makers: whose cards there may be.
    """

    def __init__(self, makers: Sequence[Maker] = MAKERS) -> None:
        self._unopened = list(makers)
        self._readers: list[CardReader] = []
        self._reader_of: dict[str, CardReader] = {}
        self._cpu = CpuHeat()

    def read(self, uuid: str) -> CardState | None:
        return self._ask(uuid, lambda card: card.state(os.getpid()))

    def load(self, uuid: str) -> CardLoad | None:
        return self._ask(
            uuid,
            lambda card: card.load(os.getpid(), ProcessNames(self._reader_of[uuid].process_name)),
        )

    def power_w(self, uuid: str) -> float | None:
        return self._ask(uuid, lambda card: card.power_w())

    def engine_bytes(self, uuid: str) -> int | None:
        return self._ask(uuid, _own_bytes)

    def vitals(self, uuid: str) -> Telemetry | None:
        return self._ask(uuid, lambda card: card.vitals())

    def cpu_vitals(self) -> Telemetry | None:
        return self._cpu.read()

    def checked_cpu(self, address: str) -> CheckedDevice:
        return checked_cpu(address)

    def checked_device(
        self, uuid: str, address: str, torch_card: TorchCard | None
    ) -> CheckedDevice | None:
        return self._ask(
            uuid,
            lambda card: card.checked_device(address, self._reader_of[uuid].driver(), torch_card),
        )

    def _ask(self, uuid: str, question: Callable[[OpenCard], _Answer | None]) -> _Answer | None:
        try:
            card = self._card(uuid)
            return None if card is None else question(card)
        except CardUnreadableError as error:
            _log.warning("%s: %s", uuid, error)
        return None

    def _card(self, uuid: str) -> OpenCard | None:
        """Return the card from the reader that knows it; the last one raises for an unknown card.

        No error is kept here for later: an error and the frame that keeps it hold each other, and
        with them the callers' tensors.
        """
        self._open()
        known = self._reader_of.get(uuid)
        readers = [known] if known else self._readers
        for reader in readers[:-1]:
            with contextlib.suppress(CardUnreadableError):
                return self._card_of(reader, uuid)
        return self._card_of(readers[-1], uuid) if readers else None

    def _card_of(self, reader: CardReader, uuid: str) -> OpenCard:
        card = reader.card_at(uuid) if is_slot(uuid) else reader.card_with(uuid)
        self._reader_of[uuid] = reader
        return card

    def _open(self) -> None:
        while self._unopened:
            maker = self._unopened.pop(0)
            try:
                self._readers.append(maker.open())
            except DriverUnavailableError as error:
                _log.warning("No sensors of %s: %s", maker.name, error)


def _own_bytes(card: OpenCard) -> int | None:
    listed = card.processes(no_lookup)
    own = (process.memory_bytes for process in listed if process.pid == os.getpid())
    return next(own, None)


class CpuHeat:
    """Reads the CPU; a counter that rose since the last reading is a brake."""

    def __init__(self, cpus: Path = _CPUS) -> None:
        self._cpus = cpus
        self._last: int | None = None

    def read(self) -> Telemetry | None:
        """Return one reading; None if the system reports neither heat nor clock nor brakes."""
        degrees, clock, reasons = temperature_c(), clock_mhz(), self._reasons()
        if degrees is None and clock is None and reasons is None:
            return None
        return Telemetry(temperature_c=degrees, sm_clock_mhz=clock, clock_event_reasons=reasons)

    def _reasons(self) -> ClockReason | None:
        counts = [_count(path) for path in self._cpus.glob(_COUNTERS)]
        known = [count for count in counts if count is not None]
        if not known:
            return None
        before, self._last = self._last, sum(known)
        has_risen = before is not None and self._last > before
        return ClockReason.HARDWARE_HEAT if has_risen else ClockReason(0)


def checked_cpu(address: str) -> CheckedDevice:
    """Return what the system says of the CPU, for the record; its name is left to others."""
    return CheckedDevice(
        address=address, name=address, slowdown_c=critical_c(), is_laptop=_has_battery()
    )


def _has_battery() -> bool:
    try:
        return psutil.sensors_battery() is not None
    except (AttributeError, OSError, RuntimeError):
        return False  # not on every system


def _count(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
