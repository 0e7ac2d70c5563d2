"""The sensors of the PC that a command uses, read in the background."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gpu_studio.cli.answers import LOOK_S, Interrupt, Stream
from gpu_studio.cli.other_pc import TARGET
from gpu_studio.core import limits
from gpu_studio.core.devices.devices import Inventory, Reading
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.line_problem import LineProblem
from gpu_studio.hardware.client import SensorReader
from gpu_studio.line.clients import LineSensors


class SensorWatch:
    """This PC's sensors in the background; a context manager.

    Args:
        log_path: the file for the reader's standard error.
        period_s: the time between two readings. One reading 0.2 s after the inventory is enough for
            the CPU's utilization.
    """

    def __init__(self, log_path: Path, period_s: float = 0.2) -> None:
        if TARGET.pc is None:
            self._reader = SensorReader(period_s=period_s, log_path=log_path)
        else:
            self._reader = LineSensors(TARGET.pc, period_s=period_s)
        self._log_path = log_path
        self._stream = Stream(self._reader.readings())
        self._inventory: Inventory | None = None
        self._readings: list[Reading] = []

    def __enter__(self) -> SensorWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def inventory(self) -> Inventory:
        """Return this PC's devices with one reading of their sensors.

        Raises:
            StudioError: the driver does not answer, or the sensor reader ended.
        """
        is_here = TARGET.pc is None
        now = limits.current
        deadline_s = time.monotonic() + (now.terminal_sensors_s if is_here else now.terminal_line_s)
        while not self._stream.has_ended and time.monotonic() < deadline_s and not self._readings:
            self._on_event(self._stream.wait(LOOK_S))
        if self._inventory is None:
            raise StudioError(FailureKind.INTERNAL, self._why_none())
        if not self._readings:
            return self._inventory
        return _with_reading(self._inventory, self._readings[-1])

    def followed(self, interrupt: Interrupt) -> Iterator[Inventory]:
        """Yield this PC's devices with each further reading, until Ctrl-C or the reader's end."""
        inventory = self.inventory()
        while not self._stream.has_ended and not interrupt.is_asked:
            event = self._stream.wait(LOOK_S)
            if isinstance(event, Inventory):
                inventory = event
            elif event is not None:
                yield _with_reading(inventory, event)

    def readings(self) -> list[Reading]:
        """Return every reading since the start, oldest first."""
        while not self._stream.has_ended and (event := self._stream.wait(0.0)) is not None:
            self._on_event(event)
        return list(self._readings)

    def _on_event(self, event: Inventory | Reading | None) -> None:
        if isinstance(event, Inventory):
            self._inventory = event
        elif isinstance(event, Reading) and self._inventory is not None:
            self._readings.append(event)

    def _why_none(self) -> str:
        if TARGET.pc is not None:
            return LineProblem.NO_ANSWER.notice(TARGET.pc).words
        if self._stream.has_ended:
            return (
                "The sensor reader ended before its first reading; the log says why: "
                f"{self._log_path}"
            )
        return (
            "The sensor reader does not answer. If this PC has an NVIDIA card, its driver may "
            "hang: restart the PC, then try again."
        )


def read_inventory(log_path: Path) -> Inventory:
    """Return this PC's devices with one reading of their sensors.

    Raises:
        StudioError: the driver does not answer, or the sensor reader ended.
    """
    with SensorWatch(log_path) as watch:
        return watch.inventory()


def _with_reading(inventory: Inventory, reading: Reading) -> Inventory:
    devices = [msgspec.structs.replace(inventory.cpu, telemetry=reading.cpu)]
    for card in inventory.cards:
        now = reading.card(card)
        if now is None or now.error is not None:
            devices.append(card)
        else:
            devices.append(
                msgspec.structs.replace(card, telemetry=now.telemetry, processes=now.processes)
            )
    return msgspec.structs.replace(inventory, devices=tuple(devices))
