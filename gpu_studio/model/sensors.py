"""The PC as known to the window: its devices, their live sensors and the last hour."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core import limits
from gpu_studio.core.devices.access import numbered_cards
from gpu_studio.core.devices.devices import Device, Inventory, Reading
from gpu_studio.core.devices.link import faster, link_at_work
from gpu_studio.model.awake_timer import AwakeTimer
from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.devices.devices import GpuProcess, SensorEvent
    from gpu_studio.core.devices.link import Link
    from gpu_studio.core.devices.sensor_history import SensorTrack
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.engine_messages import BuildKind, TorchCard
    from gpu_studio.core.telemetry import Telemetry

_log = logging.getLogger(__name__)

LOG = "log"  # needs readings even while the window is hidden
_MOST_DEATHS = 3  # in a row, before the window stops restarting the reader


class SensorSource(Protocol):
    """An iterator of telemetry: the sensor reader's child, or a recording."""

    def readings(self) -> Iterator[SensorEvent]:
        """Yield the inventory, then a reading per period; called again after an unexpected end."""

    def pause(self) -> None:
        """Poll nothing until `resume`. Thread safe."""

    def resume(self) -> None:
        """Poll again. Thread safe."""

    def read_programs(self, *, wanted: bool) -> None:
        """Set whether readings have the programs on each card. Thread safe."""

    def close(self) -> None:
        """End the stream. Thread safe."""


class Sensors(QObject):
    """Devices, sensors and processes of this PC.

    Signals:
        inventory_changed(Inventory): devices were found or renumbered.
        links_changed(): a card was seen to use a faster link than before.
        reading_taken(Reading): the sensors were read.
        silence_changed(bool): the reader stopped answering (a hung driver), or answers again.
        ended(): the reader ended by itself.
        closed(): no more readings will come.

    A reader that dies is restarted a few times.

    Args:
        source: the reader, or a recording; None until `use_source`.
        parent: owns this.
        shares_clock: whether the reader has the monotonic clock of this PC. The readings of another
            PC get times of this one: those at which they would have come without a delay.

    Attributes:
        inventory: the devices with their current numbers; None before the reader has found them.
        newest: the newest reading; None before the first.
        links: the fastest link that each card was seen to use, by identity.
        is_silent: whether the reader has stopped answering.
    """

    inventory_changed = Signal(object)
    links_changed = Signal()
    reading_taken = Signal(object)
    silence_changed = Signal(bool)
    ended = Signal()
    closed = Signal()

    def __init__(
        self,
        source: SensorSource | None,
        parent: QObject | None = None,
        *,
        shares_clock: bool = True,
    ) -> None:
        super().__init__(parent)
        self._source, self._shares_clock = source, shares_clock
        self._ahead_s: float | None = None
        self._worker: Worker | None = None
        self._found: Inventory | None = None
        self.inventory: Inventory | None = None
        self._numbering = partial(numbered_cards, visible_devices=None)
        self.newest: Reading | None = None
        self._tracks: dict[str, SensorTrack] = {}
        self.links: dict[str, Link] = {}
        self.is_silent = self._is_closed = False
        self._is_watched = True
        self._users = {"window"}
        self._program_users: set[str] = set()
        self._deaths = 0
        self._silence = AwakeTimer(self)
        self._silence.ended.connect(self._set_silent)
        self._restart = QTimer(self)
        self._restart.setSingleShot(True)
        self._restart.timeout.connect(self.start)

    @property
    def asks_driver(self) -> bool:
        """Whether an NVIDIA driver was asked, so that it may be the cause of a silence."""
        return self._found is not None and self._found.asks_driver

    def track(self, device: Device) -> SensorTrack:
        """Return the last hour of a device; empty before its first reading."""
        from gpu_studio.core.devices.sensor_history import SensorTrack  # numpy: 80 ms

        track = self._tracks.get(device.identity)
        if track is None:
            track = self._tracks[device.identity] = SensorTrack(device)
        track.device = device  # its numbers may change
        return track

    @property
    def is_polled(self) -> bool:
        """Whether any part needs readings: they cost the card and the PC a little."""
        return LOG in self._users or (self._is_watched and bool(self._users))

    @property
    def has_given_up(self) -> bool:
        """Whether the reader died too often to be restarted automatically."""
        return self._worker is None and self._deaths >= _MOST_DEATHS

    def start_again(self) -> None:
        """Restart the reader at the user's request."""
        self._deaths = 0
        self.start()

    def start(self) -> None:
        """Start reading; does nothing while running, and without a source."""
        if self._worker is None and self._source is not None and not self._is_closed:
            self._source.read_programs(wanted=bool(self._program_users))
            self._worker = Worker(self._source.readings, self)
            self._worker.value_produced.connect(self._on_event)
            self._worker.failure_raised.connect(self._on_failure)
            self._worker.finished.connect(self._on_reader_ended)
            self._worker.finished.connect(self._worker.deleteLater)
            self._worker.start()
            self._expect_within(limits.current.sensors_start_ms)

    def use_source(self, source: SensorSource | None) -> None:
        """Read another source from now on, or none; the devices and the last readings stay."""
        if self._is_closed:
            return
        if self._source is not None:
            self._source.close()
        self._silence.stop()
        self._restart.stop()
        self._source, self._worker = source, None
        self._deaths, self._ahead_s = 0, None
        if source is not None:
            self._poll_or_rest()
            self.start()

    def set_watched(self, watched: bool) -> None:
        """Set whether the window is visible; while hidden, only a log needs polling."""
        self._is_watched = watched
        self._poll_or_rest()

    def want(self, what: str, wanted: bool) -> None:
        """Set whether a part of the program needs readings; polling stops if none does."""
        was_polled = self.is_polled
        if wanted:
            self._users.add(what)
        else:
            self._users.discard(what)
        if self.is_polled is not was_polled:
            self._poll_or_rest()

    def want_programs(self, what: str, wanted: bool) -> None:
        """Set whether a part shows the programs on the cards: reading them takes the longest."""
        before = bool(self._program_users)
        (self._program_users.add if wanted else self._program_users.discard)(what)
        if bool(self._program_users) is not before and self._source is not None:
            self._source.read_programs(wanted=not before)

    def number_for(
        self,
        visible_devices: str | None,
        build_kind: BuildKind = "cuda",
        torch_cards: Sequence[TorchCard] = (),
    ) -> None:
        """Number the cards as an engine does; the arguments are those of `numbered_cards`."""
        self._numbering = partial(
            numbered_cards,
            visible_devices=visible_devices,
            build_kind=build_kind,
            torch_cards=torch_cards,
        )
        if self._found is not None:
            self._renumber()

    def latest(self, device: Device) -> Telemetry | None:
        """Return the newest telemetry of a device; None before the first reading."""
        return self.newest.telemetry(device) if self.newest else None

    def processes(self, device: Device) -> tuple[GpuProcess, ...]:
        """Return the processes on a card at the newest reading; none if they were not read."""
        card = self.newest.card(device) if self.newest else None
        return (card.processes or ()) if card else device.processes

    def has_programs(self, device: Device) -> bool:
        """Return whether the newest reading has the processes on a card."""
        card = self.newest.card(device) if self.newest else None
        return card is None or card.processes is not None

    def close(self) -> None:
        """End the reader and its worker; nothing is left running."""
        if self._is_closed:
            return
        self._is_closed = True
        self._silence.stop()
        self._restart.stop()
        if self._source is not None:
            self._source.close()
        for worker in self.findChildren(Worker):
            worker.requestInterruption()
            worker.wait(limits.current.thread_end_ms)
        self.closed.emit()

    def _on_event(self, event: SensorEvent) -> None:
        if self._is_closed or self.sender() is not self._worker:
            return
        if isinstance(event, Inventory):
            self._found = event
            self._renumber()
        else:
            self._deaths = 0
            reading = event if self._shares_clock else self._by_this_clock(event)
            self._keep(reading)
            self.reading_taken.emit(reading)
        self._expect_within(limits.current.sensors_silence_ms)
        self._set_silent(False)

    def _on_failure(self, failure: Failure) -> None:
        _log.error("The sensor reader failed: %s\n%s", failure.message, failure.traceback_text)

    def _on_reader_ended(self) -> None:
        """Restart the reader after an unexpected end."""
        if self.sender() is not self._worker:
            return  # of a source that is no longer read
        self._worker = None
        if self._is_closed:
            return
        self._deaths += 1
        self._silence.stop()
        self.ended.emit()
        if self._source is None:
            return
        if self._deaths < _MOST_DEATHS:
            self._restart.start(limits.current.sensors_restart_ms)
        else:
            _log.error("The sensor reader ended %d times in a row", self._deaths)
            self._set_silent()

    def _expect_within(self, milliseconds: int) -> None:
        if self._worker is not None and self.is_polled:
            self._silence.start(milliseconds)

    def _poll_or_rest(self) -> None:
        if self._source is None:
            return
        if self.is_polled:
            self._source.resume()
            self._expect_within(limits.current.sensors_start_ms)
        else:
            self._source.pause()
            self._silence.stop()

    def _by_this_clock(self, reading: Reading) -> Reading:
        """Return a reading of another PC with the time of this one's clock.

        The quickest reading so far says how far that clock is ahead; no reading is before the last.
        """
        ahead_s = reading.taken_at_s - time.monotonic()
        self._ahead_s = ahead_s if self._ahead_s is None else max(self._ahead_s, ahead_s)
        taken_at_s = reading.taken_at_s - self._ahead_s
        if self.newest is not None:
            taken_at_s = max(taken_at_s, self.newest.taken_at_s)
        return msgspec.structs.replace(reading, taken_at_s=taken_at_s)

    def _keep(self, reading: Reading) -> None:
        self.newest = reading
        for device in self.inventory.devices if self.inventory else ():
            self.track(device).append(reading)
        for card in reading.cards:
            before = self.links.get(card.uuid)
            link = faster(before, link_at_work(card.telemetry))
            if link is not None and link != before and card.error is None:
                self.links[card.uuid] = link
                self.links_changed.emit()

    def _renumber(self) -> None:
        assert self._found is not None
        cards = self._numbering(self._found.cards)
        inventory = msgspec.structs.replace(self._found, devices=(self._found.cpu, *cards))
        if inventory != self.inventory:
            self.inventory = inventory
            self.inventory_changed.emit(inventory)

    def _set_silent(self, silent: bool = True) -> None:
        if silent is not self.is_silent:
            self.is_silent = silent
            self.silence_changed.emit(silent)
