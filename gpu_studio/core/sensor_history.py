"""The last minute of a device's sensors: curve, table and sentence read the same numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_studio.core.facts import (
    NOT_AVAILABLE,
    SPACE,
    amount_text,
    bytes_text,
    celsius_text,
    percent_text,
)
from gpu_studio.core.units import format_bytes, three_digits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gpu_studio.core.devices import Device, Reading, Telemetry

SPAN_S = 60.0
_LONGEST_GAP_S = 5.0  # of readings a second apart: nobody watched in between


@dataclass(frozen=True, slots=True)
class SensorKind:
    """One sensor: where its value is, and how it is said.

    Attributes:
        unit: of the plot's axis: ``"%"``, ``"bytes"``, ``"°C"``, ``"W"`` or ``"MHz"``.
        value: takes it out of a reading; None where the device refuses it.
        most: the end of its scale, None where there is none.
        words: a value as text.
        change_from: the smallest change over the minute that is worth a word; None is never.
    """

    key: str
    title: str
    unit: str
    value: Callable[[Telemetry], float | None]
    most: Callable[[Device, Telemetry], float | None]
    words: Callable[[float], str]
    change_from: float | None = None


@dataclass(frozen=True, slots=True)
class SensorMinute:
    """What one sensor said in the last minute without a gap.

    Attributes:
        times_s: the reader's clock, oldest first.
        values: as many.
        scale: the ends of the plot's y axis.
        latest: the newest value in words, beside what it may be; empty before the first reading.
        change: how much it went up or down, in words; empty where that is nothing.
        is_refused: the device does not report it.
    """

    kind: SensorKind
    times_s: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    scale: tuple[float, float] = (0.0, 1.0)
    latest: str = ""
    change: str = ""
    is_refused: bool = False

    @property
    def span_s(self) -> float:
        """From the first value to the last."""
        return self.times_s[-1] - self.times_s[0] if self.times_s else 0.0

    @property
    def row(self) -> tuple[str, str, str, str, str, str]:
        """Title, latest value, change, lowest, mean and highest in words."""
        if not self.values:
            latest = "n/a" if self.is_refused else ""
            return self.kind.title, latest, "", "", "", ""
        mean = sum(self.values) / len(self.values)
        words = self.kind.words
        return (
            self.kind.title,
            self.latest,
            self.change,
            words(min(self.values)),
            words(mean),
            words(max(self.values)),
        )

    @property
    def sentence(self) -> str:
        """What the plot shows."""
        if self.is_refused:
            return f"{self.kind.title}: n/a, this device does not report it."
        if not self.values:
            return f"{self.kind.title}: not read yet."
        title, latest, change, lowest, mean, highest = self.row
        changed = f", {change}" if change else ""
        return (
            f"{title}: {latest}{changed}. In the last {self.span_s:.0f} seconds between {lowest} "
            f"and {highest}, on average {mean}."
        )


def minutes_of(device: Device, readings: Sequence[Reading]) -> tuple[SensorMinute, ...]:
    """Return the last minute of every sensor of a device.

    Args:
        device: the CPU or a card.
        readings: oldest first; more than a minute does no harm.
    """
    kinds = CPU_SENSORS if device.kind == "cpu" else CARD_SENSORS
    recent = [
        (reading.taken_at_s, telemetry)
        for reading in _recent(readings)
        if (telemetry := _telemetry(reading, device)) is not None
    ]
    return tuple(_minute(kind, device, recent) for kind in kinds)


def _recent(readings: Sequence[Reading]) -> list[Reading]:
    """Return the readings of the last minute, from the last gap on."""
    recent: list[Reading] = []
    for reading in reversed(readings):
        if recent and (
            recent[-1].taken_at_s - reading.taken_at_s > _LONGEST_GAP_S
            or recent[0].taken_at_s - reading.taken_at_s > SPAN_S
        ):
            break
        recent.append(reading)
    return recent[::-1]


def _telemetry(reading: Reading, device: Device) -> Telemetry | None:
    if device.kind == "cpu":
        return reading.cpu
    cards = (card for card in reading.cards if card.uuid == device.identity)
    return next((card.telemetry for card in cards if card.error is None), None)


def _minute(
    kind: SensorKind, device: Device, recent: Sequence[tuple[float, Telemetry]]
) -> SensorMinute:
    points = [(at_s, value) for at_s, t in recent if (value := kind.value(t)) is not None]
    if not points:
        # The first reading of a CPU has no utilisation yet: it is a mean since the one before.
        return SensorMinute(kind, is_refused=len(recent) > 1)
    newest = recent[-1][1]
    values = tuple(value for _, value in points)
    most = kind.most(device, newest)
    # A sensor may be refused later on: what it said before is no present value.
    is_told = kind.value(newest) is not None
    return SensorMinute(
        kind,
        times_s=tuple(at_s for at_s, _ in points),
        values=values,
        scale=_scale(kind, values, most),
        latest=_latest(kind, values[-1], most, newest) if is_told else NOT_AVAILABLE,
        change=_change(kind, values, [telemetry for _, telemetry in recent]) if is_told else "",
    )


def _scale(kind: SensorKind, values: Iterable[float], most: float | None) -> tuple[float, float]:
    highest = max(values)
    if kind.key == "temperature":
        low = 10.0 * math.floor((min(values) - 5) / 10)
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


def _change(kind: SensorKind, values: Sequence[float], telemetry: Sequence[Telemetry]) -> str:
    if kind.key == "clock":
        states = [t.pstate for t in telemetry if t.pstate is not None]
        changed = bool(states) and states[0] != states[-1]
        return f"P{states[0]} → P{states[-1]}" if changed else ""
    change = values[-1] - values[0]
    if kind.change_from is None or abs(change) < kind.change_from:
        return ""
    return f"{'+' if change > 0 else '−'}{kind.words(abs(change))}"


def _said(words: Callable[[float], str | None]) -> Callable[[float], str]:
    return lambda value: words(value) or ""


def _bytes_words(value: float) -> str:
    return bytes_text(int(value)) or ""


def _watts(value: float) -> str:
    return f"{three_digits(value)}{SPACE}W"


def _megahertz(value: float) -> str:
    return f"{value:.0f}{SPACE}MHz"


_UTILIZATION = SensorKind(
    "utilization",
    "Utilisation",
    "%",
    lambda telemetry: telemetry.utilization_percent,
    lambda _device, _telemetry: 100.0,
    _said(percent_text),
)
_MEMORY = SensorKind(
    "memory",
    "Memory",
    "bytes",
    lambda telemetry: telemetry.memory_used_bytes,
    lambda device, _telemetry: device.memory_total_bytes,
    _bytes_words,
    change_from=16 << 20,
)
_TEMPERATURE = SensorKind(
    "temperature",
    "Temperature",
    "°C",
    lambda telemetry: telemetry.temperature_c,
    lambda _device, _telemetry: None,
    _said(celsius_text),
    change_from=1.0,
)
_POWER = SensorKind(
    "power",
    "Power",
    "W",
    lambda telemetry: telemetry.power_w,
    lambda _device, telemetry: telemetry.power_limit_w,
    _watts,
)
_CLOCK = SensorKind(
    "clock",
    "SM clock",
    "MHz",
    lambda telemetry: telemetry.sm_clock_mhz,
    lambda device, _telemetry: device.sm_clock_max_mhz,
    _megahertz,
)
_FAN = SensorKind(
    "fan",
    "Fan",
    "%",
    lambda telemetry: telemetry.fan_percent,
    lambda _device, _telemetry: 100.0,
    _said(percent_text),
)

# The first three are the same ones, so that a place for plots serves both.
CPU_SENSORS = (_UTILIZATION, _MEMORY, _TEMPERATURE)
CARD_SENSORS = (_UTILIZATION, _MEMORY, _TEMPERATURE, _POWER, _CLOCK, _FAN)
