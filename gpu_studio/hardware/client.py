"""The window's side of the sensor reader. Uses no NVML: it cannot hang."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core import limits
from gpu_studio.core.devices.devices import SensorEvent, decode_sensor_event

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gpu_studio.process.child_process import ChildProcess


_MODULE = "gpu_studio.hardware.reader"
_PROGRAMS = {True: b"programs\n", False: b"no programs\n"}

_log = logging.getLogger(__name__)


class SensorReader:
    """The sensors of this PC, read by a child process that starts when `readings` is iterated.

    Any thread may call any method; only one thread at a time may iterate `readings`.

    Args:
        period_s: seconds between two readings.
        log_path: the file for the child's standard error; None shares this process's.
        environment: environment variables for the child, in addition to this process's.
    """

    def __init__(
        self,
        period_s: float = 1.0,
        log_path: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._period_s = period_s
        self._log_path = log_path
        self._environment = environment
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self._is_paused = self._is_closed = False
        self._reads_programs = True

    @property
    def pid(self) -> int | None:
        """The child's process id; None while there is no child."""
        child = self._child
        return child.pid if child else None

    def readings(self) -> Iterator[SensorEvent]:
        """Start the child and yield an `Inventory`, then a `Reading` every period.

        Another `Inventory` follows if a card falls asleep or wakes up. If the driver does not
        answer, no events arrive, but `close` still works. The iteration ends with `close` or if
        the child ends; iterating again starts another child.

        Raises:
            OSError: the child could not be started.
        """
        child = self._start()
        if child is None:
            return
        try:
            for line in child.lines():
                try:
                    event = self._event_of(line)
                except (msgspec.MsgspecError, RecursionError, ValueError) as error:
                    _log.error("the sensor reader wrote something unreadable: %s", error)
                    return
                yield event
        finally:
            self._end(child)

    def pause(self) -> None:
        """Pause reading, so that a laptop's card can fall asleep."""
        with self._lock:
            self._is_paused = True
            if self._child is not None:
                self._child.send(b"pause\n")

    def resume(self) -> None:
        """Continue reading."""
        with self._lock:
            self._is_paused = False
            if self._child is not None:
                self._child.send(b"resume\n")

    def read_programs(self, *, wanted: bool) -> None:
        """Set whether readings have the programs on each card, from the next one on."""
        with self._lock:
            self._reads_programs = wanted
            if self._child is not None:
                self._child.send(_PROGRAMS[wanted])

    def close(self) -> None:
        """End the child and `readings`; this reader starts no other child."""
        with self._lock:
            self._is_closed = True
            child = self._child
        if child is not None:
            self._end(child)

    def _new_child(self) -> ChildProcess:
        from gpu_studio.process.child_process import ChildProcess  # 4 ms

        return ChildProcess(
            _MODULE,
            ["--period-s", str(self._period_s)],
            environment=self._environment,
            log_path=self._log_path,
        )

    def _event_of(self, line: bytes) -> SensorEvent:
        """Return the event in a line; raise as `decode_sensor_event`, or `ValueError`."""
        return decode_sensor_event(line)

    def _on_ended(self, child: ChildProcess, exit_code: int | None) -> None:
        if exit_code:
            _log.warning("the sensor reader ended with exit code %s", exit_code)

    def _start(self) -> ChildProcess | None:
        with self._lock:
            if self._is_closed:
                return None
            self._child = child = self._new_child()
            if self._is_paused:
                child.send(b"pause\n")
            if not self._reads_programs:
                child.send(_PROGRAMS[False])
            return child

    def _end(self, child: ChildProcess) -> None:
        exit_code = child.end(limits.current.sensors_end_s)
        with self._lock:
            if self._child is child:
                self._child = None
                if not self._is_closed:
                    self._on_ended(child, exit_code)
