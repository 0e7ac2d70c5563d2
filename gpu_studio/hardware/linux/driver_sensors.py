"""What each kernel driver of a card reports, and under which labels: a row per driver.

A driver without a row is read as `_ANY`: whatever it has in hwmon without a label.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_studio.core.telemetry import ClockReason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.hardware.linux.sys_tree import SysTree

Labels = tuple[str, ...]
"""The labels that a driver may give a sensor, best first; "" is a sensor without a label."""
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


# ── hwmon: Documentation/hwmon/sysfs-interface.rst of Linux has the names and units of its files ──

_FILE = re.compile(r"(temp|power|energy|fan|freq|pwm|in)(\d+)(?:_(\w+))?")
# What lies outside of these is no reading of a card.
_HOTTEST_MILLIDEGREES = 150_000
_MOST_MICROWATTS = 3_000_000_000
_FASTEST_FAN_RPM = 30_000
_HIGHEST_HERTZ = 50_000_000_000
_LEAST_SPAN_S = 0.05
_TURNS_FROM_RPM = 100


class Hwmon:
    """The sensors of one card.

    Args:
        tree: the tree that has them.
        device: the folder of the card's device.
        driver: the name of the driver's own sensors, where a card has several.
        now_s: a monotonic clock.
    """

    def __init__(
        self,
        tree: SysTree,
        device: str,
        driver: str | None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tree, self._now_s = tree, now_s
        self._folder = self._find(device, driver)
        self._files: set[str] = set(tree.names(self._folder)) if self._folder else set()
        self._sensors: dict[str, list[tuple[int, str]]] = {}
        for name in tree.names(self._folder) if self._folder else ():
            found = _FILE.fullmatch(name)
            if found is None:
                continue
            kind, number = found[1], int(found[2])
            sensors = self._sensors.setdefault(kind, [])
            if number not in [known for known, _ in sensors]:
                label = tree.text(f"{self._folder}/{kind}{number}_label") or ""
                sensors.append((number, label.lower()))
        self._energy: tuple[int, int, float] | None = None

    def has_label(self, kind: str, label: str) -> bool:
        return any(known == label for _, known in self._sensors.get(kind, ()))

    def celsius(self, labels: Labels) -> float | None:
        """Return the temperature with the first of these labels that has a possible one."""
        value = self._first("temp", labels, ("input",), 1, _HOTTEST_MILLIDEGREES)
        return None if value is None else value / 1000

    def hottest_celsius(self, beginning: str) -> float | None:
        """Return the highest temperature whose label begins so: ``vram_ch_``."""
        labels = [
            label for _, label in self._sensors.get("temp", ()) if label.startswith(beginning)
        ]
        found = [self.celsius((label,)) for label in labels]
        return max((value for value in found if value is not None), default=None)

    def watts(self, labels: Labels) -> float | None:
        """Return the power: its average, its present value, or the energy since the last call."""
        value = self._first("power", labels, ("average", "input"), 0, _MOST_MICROWATTS)
        return self._watts_by_energy(labels) if value is None else value / 1e6

    def limit_watts(self, labels: Labels) -> float | None:
        """Return the limit of the power that `watts` returns."""
        value = self._first("power", labels, ("cap", "max"), 1, _MOST_MICROWATTS)
        return None if value is None else value / 1e6

    def megahertz(self, labels: Labels) -> float | None:
        value = self._first("freq", labels, ("input",), 0, _HIGHEST_HERTZ)
        return None if value is None else value / 1e6

    def fan_rpm(self) -> float | None:
        """Return the speed of the fastest fan."""
        numbers = [number for number, _ in self._sensors.get("fan", ())]
        speeds = [self._number(f"fan{number}_input", 0, _FASTEST_FAN_RPM) for number in numbers]
        return max((float(speed) for speed in speeds if speed is not None), default=None)

    def fan_percent(self) -> float | None:
        """Return how far the fan is turned up; None if a fan turns that is said to stand still."""
        most = self._number("pwm1_max", 1, 1 << 16) or 255
        level = self._number("pwm1", 0, most)
        if level is None:
            return None
        rpm = self.fan_rpm()
        if level == 0 and rpm is not None and rpm >= _TURNS_FROM_RPM:
            return None
        return 100 * level / most

    def _watts_by_energy(self, labels: Labels) -> float | None:
        for number in self._numbers("energy", labels):
            used = self._number(f"energy{number}_input", 0, 1 << 62)
            if used is None:
                continue
            now_s, before = self._now_s(), self._energy
            if before is None or before[0] != number:
                self._energy = (number, used, now_s)
                return None
            span_s = now_s - before[2]
            if span_s < _LEAST_SPAN_S:
                return None
            self._energy = (number, used, now_s)
            watts = (used - before[1]) / 1e6 / span_s
            # A counter that stands still or began anew says nothing.
            return watts if 0 < watts <= _MOST_MICROWATTS / 1e6 else None
        return None

    def _numbers(self, kind: str, labels: Labels) -> Sequence[int]:
        sensors = self._sensors.get(kind, ())
        return [number for label in labels for number, known in sensors if known == label]

    def _first(
        self, kind: str, labels: Labels, attributes: Sequence[str], least: int, most: int
    ) -> int | None:
        """Return the first possible value of the sensors of a kind, by their labels."""
        names = (f"{kind}{n}_{one}" for n in self._numbers(kind, labels) for one in attributes)
        values = (self._number(name, least, most) for name in names)
        return next((value for value in values if value is not None), None)

    def _number(self, name: str, least: int, most: int) -> int | None:
        if name not in self._files:
            return None
        return self._tree.number(f"{self._folder}/{name}", least, most)

    def _find(self, device: str, driver: str | None) -> str:
        base = f"{device}/hwmon"
        folders = [f"{base}/{name}" for name in self._tree.names(base) if name.startswith("hwmon")]
        own = (folder for folder in folders if self._tree.text(f"{folder}/name") == driver)
        return next(own, folders[0] if folders else "")
