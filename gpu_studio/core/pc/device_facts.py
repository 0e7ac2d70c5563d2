"""Everything that is known of a device, as rows in groups."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from gpu_studio.core.pc.card_facts import card_groups
from gpu_studio.core.pc.facts import (
    Fact,
    FactGroup,
    PcSnapshot,
    amount_text,
    bytes_text,
    celsius_text,
    fact,
    percent_text,
)
from gpu_studio.core.pc.published_builds import table_differences
from gpu_studio.core.protocol import EngineDescribed
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.core.units import format_bytes
from gpu_studio.core.wheel_table import load_table
from gpu_studio.core.wheels import platform_key, version_numbers

if TYPE_CHECKING:
    from gpu_studio.core.pc.devices import Device

_NO_CPU_SENSOR = "The system offers no such sensor of this CPU."
_NOT_READ_YET = "Not read yet."
_ENGINE_STARTS = "The engine is starting."
_CPU_BUILD = "This PyTorch is built for the CPU alone."
_STARTING = EngineDescribed(pid=0, torch_version="")
_SIMD = "What PyTorch's own kernels use on this CPU."


def summary_line(device: Device, engine: EngineDescribed | None) -> str:
    """Return the line under a device's name: ``cuda:0 · 2 GiB · 6.1 · drives your monitor``."""
    memory = format_bytes(device.memory_total_bytes) if device.memory_total_bytes else None
    parts: tuple[str | None, ...]
    if device.kind == "cpu":
        parts = ("CPU", _cores(device), memory, engine.cpu_capability if engine else None)
    else:
        place = "cannot be read" if device.unreadable else "not seen by PyTorch"
        asleep = "asleep" if device.unreadable_code == "asleep" else None
        monitor = "drives your monitor" if device.display_active else None
        capability = device.compute_capability
        parts = (device.address or asleep or place, memory, capability, monitor, asleep)
        parts = tuple(dict.fromkeys(parts))  # one without a number is asleep once
    return "\u00a0· ".join(part for part in parts if part)  # a dot begins no line


def facts_of(device: Device, snapshot: PcSnapshot) -> tuple[FactGroup, ...]:
    """Return all rows that matter for a device: its own, PyTorch's and the driver's."""
    return (*own_facts(device, snapshot), *shared_facts(snapshot))


def own_facts(device: Device, snapshot: PcSnapshot) -> tuple[FactGroup, ...]:
    """Return the rows of one device."""
    if device.kind == "cuda":
        return card_groups(device, snapshot)
    return (_cpu_group(device, snapshot),)


def shared_facts(snapshot: PcSnapshot) -> tuple[FactGroup, ...]:
    """Return the rows that are the same for all devices: PyTorch's and the driver's."""
    return (_torch_group(snapshot), _driver_group(snapshot))


def _cpu_group(device: Device, snapshot: PcSnapshot) -> FactGroup:
    now, engine = snapshot.telemetry(device), snapshot.engine
    simd = engine.cpu_capability if engine else None
    clock = amount_text(device.clock_max_mhz, None, "MHz")
    temperature = celsius_text(now.temperature_c)
    facts = (
        fact("name", "Name", device.name),
        fact("cores", "Cores", _cores(device), "The system does not say."),
        fact("clock", "Highest clock", clock, _NO_CPU_SENSOR),
        fact("simd", "Vector instructions", simd, _ENGINE_STARTS, _SIMD),
        fact("utilization", "Utilisation", percent_text(now.utilization_percent), _NOT_READ_YET),
        fact("temperature", "Temperature", temperature, _NO_CPU_SENSOR),
        fact("memory_total", "RAM", bytes_text(device.memory_total_bytes), _NOT_READ_YET),
        fact("memory_used", "RAM used", bytes_text(now.memory_used_bytes), _NOT_READ_YET),
        fact("memory_free", "RAM available", bytes_text(now.memory_free_bytes), _NOT_READ_YET),
    )
    return FactGroup(title="CPU and RAM", facts=facts)


def _cores(device: Device) -> str | None:
    counts = [
        f"{count} {word}{'s' if count > 1 else ''}"
        for count, word in ((device.cores, "core"), (device.threads, "thread"))
        if count
    ]
    return ", ".join(counts) or None


def _torch_group(snapshot: PcSnapshot) -> FactGroup:
    engine = snapshot.engine or _STARTING
    why_not = "It does not say." if snapshot.engine else _ENGINE_STARTS
    no_cuda = engine.cuda_reason or ("PyTorch sees no card." if snapshot.engine else why_not)
    cpu_build = _CPU_BUILD if snapshot.engine else why_not
    no_code = "PyTorch tells it only where it can use CUDA." if engine.cuda_build else cpu_build
    is_asked = snapshot.engine is not None and not engine.cards_asleep
    count = str(engine.device_count) if is_asked else None
    facts: tuple[Fact, ...] = (
        _cuda_available(snapshot.engine, no_cuda),
        fact("torch_version", "PyTorch", engine.torch_version, why_not),
        fact("cuda_build", "Built for CUDA", engine.cuda_build, cpu_build),
        fact("arch_list", "Has code for", " ".join(engine.arch_list), no_code),
        fact("device_count", "Cards it sees", count, no_cuda),
        fact("current_device", "Current card", _current_card(snapshot), no_cuda),
        fact("cpu_threads", "CPU threads", str(engine.cpu_threads or ""), why_not),
        fact("python_version", "Python", engine.python_version, why_not),
    )
    if engine.own_table:
        facts += (_tables(engine),)
    if engine.visible_devices is not None:
        visible = engine.visible_devices or "none"
        facts += (fact("visible_devices", "CUDA_VISIBLE_DEVICES", visible),)
    if engine.recording:
        facts += (fact("recording", "Recording", engine.recording),)
    return FactGroup(title="PyTorch", facts=facts)


def _tables(engine: EngineDescribed) -> Fact:
    """Return whether PyTorch's own table of its builds agrees with this program's."""
    try:
        table = load_table()
    except MissingResourceError:
        return fact("tables", "Tables of builds", None, "This program's own table is missing.")
    if version_numbers(engine.torch_version) != version_numbers(table.torch_version):
        why_not = f"This program's table is of PyTorch {table.torch_version}."
        return fact("tables", "Tables of builds", None, why_not)
    key = platform_key(platform.system(), platform.machine())
    differences = table_differences(table, engine.own_table, engine.torch_version, key)
    builds = ", ".join(engine.own_table)
    note = f"What PyTorch's builds for CUDA {builds} serve, by PyTorch and by this program."
    return fact("tables", "Tables of builds", "; ".join(differences) or "agree", note=note)


def _cuda_available(engine: EngineDescribed | None, why_not: str) -> Fact:
    if engine is None or engine.cards_asleep:
        return fact("cuda_available", "CUDA available", None, why_not)
    value, reason = ("yes", "") if engine.cuda_available else ("no", why_not)
    return fact("cuda_available", "CUDA available", value, note=reason)


def _current_card(snapshot: PcSnapshot) -> str | None:
    if snapshot.engine is None or not snapshot.engine.cuda_available:
        return None
    address = f"cuda:{snapshot.current_device or 0}"
    card = snapshot.inventory.find(address)
    return f"{address} {card.short_name}" if card else address


def _driver_group(snapshot: PcSnapshot) -> FactGroup:
    driver = snapshot.inventory.driver
    why_not = driver.error or "The driver does not say."
    facts: tuple[Fact, ...] = (
        fact("driver_version", "NVIDIA driver", driver.version, why_not, driver.error or ""),
        fact("driver_cuda", "Runs CUDA up to", driver.cuda_version, why_not),
        fact("nvml_version", "NVML", driver.nvml_version, why_not),
    )
    others = ", ".join(snapshot.inventory.other_gpus)
    if others:
        note = "Not made by NVIDIA, so CUDA does not run on it."
        facts += (fact("other_gpus", "Other graphics", others, note=note),)
    return FactGroup(title="Driver", facts=facts)
