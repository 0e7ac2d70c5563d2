"""The sensor reader, a child process: ``python -m gpu_studio.hardware.reader``.

A call into the driver may never return. A thread in such a call cannot be ended, but a process can
be abandoned. This process writes an `Inventory`, then a `Reading` every period, as lines of JSON,
and another `Inventory` if a card falls asleep or wakes up. Its commands are the lines ``pause``,
``resume``, ``programs``, ``no programs`` and ``quit`` on standard input; the end of the input also
ends it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import msgspec

from gpu_studio.core.devices.devices import (
    Device,
    Inventory,
    Reading,
    encode_sensor_event,
)
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.hardware.card_reader import kind_of
from gpu_studio.hardware.cpu import (
    CpuSensor,
    card_variables,
    describe_cpu,
    has_secure_boot,
    is_wsl,
    linux_distribution,
)
from gpu_studio.hardware.display_adapters import display_adapters
from gpu_studio.hardware.linux.signs import signs_of
from gpu_studio.hardware.linux.sys_tree import sys_tree
from gpu_studio.hardware.maker_cards import MakerCards
from gpu_studio.hardware.makers import makers_of
from gpu_studio.process.child_streams import take_over_stdin, take_over_stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpu_studio.core.devices.devices import SensorEvent
    from gpu_studio.hardware.card_reader import Maker
    from gpu_studio.hardware.pci import DisplayAdapter


class PcSensors:
    """The sensors of this PC: of the CPU and of every maker's cards.

    Args:
        makers: whose cards are read, the first that claims a card; the others' are only named.
            None takes those of this system.
        find_adapters: returns the graphics cards on the bus.
        visible_devices: CUDA_VISIBLE_DEVICES of the engines; None means "not set".
        options: passed on to each `MakerCards`.
    """

    def __init__(
        self,
        makers: Sequence[Maker] | None = None,
        find_adapters: Callable[[], Sequence[DisplayAdapter]] = display_adapters,
        visible_devices: str | None = os.environ.get("CUDA_VISIBLE_DEVICES"),
        **options: Any,
    ) -> None:
        self._find_adapters = find_adapters
        self._cpu = CpuSensor()
        self._order = makers_of() if makers is None else tuple(makers)
        self._makers = [
            MakerCards(
                maker,
                claims=partial(self._is_of, maker),
                find_adapters=find_adapters,
                visible_devices=visible_devices,
                **options,
            )
            for maker in self._order
        ]

    def inventory(self) -> Inventory:
        """Return all devices of this PC, with a first reading."""
        adapters = self._find_adapters()
        of_nobody = [one for one in adapters if not any(m.claims(one) for m in self._order)]
        found = [
            cards.find([one for one in adapters if self._is_of(cards.maker, one)])
            for cards in self._makers
        ]
        driver = found[0][0]
        cpu = describe_cpu(self._cpu.read())
        has_signs = sys.platform == "linux" and not sys_tree().is_copy
        if sys_tree().is_copy:
            cpu = msgspec.structs.replace(cpu, name=f"{cpu.name} (of this PC)")
        return Inventory(
            devices=(cpu, *(card for _, cards in found for card in cards)),
            driver=driver,
            other_gpus=tuple(one.name for one in of_nobody),
            unread_cards=tuple(
                Device(
                    kind=kind_of(one.maker),
                    maker=one.maker,
                    name=one.name,
                    pci_bus_id=one.pci_bus_id,
                    pci_device_id=one.device_id,
                )
                for one in of_nobody
            ),
            is_wsl=is_wsl(),
            distribution=linux_distribution(),
            secure_boot=has_secure_boot(),
            variables=card_variables(),
            signs=signs_of() if has_signs else None,
        )

    def _is_of(self, maker: Maker, adapter: DisplayAdapter) -> bool:
        """Return whether a maker is the first that claims a card."""
        return next((one for one in self._order if one.claims(adapter)), None) is maker

    def read_programs(self, *, wanted: bool) -> None:
        """Set whether readings have the programs on each card, which takes the longest."""
        for cards in self._makers:
            cards.reads_programs = wanted

    def reading(self) -> Reading:
        """Return one reading of the CPU and of every card of the last inventory."""
        return Reading(
            taken_at_s=time.monotonic(),
            cpu=self._cpu.read(),
            cards=tuple(reading for cards in self._makers for reading in cards.readings()),
        )

    @property
    def is_outdated(self) -> bool:
        """Whether the last inventory is out of date; see `MakerCards.is_outdated`."""
        return any(cards.is_outdated for cards in self._makers)

    def rest(self) -> None:
        """End the sessions with the drivers, so that a card can fall asleep."""
        for cards in self._makers:
            cards.rest()

    @property
    def has_left_behind(self) -> bool:
        """Whether a call into a driver has not returned: its thread cannot be ended."""
        return any(cards.has_left_behind for cards in self._makers)


# A mean over a shorter time says little about the CPU, and a longer time delays the first reading.
_FIRST_READING_AFTER_S = 0.3
_GRACE_S = 0.3  # shorter than the window waits before it kills this process


class Commands:
    """The window's commands; `listen` runs on its own thread.

    ``has_ended`` means that the reader has to end.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.is_paused = False
        self.has_ended = False
        self.wants_programs, self._is_hurried = True, False

    def listen(self, lines: IO[bytes]) -> None:
        """Take commands until the window closes the pipe."""
        for line in iter(lines.readline, b""):
            word = line.strip()
            if word == b"quit":
                break
            if word in (b"pause", b"resume"):
                self.pause(is_paused=word == b"pause")
            elif word.endswith(b"programs"):
                self.want_programs(wanted=word == b"programs")
        with self._changed:
            self.has_ended = True
            self._changed.notify_all()

    def pause(self, *, is_paused: bool = True) -> None:
        """Read nothing, or continue reading."""
        with self._changed:
            self.is_paused = is_paused
            self._changed.notify_all()

    def want_programs(self, *, wanted: bool) -> None:
        """Read the programs on the cards from now on, beginning at once, or no longer."""
        with self._changed:
            self._is_hurried = wanted and not self.wants_programs
            self.wants_programs = wanted
            self._changed.notify_all()

    def wait(self, timeout_s: float) -> None:
        """Wait for this time, or until a command arrives."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.is_paused or self.has_ended or self._is_hurried, timeout_s
            )
            self._is_hurried = False

    def wait_for_resume(self) -> None:
        """Wait until reading resumes or the reader has to end."""
        with self._changed:
            self._changed.wait_for(lambda: not self.is_paused or self.has_ended)


def events(sensors: PcSensors, commands: Commands, period_s: float) -> Iterator[SensorEvent]:
    """Yield the inventory, then readings until the reader has to end."""
    inventory = sensors.inventory()
    yield inventory
    next_at_s = time.monotonic() + min(period_s, _FIRST_READING_AFTER_S)
    while True:
        commands.wait(max(0.0, next_at_s - time.monotonic()))
        has_rested = commands.is_paused
        if has_rested:
            sensors.rest()
            commands.wait_for_resume()
        if commands.has_ended:
            return
        if has_rested or sensors.is_outdated:
            before, inventory = inventory, sensors.inventory()
            if _facts(inventory) != _facts(before):
                yield inventory
        sensors.read_programs(wanted=commands.wants_programs)
        yield sensors.reading()
        # After a slow driver or a sleeping PC, do not make up for missed readings.
        next_at_s = max(next_at_s + period_s, time.monotonic())


def _facts(inventory: Inventory) -> Inventory:
    """Return an inventory without the values that every reading contains."""
    devices = tuple(
        msgspec.structs.replace(device, telemetry=Telemetry(), processes=())
        for device in inventory.devices
    )
    return msgspec.structs.replace(inventory, devices=devices)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the reader; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m gpu_studio.hardware.reader")
    parser.add_argument("--period-s", type=float, default=1.0)
    period_s = parser.parse_args(arguments).period_s
    # Ctrl-C in a terminal reaches the whole group; this child ends with its window's pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lines, pipe = take_over_stdin(buffering=0), take_over_stdout(buffering=0)
    commands = Commands()
    threading.Thread(target=_obey, args=(commands, lines), daemon=True).start()
    sensors = PcSensors()
    try:
        for event in events(sensors, commands, period_s):
            try:
                pipe.write(encode_sensor_event(event))
            except OSError:  # the window is gone; Windows has no BrokenPipeError here
                break
    finally:
        sensors.rest()
    if sensors.has_left_behind:
        os._exit(0)  # a driver call has not returned, and the driver's shutdown would wait for it
    return 0


def _obey(commands: Commands, lines: IO[bytes]) -> None:
    commands.listen(lines)
    time.sleep(_GRACE_S)
    os._exit(0)  # the other thread is inside a driver call that does not return


if __name__ == "__main__":
    sys.exit(main())
