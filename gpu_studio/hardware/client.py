"""The window's side of the sensor readers, of this PC and of others. Uses no NVML: it cannot hang.

Another PC's reader is at the end of a line: how its child starts, and what its lines mean here.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.devices.devices import Inventory, Reading, SensorEvent, decode_sensor_event
from gpu_studio.core.line_trouble import (
    Introduction,
    LineGreeting,
    LineProblem,
    LineTrouble,
    detail_of_ssh,
)
from gpu_studio.core.line_values import sensors_here
from gpu_studio.core.messages.message import LineOpening
from gpu_studio.core.other_pc import PLACES, ssh_command
from gpu_studio.core.protocol import encode
from gpu_studio.process.line_child import LineChild

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.process.child_process import ChildProcess


_MODULE = "gpu_studio.hardware.reader"
# A reader has nothing to save, so a window that closes does not wait for one that is held.
_LONGEST_END_S = 0.5

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
        exit_code = child.end(_LONGEST_END_S)
        with self._lock:
            if self._child is child:
                self._child = None
                if not self._is_closed:
                    self._on_ended(child, exit_code)


_LONGEST_LINE_END_S = 2.0


class LineHello:
    """Asks another PC's program for its greeting, once.

    The program is looked for in `PLACES`, by one conversation each: every shell there understands a
    single command, and not every shell the same list of them. Where it was last is the first.
    """

    def __init__(self, pc: OtherPc) -> None:
        self._pc = pc
        self._child: LineChild | None = None
        self._is_closed = False

    def answer(self) -> Introduction:
        """Return what its program says; blocks up to half a minute for each place."""
        found = Introduction(self._pc)
        for place in dict.fromkeys((self._pc.program or PLACES[0], *PLACES)):
            found = self._answer_at(msgspec.structs.replace(self._pc, program=place))
            trouble = found.trouble
            if self._is_closed or not trouble or trouble.problem is not LineProblem.NO_PROGRAM:
                return found
        return found

    def close(self) -> None:
        """Ask no longer; any thread may call it."""
        self._is_closed = True
        if self._child is not None:
            self._child.kill()

    def _answer_at(self, pc: OtherPc) -> Introduction:
        accepts = LineGreeting(pc, "hello")
        try:
            child = self._child = LineChild(ssh_command(pc, "hello"), b"", accepts)
        except OSError:
            return Introduction(pc, trouble=LineTrouble(LineProblem.NO_SSH, pc))
        if self._is_closed:
            child.kill()
        next(child.lines(), None)  # nothing follows a greeting
        exit_code = child.end(_LONGEST_LINE_END_S)
        trouble = None
        if accepts.problem is not None:
            trouble = accepts.trouble(child, exit_code)
        return Introduction(pc, accepts.greeting, trouble, detail_of_ssh(child.error_text))


class LineSensors(SensorReader):
    """The sensors of another PC; its devices have the PC's name in front.

    Args:
        pc: the other PC.
        period_s: seconds between two readings.
    """

    def __init__(self, pc: OtherPc, period_s: float = 1.0) -> None:
        super().__init__(period_s)
        self._pc = pc
        self._identities: dict[str, str] = {}

    def _new_child(self) -> ChildProcess:
        opening = encode(LineOpening(period_s=self._period_s))
        greeting = LineGreeting(self._pc, "sensors")
        return LineChild(ssh_command(self._pc, "sensors"), opening, greeting)

    def _event_of(self, line: bytes) -> SensorEvent:
        event = super()._event_of(line)
        here = sensors_here(event, self._pc.name)
        if isinstance(event, Inventory) and isinstance(here, Inventory):
            pairs = zip(event.devices, here.devices, strict=True)
            self._identities = {there.identity: one.identity for there, one in pairs}
            return here
        assert isinstance(here, Reading)
        cards = (
            msgspec.structs.replace(one, uuid=self._identities.get(one.uuid, one.uuid))
            for one in here.cards
        )
        return msgspec.structs.replace(here, cards=tuple(cards))

    def _on_ended(self, child: ChildProcess, exit_code: int | None) -> None:
        assert isinstance(child, LineChild)
        _log.warning("The line of sensors ended: %s", detail_of_ssh(child.error_text))
