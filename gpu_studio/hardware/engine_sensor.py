"""The sensors that an engine reads for its runs and its checks."""

from __future__ import annotations

import contextlib
import logging
import os
from typing import TYPE_CHECKING, TypeVar

import msgspec

from gpu_studio.core.device_name import CPU
from gpu_studio.core.devices.card_programs import busiest_other
from gpu_studio.core.telemetry import SENSORS, Telemetry
from gpu_studio.hardware.card_reader import CardUnreadableError, DriverUnavailableError
from gpu_studio.hardware.cpu import CpuHeat, describe_cpu
from gpu_studio.hardware.makers import MAKERS
from gpu_studio.hardware.processes import ProcessBook

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from gpu_studio.core.devices.devices import Device, GpuProcess
    from gpu_studio.hardware.card_reader import CardReader, Maker, OpenCard

_Answer = TypeVar("_Answer")

_log = logging.getLogger(__name__)


class EngineSensor:
    """See `engine.sensor.Sensor`.

    It opens a driver at the first reading, when the engine already uses the card.

    Args:
        makers: whose cards there may be.
    """

    def __init__(self, makers: Sequence[Maker] = MAKERS) -> None:
        self._unopened = list(makers)
        self._readers: list[CardReader] = []
        self._reader_of: dict[str, CardReader] = {}
        self._devices: dict[str, Device] = {}
        self._cpu = CpuHeat()

    def read(self, identity: str, wanted: Collection[str] = SENSORS) -> Telemetry | None:
        if identity == CPU:
            return self._cpu.read()
        return self._ask(identity, lambda card: card.telemetry(wanted))

    def device(self, identity: str) -> Device | None:
        if identity not in self._devices:
            device = self._describe(identity)
            if device is None:
                return None
            self._devices[identity] = device
        return self._devices[identity]

    def cards(self) -> Sequence[Device]:
        self._open()
        found: dict[str, Device] = {}
        for reader in self._readers:  # the last one knows every card, but less of it
            for index in range(reader.count()):
                with contextlib.suppress(CardUnreadableError, IndexError):
                    one = reader.card(index).describe()
                    found.setdefault(one.pci_bus_id or one.identity, one)
        return tuple(found.values())

    def processes(self, identity: str) -> tuple[GpuProcess, ...]:
        return self._ask(identity, lambda card: card.processes()) or ()

    def busiest_program(self, identity: str) -> str:
        return self._ask(identity, lambda card: self._busiest(identity, card)) or ""

    def _busiest(self, identity: str, card: OpenCard) -> str:
        pid = busiest_other(card.processes(with_load=True), os.getpid())
        book = ProcessBook(self._reader_of[identity].process_name)
        return "" if pid is None else book.name(pid)

    def _describe(self, identity: str) -> Device | None:
        if identity == CPU:
            return describe_cpu(Telemetry())
        device = self._ask(identity, lambda card: card.describe())
        if device is None or device.driver_version is not None:
            return device
        version = self._reader_of[identity].driver().version
        return msgspec.structs.replace(device, driver_version=version)

    def _ask(self, identity: str, question: Callable[[OpenCard], _Answer]) -> _Answer | None:
        try:
            card = self._card(identity)
            return None if card is None else question(card)
        except CardUnreadableError as error:
            _log.warning("%s: %s", identity, error)
        return None

    def _card(self, identity: str) -> OpenCard | None:
        """Return the card from the reader that knows it; the last one raises for an unknown card.

        No error is kept here for later: an error and the frame that keeps it hold each other, and
        with them the callers' tensors.
        """
        self._open()
        known = self._reader_of.get(identity)
        readers = [known] if known else self._readers
        for reader in readers[:-1]:
            with contextlib.suppress(CardUnreadableError):
                return self._card_of(reader, identity)
        return self._card_of(readers[-1], identity) if readers else None

    def _card_of(self, reader: CardReader, identity: str) -> OpenCard:
        card = reader.card(identity)
        self._reader_of[identity] = reader
        return card

    def _open(self) -> None:
        while self._unopened:
            maker = self._unopened.pop(0)
            try:
                self._readers.append(maker.open())
            except DriverUnavailableError as error:
                _log.warning("No sensors of %s: %s", maker.name, error)
