"""The last hour of a device's sensors, for curve, table and sentence; what a run did to them."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpu_studio.core.devices.facts import (
    NOT_AVAILABLE,
    amount_text,
)
from gpu_studio.core.devices.sensor_kinds import SensorKind, sensors_of
from gpu_studio.core.telemetry import SENSORS, clock_reason_words
from gpu_studio.core.texts import csv_line
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpu_studio.core.devices.devices import Device, Inventory, Reading
    from gpu_studio.core.telemetry import Telemetry


_CAPACITY = 3600  # one hour, at one reading per second
_LONGEST_GAP_S = 5.0  # a longer gap means that the sensors were not read
_SENSOR_LAG_S = 1.0  # a card reports the load of its last second in the next reading

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
    """The readings of one device over an hour."""

    def __init__(self, device: Device, capacity: int = _CAPACITY) -> None:
        self.device = device
        self._kinds = sensors_of(device)
        # Of each reading the time, the P-state, and a value for each kind.
        self._rows: deque[tuple[float | None, ...]] = deque(maxlen=capacity)
        self.newest: Telemetry | None = None
        """The newest telemetry; None before the first reading."""
        self.newest_at_s: float | None = None
        """When that was, by the reader's clock."""
        self._readings = 0

    def append(self, reading: Reading) -> None:
        """Add a reading of the device; a lost card adds nothing."""
        card, now = reading.card(self.device), reading.telemetry(self.device)
        if now is None or (card is not None and card.error is not None):
            return
        last_s, now_s = self.newest_at_s, reading.taken_at_s
        if last_s is not None and now_s - last_s > _LONGEST_GAP_S:
            # No curve is drawn across a gap in the readings.
            self._rows.append(((last_s + now_s) / 2, None, *[None] * len(self._kinds)))
        self._rows.append((now_s, now.pstate, *(kind.value(now) for kind in self._kinds)))
        self.newest, self.newest_at_s = now, now_s
        self._readings += 1

    def spans(self, longest_s: float = 60.0) -> tuple[SensorSpan, ...]:
        """Return the recent values of every sensor."""
        first_s = (self.newest_at_s or 0.0) - longest_s
        recent = [row for row in self._rows if row[0] is not None and row[0] >= first_s]
        table = np.array(recent, dtype=float).reshape(-1, 2 + len(self._kinds)).T
        times_s, pstates, *columns = table
        return tuple(
            self._span(kind, times_s, values, pstates)
            for kind, values in zip(self._kinds, columns, strict=True)
        )

    def effect(self, began_s: float, ended_s: float) -> str:
        """Return what a run did, ``P8 → P0, +14 °C, load 98 %``; "" without a reading in it.

        Args:
            began_s: when it began, by the reader's clock; the reading before is compared with.
            ended_s: when it ended.
        """
        rows = [(row[0] or 0.0, row) for row in self._rows]
        before = [row for time_s, row in rows if time_s < began_s][-1:]
        during = [row for time_s, row in rows if began_s <= time_s <= ended_s + _SENSOR_LAG_S]
        if not during:
            return ""
        _, pstates, *columns = (
            values[~np.isnan(values)] for values in np.array([*before, *during], dtype=float).T
        )
        awake = [pstates[0], pstates.min()] if len(pstates) else []
        parts = [pstate_change(np.array(awake))]
        loads, memory, temperature, *_ = zip(self._kinds, columns, strict=True)
        for kind, values in (temperature, memory):
            rise = float(values.max() - values[0]) if len(values) else 0.0
            if kind.change_from is not None and rise >= kind.change_from:
                parts.append(signed(kind, rise))
        kind, values = loads
        if len(values):
            parts.append(f"load {kind.words(float(values[-len(during) :].max()))}")
        return ", ".join(part for part in parts if part) or "no change of the sensors"

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
