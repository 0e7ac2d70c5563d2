"""What each kernel driver of a card reports, and under which labels: a row per driver.

A driver without a row is read as `_ANY`: whatever it has in hwmon without a label.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_studio.core.telemetry import ClockReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.hardware.linux.hwmon import Labels
    from gpu_studio.hardware.linux.sys_tree import SysTree

_DPM_LINE = re.compile(r"\d+:\s*(\d{1,6})\s*Mhz\s*(\*?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a card in MHz; None for what is not reported."""

    core_mhz: float | None = None
    core_max_mhz: float | None = None
    memory_mhz: float | None = None
    memory_max_mhz: float | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """A card's own memory and the part of the PC's that it may take, in bytes."""

    own_total: int | None = None
    own_used: int | None = None
    shared_total: int | None = None
    shared_used: int | None = None


@dataclass(frozen=True, slots=True)
class CardPlace:
    """Where a card is in a tree: the folder of its device, and its own below class/drm."""

    tree: SysTree
    device: str
    card: str


@dataclass(frozen=True, kw_only=True)
class DriverSensors:
    """What a driver reports.

    Attributes:
        temperature, hotspot, memory_temperature, power, core_clock, memory_clock: labels in hwmon.
        memory_channels: how the labels of the memory's parts begin; the hottest counts.
        load, memory_load: files of the device with a percentage.
        clocks: reads the clocks that hwmon lacks.
        memory: reads the memory.
        reasons: reads why the clocks are as they are; None if the driver does not say it.
    """

    temperature: Labels = ("",)
    hotspot: Labels = ()
    memory_temperature: Labels = ()
    memory_channels: str = ""
    power: Labels = ("",)
    core_clock: Labels = ("",)
    memory_clock: Labels = ()
    load: str = ""
    memory_load: str = ""
    clocks: Callable[[CardPlace], Clocks] = lambda _place: Clocks()
    memory: Callable[[CardPlace], Memory] = lambda _place: Memory()
    reasons: Callable[[CardPlace], ClockReason | None] = lambda _place: None


def _amd_memory(place: CardPlace) -> Memory:
    """Documentation/gpu/amdgpu/driver-misc.rst, "Memory Usage Information"."""

    def size(name: str, least: int) -> int | None:
        return place.tree.number(f"{place.device}/mem_info_{name}", least, 1 << 50)

    return Memory(
        own_total=size("vram_total", 1),
        own_used=size("vram_used", 0),
        shared_total=size("gtt_total", 1),
        shared_used=size("gtt_used", 0),
    )


def _amd_clocks(place: CardPlace) -> Clocks:
    """Return the clocks of ``pp_dpm_sclk`` and ``pp_dpm_mclk``: a line per level, ``*`` is now."""
    core_mhz, core_max_mhz = _levels(place, "pp_dpm_sclk")
    memory_mhz, memory_max_mhz = _levels(place, "pp_dpm_mclk")
    return Clocks(core_mhz, core_max_mhz, memory_mhz, memory_max_mhz)


def _levels(place: CardPlace, name: str) -> tuple[float | None, float | None]:
    lines = place.tree.lines(f"{place.device}/{name}")
    levels = [found for line in lines if (found := _DPM_LINE.match(line.strip()))]
    now = next((float(level[1]) for level in levels if level[2]), None)
    return now, max((float(level[1]) for level in levels), default=None) or None


def _xe_unit(place: CardPlace) -> str:
    """Return the folder of the part of an Intel card that draws and computes; "" if none."""
    tile = f"{place.device}/tile0"
    units = [f"{tile}/{name}" for name in place.tree.names(tile) if name.startswith("gt")]
    drawing = (unit for unit in units if {"rcs", "ccs"} & set(place.tree.names(f"{unit}/engines")))
    return next(drawing, units[0] if units else "")


def _xe_clocks(place: CardPlace) -> Clocks:
    """Documentation/ABI/testing/sysfs-driver-intel-xe: the frequencies are in MHz."""
    unit = _xe_unit(place)
    if not unit:
        return Clocks()
    folder = f"{unit}/freq0"
    return Clocks(
        core_mhz=_megahertz(place, f"{folder}/act_freq", f"{folder}/cur_freq"),
        core_max_mhz=_megahertz(place, f"{folder}/rp0_freq", f"{folder}/max_freq"),
    )


_XE_REASONS = {
    "reason_thermal": ClockReason.HARDWARE_HEAT,
    "reason_prochot": ClockReason.HARDWARE_HEAT,
    "reason_vr_thermalert": ClockReason.HARDWARE_HEAT,
    "reason_pl1": ClockReason.POWER_LIMIT,
    "reason_pl2": ClockReason.POWER_LIMIT,
    "reason_pl4": ClockReason.POWER_LIMIT,
    "reason_vr_tdc": ClockReason.POWER_BRAKE,
    "reason_ratl": ClockReason.HARDWARE_SLOWDOWN,
}


def _xe_reasons(place: CardPlace) -> ClockReason | None:
    unit = _xe_unit(place)
    folder = f"{unit}/freq0/throttle"
    states = {name: place.tree.number(f"{folder}/{name}", 0, 1) for name in _XE_REASONS}
    if not unit or all(state is None for state in states.values()):
        return None
    reasons = ClockReason(0)
    for name, state in states.items():
        if state:
            reasons |= _XE_REASONS[name]
    return reasons


def _i915_clocks(place: CardPlace) -> Clocks:
    """Return the clocks that i915 has beside the card; the newer folder ``gt/gt0`` has more."""
    card, unit = place.card, f"{place.card}/gt/gt0"
    return Clocks(
        core_mhz=_megahertz(
            place, f"{unit}/rps_act_freq_mhz", f"{card}/gt_act_freq_mhz",
            f"{unit}/rps_cur_freq_mhz", f"{card}/gt_cur_freq_mhz",
        ),
        core_max_mhz=_megahertz(
            place, f"{unit}/rps_RP0_freq_mhz", f"{card}/gt_RP0_freq_mhz",
            f"{unit}/rps_max_freq_mhz", f"{card}/gt_max_freq_mhz",
        ),
    )  # fmt: skip


def _megahertz(place: CardPlace, *paths: str) -> float | None:
    values = (place.tree.number(path, 0, 20_000) for path in paths)
    value = next((value for value in values if value is not None), None)
    return None if value is None else float(value)


_AMDGPU = DriverSensors(
    temperature=("edge", ""),
    hotspot=("junction",),
    memory_temperature=("mem",),
    power=("ppt", "slowppt", "fastppt", ""),
    core_clock=("sclk", ""),
    memory_clock=("mclk",),
    load="gpu_busy_percent",
    memory_load="mem_busy_percent",
    clocks=_amd_clocks,
    memory=_amd_memory,
)
_XE = DriverSensors(
    temperature=("pkg", ""),
    memory_temperature=("vram",),
    memory_channels="vram_ch_",
    power=("card", "pkg", ""),
    clocks=_xe_clocks,
    reasons=_xe_reasons,
)
_I915 = DriverSensors(
    temperature=("pkg", ""),
    memory_temperature=("vram",),
    memory_channels="vram_ch_",
    power=("card", "pkg", ""),
    clocks=_i915_clocks,
)
_ANY = DriverSensors()
_BY_DRIVER = {"amdgpu": _AMDGPU, "xe": _XE, "i915": _I915}


def sensors_of_driver(driver: str | None) -> DriverSensors:
    """Return what a kernel driver reports."""
    return _BY_DRIVER.get(driver or "", _ANY)
