"""The CPU, the PC's memory, and the system around the program.

The surroundings: WSL, the distribution, Secure Boot, CUDA variables, the boot.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_studio.core import operating_system
from gpu_studio.core.devices.devices import Device
from gpu_studio.core.telemetry import ClockReason, Telemetry
from gpu_studio.core.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable


# Environment variables of PyTorch and of the makers' software that a finding may mention.
_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "HSA_OVERRIDE_GFX_VERSION",
    "ZE_AFFINITY_MASK",
    "ONEAPI_DEVICE_SELECTOR",
)
_SOFT_CARDS = "SOFT_CARDS_DIR"
_OS_RELEASE = Path("/etc/os-release")
# The UEFI specification's variable; every user may read it. Linux puts four bytes of attributes
# before the value: Documentation/filesystems/efivarfs.rst.
_SECURE_BOOT = Path("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # proc_sys_kernel(5): random at each boot


def card_variables() -> dict[str, str]:
    """Return the variables of this process that PyTorch or a maker's software reads."""
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ}


def are_cards_simulated() -> bool:
    """Return whether this process uses stand-ins for NVIDIA's libraries.

    The soft cards of ``tests/softcards`` set an environment variable.
    """
    return _SOFT_CARDS in os.environ


def is_wsl(release: str | None = None) -> bool:
    """Return whether this Linux runs inside Windows, by its kernel's ``release``."""
    return "microsoft" in (operating_system.release() if release is None else release).lower()


def linux_distribution(os_release: Path = _OS_RELEASE) -> str:
    """Return the ids of a Linux and of its ancestors: ``linuxmint ubuntu debian``."""
    lines = text_of(os_release).splitlines()
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    names = (fields.get(key, "").strip("\"'") for key in ("ID", "ID_LIKE"))
    return plain_text(" ".join(name for name in names if name))


def text_of(path: Path) -> str:
    """Return the text of a file of the system; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def has_secure_boot(variable: Path = _SECURE_BOOT) -> bool:
    """Return whether Linux was started with Secure Boot, as far as it reports that."""
    try:
        return variable.read_bytes()[4:] == b"\x01"
    except OSError:
        return False


def boot_mark(boot_id: Path = _BOOT_ID) -> str:
    """Return a mark that differs after each start of the PC: an id, or the time in seconds."""
    if mark := text_of(boot_id).strip():
        return mark
    import psutil  # 9 ms

    return str(int(psutil.boot_time()))


_CPUS = Path("/sys/devices/system/cpu")
_CPUFREQ = _CPUS / "cpufreq"
# Intel's count of how often the hardware lowered the clock because of heat, for each core and for
# the whole chip (Linux, drivers of the kernel).
_COUNTERS = "cpu[0-9]*/thermal_throttle/*_throttle_count"
_MOST_CELSIUS = 200.0
_REGISTRY_KEY = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
# Drivers that measure the CPU, and the reading for the whole CPU.
_TEMPERATURE_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal")
_WHOLE_CPU = ("Package id 0", "Tctl", "Tdie")
# Placeholders for the name in some virtual machines.
_PLACEHOLDERS = ("unknown", "not specified", "to be filled by o.e.m.")
_MACHINES = {"amd64": "x86-64", "x86_64": "x86-64", "aarch64": "ARM64", "arm64": "ARM64"}


def describe_cpu(telemetry: Telemetry) -> Device:
    """Return the CPU with its cores, its highest clock and the PC's memory."""
    import psutil  # 9 ms

    return Device(
        kind="cpu",
        name=cpu_name(),
        memory_total_bytes=psutil.virtual_memory().total,
        telemetry=telemetry,
        cores=psutil.cpu_count(logical=False),
        threads=psutil.cpu_count(logical=True),
        clock_max_mhz=_clock_max_mhz(),
        slowdown_c=critical_c(),
        is_laptop=_has_battery(),
    )


def _has_battery() -> bool:
    import psutil  # 9 ms

    try:
        return psutil.sensors_battery() is not None
    except (AttributeError, OSError, RuntimeError):
        return False  # not on every system


class CpuSensor:
    """The CPU's sensors; utilization is the mean since the previous reading."""

    def __init__(self) -> None:
        self._has_begun = False

    def read(self) -> Telemetry:
        """Return one reading. "Used" memory excludes caches that the system can free at once."""
        import psutil  # 9 ms

        memory = psutil.virtual_memory()
        percent = psutil.cpu_percent(interval=None)
        # psutil's first answer is 0.0, because it has no earlier value to compare with.
        utilization_percent = float(percent) if self._has_begun else None
        self._has_begun = True
        return Telemetry(
            temperature_c=temperature_c(),
            utilization_percent=utilization_percent,
            memory_used_bytes=memory.total - memory.available,
            memory_free_bytes=memory.available,
        )


class CpuHeat:
    """Reads the CPU's heat; a counter that rose since the last reading is a brake."""

    def __init__(self, cpus: Path = _CPUS) -> None:
        self._cpus = cpus
        self._last: int | None = None

    def read(self) -> Telemetry | None:
        """Return one reading; None if the system reports neither heat nor clock nor brakes."""
        now = Telemetry(
            temperature_c=temperature_c(),
            sm_clock_mhz=clock_mhz(),
            clock_event_reasons=self._reasons(),
        )
        return None if now == Telemetry() else now

    def _reasons(self) -> ClockReason | None:
        counts = [_count(path) for path in self._cpus.glob(_COUNTERS)]
        known = [count for count in counts if count is not None]
        if not known:
            return None
        before, self._last = self._last, sum(known)
        has_risen = before is not None and self._last > before
        return ClockReason.HARDWARE_HEAT if has_risen else ClockReason(0)


def _count(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def cpu_name() -> str:
    """Return the CPU's name; a description if it has none."""
    if sys.platform == "win32":
        import winreg

        name = name_in_registry(winreg)
    else:
        name = name_in_cpuinfo(text_of(Path("/proc/cpuinfo")))
        name = name or text_of(Path("/proc/device-tree/model"))
    machine = operating_system.machine()
    return _tidy(name) or f"CPU ({_MACHINES.get(machine.lower(), machine) or 'unknown kind'})"


def name_in_cpuinfo(text: str) -> str:
    """Return the name in the text of /proc/cpuinfo; empty if there is none.

    x86 has "model name"; a few others have "cpu model", "Model" or "Hardware".
    """
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip().lower(), value.strip())
    names = (fields.get(key, "") for key in ("model name", "cpu model", "model", "hardware"))
    # On x86 the field "model" is a bare number.
    return next((name for name in names if name and not name.isdecimal()), "")


def name_in_registry(winreg: Any) -> str:
    """Return the CPU's name in the Windows registry; ``winreg`` is the module."""
    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _REGISTRY_KEY) as key:
            return str(winreg.QueryValueEx(key, "ProcessorNameString")[0])
    except OSError:
        return ""


def _tidy(name: str) -> str:
    name = " ".join(plain_text(name).split())
    return "" if name.lower() in _PLACEHOLDERS else name


def _clock_max_mhz() -> float | None:
    import psutil  # 9 ms

    try:
        frequency = psutil.cpu_freq()
    except (OSError, NotImplementedError, RuntimeError, AttributeError):
        return None  # virtual machines and ARM boards raise all of these
    return float(frequency.max) if frequency and frequency.max else None


def temperature_c() -> float | None:
    """Return the CPU's temperature; None if the system does not report it."""
    return _plausible(entry.current for entry in _whole_cpu())


def critical_c() -> float | None:
    """Return the temperature at which the CPU slows itself down; None if it is not reported."""
    # Not "high": the driver of AMD reports 70 °C there, where nothing happens.
    return _plausible(entry.critical for entry in _whole_cpu())


def _plausible(values: Iterable[float | None]) -> float | None:
    hottest = max((float(value) for value in values if value is not None), default=None)
    return hottest if hottest is not None and 0.0 <= hottest <= _MOST_CELSIUS else None


def _whole_cpu() -> list[Any]:
    """Return the readings for the whole CPU, or for each core; empty if there are none."""
    import psutil  # 9 ms

    sensors = getattr(psutil, "sensors_temperatures", None)  # only on Linux and FreeBSD
    if sensors is None:
        return []
    try:
        by_driver = sensors()
    except (OSError, RuntimeError):
        return []
    for driver in _TEMPERATURE_SENSORS:
        entries = by_driver.get(driver, [])
        if entries:
            return [entry for entry in entries if entry.label in _WHOLE_CPU] or entries
    return []


def clock_mhz() -> float | None:
    """Return the present clock of the fastest core; None if the system does not measure it.

    Only Linux does, with a driver for the CPU's clock. Without one, as on Windows and in most
    virtual machines, psutil's "current" clock is the nominal one and never changes.
    """
    import psutil  # 9 ms

    if not any(_CPUFREQ.glob("policy*")):
        return None
    try:
        cores = psutil.cpu_freq(percpu=True)
    except (OSError, NotImplementedError, RuntimeError, AttributeError):
        return None
    return max((float(core.current) for core in cores if core.current > 0), default=None)
