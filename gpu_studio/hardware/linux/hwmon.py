"""The sensors of a card in hwmon, found by their labels, never by their numbers.

Documentation/hwmon/sysfs-interface.rst of Linux has the names and the units of the files.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.hardware.linux.sys_tree import SysTree

Labels = tuple[str, ...]
"""The labels that a driver may give a sensor, best first; "" is a sensor without a label."""

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
        for number in self._numbers("temp", labels):
            value = self._number(f"temp{number}_input", 1, _HOTTEST_MILLIDEGREES)
            if value is not None:
                return value / 1000
        return None

    def hottest_celsius(self, beginning: str) -> float | None:
        """Return the highest temperature whose label begins so: ``vram_ch_``."""
        labels = [
            label for _, label in self._sensors.get("temp", ()) if label.startswith(beginning)
        ]
        found = [self.celsius((label,)) for label in labels]
        return max((value for value in found if value is not None), default=None)

    def watts(self, labels: Labels) -> float | None:
        """Return the power: its average, its present value, or the energy since the last call."""
        for number in self._numbers("power", labels):
            for attribute in ("average", "input"):
                value = self._number(f"power{number}_{attribute}", 0, _MOST_MICROWATTS)
                if value is not None:
                    return value / 1e6
        return self._watts_by_energy(labels)

    def limit_watts(self, labels: Labels) -> float | None:
        """Return the limit of the power that `watts` returns."""
        for number in self._numbers("power", labels):
            for attribute in ("cap", "max"):
                value = self._number(f"power{number}_{attribute}", 1, _MOST_MICROWATTS)
                if value is not None:
                    return value / 1e6
        return None

    def megahertz(self, labels: Labels) -> float | None:
        for number in self._numbers("freq", labels):
            value = self._number(f"freq{number}_input", 0, _HIGHEST_HERTZ)
            if value is not None:
                return value / 1e6
        return None

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

    def _number(self, name: str, least: int, most: int) -> int | None:
        if name not in self._files:
            return None
        return self._tree.number(f"{self._folder}/{name}", least, most)

    def _find(self, device: str, driver: str | None) -> str:
        base = f"{device}/hwmon"
        folders = [f"{base}/{name}" for name in self._tree.names(base) if name.startswith("hwmon")]
        own = (folder for folder in folders if self._tree.text(f"{folder}/name") == driver)
        return next(own, folders[0] if folders else "")
