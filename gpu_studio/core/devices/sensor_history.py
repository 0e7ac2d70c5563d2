"""The last hour of a device's sensors, for curve, table and sentence; what a run did to them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpu_studio.core.devices.facts import (
    NOT_AVAILABLE,
    amount_text,
)
from gpu_studio.core.devices.sensor_kinds import SensorKind, sensors_of
from gpu_studio.core.telemetry import (
    SENSORS,
    ClockReason,
    Telemetry,
    clock_reason_words,
    held_back_words,
)
from gpu_studio.core.texts import csv_line
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpu_studio.core.devices.devices import Device, Inventory, Reading


SPANS_S = (60.0, 300.0, 900.0, 3600.0)
_CAPACITY = 3600  # one hour, at one reading per second
_LONGEST_GAP_S = 5.0  # a longer gap means that the sensors were not read
# The columns of a ring that hold the times, the P-state and the clock-event reasons.
_TIME, _PSTATE, _REASONS = range(3)
_FIRST_SENSOR = 3

_NO_VALUES: NDArray[np.float64] = np.empty(0)


@dataclass(frozen=True, slots=True)
class SensorSpan:
    """The recent values of one sensor.

    Attributes:
        times_s: the reader's clock, oldest first, shape (n,).
        values: shape (n,); NaN if the sensor reported nothing, and at a gap in the readings.
        scale: the limits of the plot's y axis.
        latest: the newest value in words, with its maximum; empty before the first reading.
        change: the rise or fall over the span, in words; empty if there is none.
        is_refused: whether the device does not report this sensor.
    """

    kind: SensorKind
    times_s: NDArray[np.float64]
    values: NDArray[np.float64]
    scale: tuple[float, float] = (0.0, 1.0)
    latest: str = ""
    change: str = ""
    is_refused: bool = False

    @property
    def has_values(self) -> bool:
        return len(self.values) > 0

    @property
    def span_s(self) -> float:
        """The time from the first value to the last."""
        return float(self.times_s[-1] - self.times_s[0]) if self.has_values else 0.0

    @property
    def row(self) -> tuple[str, str, str, str, str, str]:
        """The title and the latest value, change, lowest, mean and highest in words."""
        if not self.has_values:
            latest = NOT_AVAILABLE if self.is_refused else ""
            return self.kind.title, latest, "", "", "", ""
        words = self.kind.words
        return (
            self.kind.title,
            self.latest,
            self.change,
            words(float(np.nanmin(self.values))),
            words(float(np.nanmean(self.values))),
            words(float(np.nanmax(self.values))),
        )

    @property
    def sentence(self) -> str:
        """The plot's content in words."""
        if self.is_refused:
            return f"{self.kind.title}: n/a, this device does not report it."
        if not self.has_values:
            return f"{self.kind.title}: not read yet."
        title, latest, change, lowest, mean, highest = self.row
        changed = f", {change}" if change else ""
        return (
            f"{title}: {latest}{changed}. Last {self.span_s:.0f} seconds: {lowest} to {highest}, "
            f"average {mean}."
        )

    def at(self, time_s: float) -> str:
        """Return the value nearest to a time in words; "n/a" if none is near."""
        if not self.has_values:
            return NOT_AVAILABLE
        known = np.flatnonzero(~np.isnan(self.values))
        nearest = int(known[np.abs(self.times_s[known] - time_s).argmin()])
        if abs(float(self.times_s[nearest]) - time_s) > _LONGEST_GAP_S:
            return NOT_AVAILABLE
        return self.kind.words(float(self.values[nearest]))


class SensorTrack:
    """The readings of one device in a ring buffer of an hour.

    The values are contiguous, so a plot gets a view and not a copy. For that, the buffer is twice
    as long as the ring; when it is full, its second half moves to the front.
    """

    def __init__(self, device: Device, capacity: int = _CAPACITY) -> None:
        self.device = device
        self._kinds = sensors_of(device)
        self._capacity = capacity
        self._buffer = np.full((_FIRST_SENSOR + len(self._kinds), 2 * capacity), np.nan)
        self._count = 0
        self.newest: Telemetry | None = None
        """The newest telemetry; None before the first reading."""
        self.newest_at_s: float | None = None
        """When that was, by the reader's clock."""
        self._readings = 0

    def append(self, reading: Reading) -> None:
        """Add a reading of the device; a lost card adds nothing."""
        card, telemetry = reading.card(self.device), reading.telemetry(self.device)
        if telemetry is None or (card is not None and card.error is not None):
            return
        if self._count:
            last_s = self._buffer[_TIME, self._count - 1]
            if reading.taken_at_s - last_s > _LONGEST_GAP_S:
                # No curve is drawn across a gap in the readings.
                self._add((last_s + reading.taken_at_s) / 2, None)
        self._add(reading.taken_at_s, telemetry)
        self.newest, self.newest_at_s = telemetry, reading.taken_at_s
        self._readings += 1

    def spans(self, longest_s: float = SPANS_S[0]) -> tuple[SensorSpan, ...]:
        """Return the recent values of every sensor."""
        ring = self._ring(longest_s)
        return tuple(
            self._span(kind, ring[_TIME], ring[_FIRST_SENSOR + number], ring[_PSTATE])
            for number, kind in enumerate(self._kinds)
        )

    def between(self, began_s: float, ended_s: float) -> dict[str, NDArray[np.float64]]:
        """Return the values between two times, and the reading before the first time.

        The keys are those of the sensors, and ``time``, ``pstate`` and ``reasons``; shape (n,).
        """
        ring = self._ring(math.inf)
        first = max(int(np.searchsorted(ring[_TIME], began_s, "right")) - 1, 0)
        last = int(np.searchsorted(ring[_TIME], ended_s, "right"))
        keys = ("time", "pstate", "reasons", *(kind.key for kind in self._kinds))
        return {key: ring[column, first:last] for column, key in enumerate(keys)}

    def _add(self, time_s: float, telemetry: Telemetry | None) -> None:
        if self._count == 2 * self._capacity:
            self._buffer[:, : self._capacity] = self._buffer[:, self._capacity :]
            self._count = self._capacity
        column = self._buffer[:, self._count]
        column[:] = np.nan
        column[_TIME] = time_s
        if telemetry is not None:
            numbers = (
                telemetry.pstate,
                telemetry.clock_event_reasons,
                *(kind.value(telemetry) for kind in self._kinds),
            )
            column[_PSTATE:] = [math.nan if value is None else value for value in numbers]
        self._count += 1

    def _ring(self, longest_s: float) -> NDArray[np.float64]:
        """Return the recent columns, a view of shape (columns, n)."""
        first = max(self._count - self._capacity, 0)
        ring = self._buffer[:, first : self._count]
        if not ring.shape[1] or math.isinf(longest_s):
            return ring
        start = int(np.searchsorted(ring[_TIME], ring[_TIME, -1] - longest_s, "left"))
        return ring[:, start:]

    def _span(
        self,
        kind: SensorKind,
        times_s: NDArray[np.float64],
        values: NDArray[np.float64],
        pstates: NDArray[np.float64],
    ) -> SensorSpan:
        known = values[~np.isnan(values)]
        newest = self.newest
        if newest is None or not len(known):
            # The first CPU reading has no utilization: it is a mean since the previous reading.
            return SensorSpan(kind, _NO_VALUES, _NO_VALUES, is_refused=self._readings > 1)
        most = kind.most(self.device, newest)
        # A sensor may stop reporting: its old values are not its present value.
        is_reported = kind.value(newest) is not None
        return SensorSpan(
            kind,
            times_s=times_s,
            values=values,
            scale=_scale(kind, known, most),
            latest=_latest(kind, float(known[-1]), most, newest) if is_reported else NOT_AVAILABLE,
            change=_change(kind, known, pstates) if is_reported else "",
        )


def pstate_change(pstates: NDArray[np.float64]) -> str:
    """Return the change of the P-state, ``P8 → P0``; empty if it did not change."""
    known = pstates[~np.isnan(pstates)]
    if not len(known) or known[0] == known[-1]:
        return ""
    return f"P{known[0]:.0f} → P{known[-1]:.0f}"


def signed(kind: SensorKind, change: float) -> str:
    """Return a change in words: ``+14 °C``."""
    return f"{'+' if change > 0 else '−'}{kind.words(abs(change))}"


def _scale(
    kind: SensorKind, values: NDArray[np.float64], most: float | None
) -> tuple[float, float]:
    highest = float(values.max())
    if kind.unit == "°C":
        low = 10.0 * math.floor((float(values.min()) - 5) / 10)
        return low, max(low + 40.0, 10.0 * math.ceil((highest + 5) / 10))
    if most is None or highest > most:
        most = 1.2 * highest
    return 0.0, most or 1.0


def _latest(kind: SensorKind, value: float, most: float | None, telemetry: Telemetry) -> str:
    if kind.key == "memory" and most is not None:
        return f"{kind.words(value)} of {format_bytes(most)}"
    if kind.key == "power":
        return amount_text(value, most, "W") or ""
    if kind.key == "clock" and telemetry.pstate is not None:
        return f"{kind.words(value)} · P{telemetry.pstate}"
    return kind.words(value)


def _change(kind: SensorKind, known: NDArray[np.float64], pstates: NDArray[np.float64]) -> str:
    if kind.key == "clock":
        return pstate_change(pstates)
    change = float(known[-1] - known[0])
    if kind.change_from is None or abs(change) < kind.change_from:
        return ""
    return signed(kind, change)


_HEAD = ("time", "reader_clock_s", "device", "name", "uuid", *SENSORS, "clock_events", "trouble")


def csv_head() -> str:
    """Return the header line; every column name includes its unit."""
    return csv_line(_HEAD)


def csv_lines(reading: Reading, inventory: Inventory, time_text: str) -> str:
    """Return one line per device; a cell is empty if the device does not report the value.

    Args:
        reading: the reading to write.
        inventory: the devices of that reading.
        time_text: the time of day, ISO 8601.
    """
    lines = []
    for device in inventory.devices:
        card = reading.card(device)
        if device.is_cpu:
            lines.append(_device_line(device, reading, time_text, reading.cpu, ""))
        elif card is not None:
            trouble = card.error or ""
            lines.append(_device_line(device, reading, time_text, card.telemetry, trouble))
    return "".join(lines)


def _device_line(
    device: Device, reading: Reading, time_text: str, telemetry: Telemetry, trouble: str
) -> str:
    values = (getattr(telemetry, field) for field in SENSORS)
    return csv_line(
        (
            time_text,
            f"{reading.taken_at_s:.3f}",
            device.address or "",
            device.name,
            device.uuid or "",
            *values,
            clock_reason_words(telemetry.clock_event_reasons) or "",
            trouble,
        )
    )


# The sentence names the highest value of these, and for temperature and memory also the rise.
_SHOWN_HIGHEST = {"power": "power", "clock": "SM clock"}
_OF_CPU = {"utilization": "CPU", "memory": "RAM", "temperature": "temperature"}
_OF_CARD = {"utilization": "GPU", "memory": "VRAM", "temperature": "temperature"}
_SHOWN_CHANGES = ("temperature", "memory")
# A load that rounds to zero: these readings come from the idle device before or after the run.
_IDLE_PERCENT = 0.5


def effect_sentence(title: str, began_s: float, ended_s: float, track: SensorTrack) -> str:
    """Return the sensors' view of a run, or a sentence that says why there is none.

    Args:
        title: what ran.
        began_s: when it began, by the sensors' clock.
        ended_s: when it ended.
        track: the readings of its device.
    """
    values_of = track.between(began_s, ended_s)
    during = {key: values[values_of["time"] >= began_s] for key, values in values_of.items()}
    if not len(during["time"]):
        return f"{title}: too short for a sensor reading."
    parts = [_most_awake(values_of["pstate"])]
    busy = _known(during["utilization"])
    saw_it = not len(busy) or float(busy.max()) >= _IDLE_PERCENT
    names = _SHOWN_HIGHEST | (_OF_CPU if track.device.is_cpu else _OF_CARD)
    for kind in sensors_of(track.device):
        values, inside = _known(values_of[kind.key]), _known(during[kind.key])
        if not len(inside):
            continue
        rise = float(inside.max() - values[0])
        has_risen = bool(kind.change_from) and rise >= (kind.change_from or 0.0)
        if kind.key in names and (has_risen if kind.key in _SHOWN_CHANGES else saw_it):
            parts.append(f"{names[kind.key]} {kind.words(float(inside.max()))}")
    parts.append(_brakes(during["reasons"]))
    seen = ", ".join(part for part in parts if part)
    nothing = "the sensors showed no change" if saw_it else "no sensor reading shows any load"
    return f"{title}: {seen or nothing}."


def _known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    known: NDArray[np.float64] = values[~np.isnan(values)]
    return known


def _most_awake(pstates: NDArray[np.float64]) -> str:
    """Return the change to the lowest, which is the fastest, P-state of the run."""
    known = _known(pstates)
    return pstate_change(np.array([known[0], known.min()])) if len(known) else ""


def _brakes(reasons: NDArray[np.float64]) -> str:
    seen = ClockReason(0)
    for value in _known(reasons):
        seen |= ClockReason(int(value))
    words = held_back_words(seen)
    return f"held back: {words}" if words else ""
