"""The kinds of sensors: the source of each value, the end of its scale, and its text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpu_studio.core.devices.facts import SPACE
from gpu_studio.core.units import format_bytes, format_rate, three_digits

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class SensorKind:
    """One sensor.

    Attributes:
        unit: the unit of the plot's axis: ``"%"``, ``"bytes"``, ``"°C"``, ``"W"``, ``"MHz"`` or
            ``"B/s"``.
        field: the field of `Telemetry`; None in it if the device does not report it.
        words: the value as text.
        most_from: the end of the scale: a number, or the field of the device or of the reading that
            has it; None if there is none.
        change_from: the smallest change over a span that is worth showing; None is never.
    """

    key: str
    title: str
    unit: str
    field: str
    words: Callable[[float], str]
    most_from: float | str | None = None
    change_from: float | None = None

    def value(self, now: Telemetry) -> float | None:
        """Return the sensor's value in a reading."""
        value: float | None = getattr(now, self.field)
        return value

    def most(self, device: Device, now: Telemetry) -> float | None:
        """Return the end of the scale."""
        if not isinstance(self.most_from, str):
            return self.most_from
        owner = device if hasattr(device, self.most_from) else now
        most: float | None = getattr(owner, self.most_from)
        return most


def sensors_of(device: Device) -> tuple[SensorKind, ...]:
    """Return the sensors that a device of this kind can have."""
    if device.is_cpu:
        return CPU_SENSORS
    if not device.is_integrated:
        return CARD_SENSORS
    shared = {"memory": "Shared memory"}
    return tuple(replace(kind, title=shared.get(kind.key, kind.title)) for kind in CARD_SENSORS)


def _bytes_words(value: float) -> str:
    return format_bytes(int(value))


def _rate_words(value: float) -> str:
    return format_rate(value, "B/s")


def _with_unit(unit: str, number: Callable[[float], str]) -> Callable[[float], str]:
    return lambda value: f"{number(value)}{SPACE}{unit}"


_watts, _megahertz = _with_unit("W", three_digits), _with_unit("MHz", "{:.0f}".format)
_percent, _celsius = _with_unit("%", "{:.0f}".format), _with_unit("°C", "{:.0f}".format)

# Per kind: the key, the title, the unit, the field of `Telemetry`, the value as text, the end of
# the scale (a number, or a field of the device or of the telemetry), and the smallest change.
_HUNDRED = 100.0
_ROWS: tuple[
    tuple[str, str, str, str, Callable[[float], str], float | str | None, float | None], ...
] = (
    ("utilization", "GPU load", "%", "utilization_percent", _percent, _HUNDRED, None),
    ("memory", "VRAM", "bytes", "memory_used_bytes", _bytes_words, "memory_total_bytes", 16 << 20),
    ("temperature", "GPU temperature", "°C", "temperature_c", _celsius, None, 1.0),
    ("hotspot", "Hot spot", "°C", "hotspot_c", _celsius, None, 1.0),
    ("memory_temperature", "VRAM temperature", "°C", "memory_temperature_c", _celsius, None, 1.0),
    ("power", "Power", "W", "power_w", _watts, "power_limit_w", None),
    ("clock", "GPU clock", "MHz", "sm_clock_mhz", _megahertz, "sm_clock_max_mhz", None),
    ("memory_clock", "Memory clock", "MHz", "memory_clock_mhz", _megahertz,
     "memory_clock_max_mhz", None),
    ("fan", "Fan", "%", "fan_percent", _percent, _HUNDRED, None),
    ("pcie_in", "PCIe to the card", "B/s", "pcie_rx_bytes_per_s", _rate_words, None, None),
    ("pcie_out", "PCIe from the card", "B/s", "pcie_tx_bytes_per_s", _rate_words, None, None),
)  # fmt: skip
CARD_SENSORS = tuple(SensorKind(*row) for row in _ROWS)
# The first three have the same keys for both, so that the same plots can show either device.
CPU_SENSORS = tuple(
    replace(kind, title=title)
    for kind, title in zip(CARD_SENSORS, ("CPU load", "RAM", "CPU temperature"), strict=False)
)
