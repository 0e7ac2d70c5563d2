"""An engine's answers and the PC's sensors for a terminal: Ctrl-C works while either is waited for.

Both are iterated on a thread of their own, since a driver's call or a pipe that never answers would
hold the terminal.
"""

from __future__ import annotations

import queue
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from gpu_studio.core.devices import CardReading, Inventory, Reading
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.protocol import DescribeEngine, EngineDescribed, EngineEnded, RequestFailed
from gpu_studio.core.runs import describe_exit
from gpu_studio.hardware.client import SensorReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gpu_studio.core.engine import Engine
    from gpu_studio.core.protocol import Event, Request

_T = TypeVar("_T")
_LOOK_S = 0.1
_STOP_PATIENCE_S = 1.0
_SENSORS_PATIENCE_S = 15.0


class Stream(Generic[_T]):
    """An iterable, iterated by another thread; `wait` gives what has come."""

    def __init__(self, source: Iterable[_T]) -> None:
        self._arrived: queue.SimpleQueue[tuple[bool, _T | None]] = queue.SimpleQueue()
        self.has_ended = False
        threading.Thread(target=self._pump, args=(source,), daemon=True).start()

    def wait(self, timeout_s: float) -> _T | None:
        """Return the next value, or None when none came in time or `has_ended`."""
        try:
            is_value, value = self._arrived.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self.has_ended = not is_value
        return value

    def _pump(self, source: Iterable[_T]) -> None:
        try:
            for value in source:
                self._arrived.put((True, value))
        finally:
            self._arrived.put((False, None))


class Interrupt:
    """Whether Ctrl-C was pressed; a second one breaks off at once."""

    def __init__(self) -> None:
        self.is_asked = False

    @contextmanager
    def heard(self) -> Iterator[Interrupt]:
        """Note Ctrl-C in this object instead of raising KeyboardInterrupt."""
        before = signal.signal(signal.SIGINT, self._hear)
        try:
            yield self
        finally:
            signal.signal(signal.SIGINT, before)

    def _hear(self, *_: object) -> None:
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True


def answers(engine: Engine, request: Request, interrupt: Interrupt) -> Iterator[Event]:
    """Yield the answer to a request; Ctrl-C stops the request, and its last event still comes."""
    stream = Stream(engine.run(request))
    asked_at_s: float | None = None
    while not stream.has_ended:
        event = stream.wait(_LOOK_S)
        if event is not None:
            yield event
        if not interrupt.is_asked:
            continue
        if asked_at_s is None:
            engine.stop()
            asked_at_s = time.monotonic()
        elif time.monotonic() - asked_at_s > _STOP_PATIENCE_S:
            engine.abandon()


def describe(engine: Engine, interrupt: Interrupt) -> EngineDescribed:
    """Return an engine's account of itself.

    Raises:
        StudioError: it has none.
        KeyboardInterrupt: Ctrl-C was pressed meanwhile.
    """
    for event in answers(engine, DescribeEngine(), interrupt):
        if interrupt.is_asked:
            raise KeyboardInterrupt
        match event:
            case EngineDescribed():
                return event
            case RequestFailed():
                raise StudioError(event.failure.kind, event.failure.message)
            case EngineEnded():
                raise StudioError(FailureKind.ENGINE_ENDED, describe_exit(event.exit_code))
    raise StudioError(FailureKind.ENGINE_ENDED, describe_exit(None))


def take_inventory(log_path: Path) -> Inventory:
    """Return this PC's devices with one reading of their sensors.

    Raises:
        StudioError: the driver does not answer, or the sensor reader ended.
    """
    # A reading a fifth of a second after the inventory is enough for the CPU's utilization.
    reader = SensorReader(period_s=0.2, log_path=log_path)
    stream = Stream(reader.readings())
    inventory: Inventory | None = None
    deadline_s = time.monotonic() + _SENSORS_PATIENCE_S
    try:
        while not stream.has_ended and time.monotonic() < deadline_s:
            event = stream.wait(_LOOK_S)
            if isinstance(event, Inventory):
                inventory = event
            elif isinstance(event, Reading) and inventory is not None:
                return _with_reading(inventory, event)
    finally:
        reader.close()
    if inventory is not None:
        return inventory
    if stream.has_ended:
        raise StudioError(
            FailureKind.INTERNAL,
            f"The sensor reader ended before it told anything; the log says why: {log_path}",
        )
    raise StudioError(
        FailureKind.INTERNAL, "The NVIDIA driver does not answer. Restart the PC, then try again."
    )


def _with_reading(inventory: Inventory, reading: Reading) -> Inventory:
    import msgspec

    by_identity: dict[str, CardReading] = {card.uuid: card for card in reading.cards}
    devices = [msgspec.structs.replace(inventory.cpu, telemetry=reading.cpu)]
    for card in inventory.cards:
        now = by_identity.get(card.identity)
        if now is None or now.error is not None:
            devices.append(card)
        else:
            devices.append(
                msgspec.structs.replace(card, telemetry=now.telemetry, processes=now.processes)
            )
    return msgspec.structs.replace(inventory, devices=tuple(devices))
