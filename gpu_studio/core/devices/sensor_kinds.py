"""The kinds of sensors: the source of each value, the end of its scale, and its text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpu_studio.core.devices.devices import CUDA_BUILD
from gpu_studio.core.devices.facts import SPACE, bytes_text, celsius_text, percent_text
from gpu_studio.core.units import format_rate, three_digits

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
        value: gets the value from a reading; None if the device does not report it.
        most: the end of the scale, None if there is none.
        words: the value as text.
        change_from: the smallest change over a span that is worth showing; None is never.
    """

    key: str
    title: str
    unit: str
    value: Callable[[Telemetry], float | None]
    most: Callable[[Device, Telemetry], float | None]
    words: Callable[[float], str]
    change_from: float | None = None


def sensors_of(device: Device) -> tuple[SensorKind, ...]:
    """Return the sensors that a device of this kind can have."""
    if device.is_cpu:
        return CPU_SENSORS
    if device.build_kind == CUDA_BUILD:
        return CARD_SENSORS
    titles = {_CLOCK: "GPU clock"} | ({_MEMORY: "Shared memory"} if device.is_integrated else {})
    return tuple(replace(kind, title=titles.get(kind, kind.title)) for kind in CARD_SENSORS)


def _or_empty(words: Callable[[float], str | None]) -> Callable[[float], str]:
    return lambda value: words(value) or ""


def _bytes_words(value: float) -> str:
    return bytes_text(int(value)) or ""


def _watts(value: float) -> str:
    return f"{three_digits(value)}{SPACE}W"


def _megahertz(value: float) -> str:
    return f"{value:.0f}{SPACE}MHz"


def _rate_words(value: float) -> str:
    return format_rate(value, "B/s")


def _hundred(_device: Device, _telemetry: Telemetry) -> float:
    return 100.0


def _open(_device: Device, _telemetry: Telemetry) -> None:
    return None


_UTILIZATION = SensorKind(
    "utilization",
    "GPU load",
    "%",
    lambda telemetry: telemetry.utilization_percent,
    _hundred,
    _or_empty(percent_text),
)
_MEMORY = SensorKind(
    "memory",
    "VRAM",
    "bytes",
    lambda telemetry: telemetry.memory_used_bytes,
    lambda device, _telemetry: device.memory_total_bytes,
    _bytes_words,
    change_from=16 << 20,
)
_TEMPERATURE = SensorKind(
    "temperature",
    "GPU temperature",
    "°C",
    lambda telemetry: telemetry.temperature_c,
    _open,
    _or_empty(celsius_text),
    change_from=1.0,
)
_HOT_SPOT = SensorKind(
    "hotspot",
    "Hot spot",
    "°C",
    lambda telemetry: telemetry.hotspot_c,
    _open,
    _or_empty(celsius_text),
    change_from=1.0,
)
_MEMORY_TEMPERATURE = SensorKind(
    "memory_temperature",
    "VRAM temperature",
    "°C",
    lambda telemetry: telemetry.memory_temperature_c,
    _open,
    _or_empty(celsius_text),
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
_MEMORY_CLOCK = SensorKind(
    "memory_clock",
    "Memory clock",
    "MHz",
    lambda telemetry: telemetry.memory_clock_mhz,
    lambda device, _telemetry: device.memory_clock_max_mhz,
    _megahertz,
)
_FAN = SensorKind(
    "fan",
    "Fan",
    "%",
    lambda telemetry: telemetry.fan_percent,
    _hundred,
    _or_empty(percent_text),
)
_PCIE_IN = SensorKind(
    "pcie_in",
    "PCIe to the card",
    "B/s",
    lambda telemetry: telemetry.pcie_rx_bytes_per_s,
    _open,
    _rate_words,
)
_PCIE_OUT = SensorKind(
    "pcie_out",
    "PCIe from the card",
    "B/s",
    lambda telemetry: telemetry.pcie_tx_bytes_per_s,
    _open,
    _rate_words,
)

# The first three have the same keys for both, so that the same plots can show either device.
CPU_SENSORS = (
    replace(_UTILIZATION, title="CPU load"),
    replace(_MEMORY, title="RAM"),
    replace(_TEMPERATURE, title="CPU temperature"),
)
CARD_SENSORS = (
    _UTILIZATION, _MEMORY, _TEMPERATURE, _HOT_SPOT, _MEMORY_TEMPERATURE, _POWER, _CLOCK,
    _MEMORY_CLOCK, _FAN, _PCIE_IN, _PCIE_OUT,
)  # fmt: skip
