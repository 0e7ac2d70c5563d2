"""The devices in this PC, and whether PyTorch can use them.

``gpu-studio devices`` shows them, and ``gpu-studio`` without a window compares them as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gpu_studio.cli.answers import (
    CommandEngine,
    NoEngineError,
    addresses,
    at_work,
    describe_beside,
    new_engine,
    read_inventory,
)
from gpu_studio.cli.command import DONE, FAILED, JSON_OBJECT, Command
from gpu_studio.cli.screen import Progress, print_json, print_line
from gpu_studio.core.devices.devices import CUDA_BUILD, Device, GpuProcess, Inventory
from gpu_studio.core.devices.facts import PcSnapshot, driver_text, identity_line
from gpu_studio.core.devices.findings import find
from gpu_studio.core.devices.report import pc_value
from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.program_form import typed
from gpu_studio.core.units import format_bytes

_WORKLOADS = ("elementwise", "matmul")
_SIZES = (128, 512, 2048)
_BUDGET_S = 0.5
_HOW_TO_GET_THE_WINDOW = (
    "The window shows live curves and your card's memory: start GPU Studio on a desktop, or "
    "connect with “ssh -X”. “{help}” lists the terminal commands."
)


def _run(options: argparse.Namespace, log_path: Path) -> int:
    """Print the devices, PyTorch and the driver; return the exit status."""
    description: EngineDescribed | None = None
    reads: dict[str, MemoryRead] = {}
    error, is_missing = "", False
    with Progress() as progress:
        progress.show("Looking at this PC …")
        inventory = read_inventory(log_path)
        progress.show("Asking PyTorch …")
        try:
            with at_work(new_engine(log_path)) as work:
                description = describe_beside(
                    inventory, work.engine, work.interrupt, wakes_cards=False
                )
                reads = _read_allocators(work, description)
        except StudioError as failure:
            error, is_missing = str(failure), isinstance(failure, NoEngineError)
    if options.json:
        value = pc_value(PcSnapshot(inventory=inventory, engine=description), error)
        for device, row in zip(inventory.devices, value["devices"], strict=True):
            read = reads.get(device.address or "")
            row["allocated_bytes"] = read.allocated_bytes if read else None
            row["reserved_bytes"] = read.reserved_bytes if read else None
        print_json(value)
        return FAILED if description is None and not is_missing else DONE
    for line in device_lines(inventory, description):
        print_line(line)
    for address, read in reads.items():
        allocated, reserved = (
            format_bytes(size or 0) for size in (read.allocated_bytes, read.reserved_bytes)
        )
        print_line(
            f"{address:<10}PyTorch, just started: {allocated} allocated, {reserved} reserved"
        )
    print_line()
    if is_missing:
        for line in missing_lines(inventory, error):
            print_line(line)
        return DONE
    if description is None:
        print_line(f"PyTorch did not start: {error}")
        return FAILED
    for line in finding_lines(inventory, description):
        print_line(line)
    return DONE


def _read_allocators(work: CommandEngine, description: EngineDescribed) -> dict[str, MemoryRead]:
    """Return the memory that PyTorch holds on each card, by address, without a CUDA context.

    An engine that has not used a card yet holds none: the reading is 0.
    """
    reads = {}
    for address in description.card_addresses:
        for event in work.answers(ReadMemory(device=address)):
            if isinstance(event, MemoryRead):
                reads[address] = msgspec.structs.replace(
                    event,
                    allocated_bytes=event.allocated_bytes or 0,
                    reserved_bytes=event.reserved_bytes or 0,
                )
    return reads


def device_lines(inventory: Inventory, description: EngineDescribed | None) -> Iterator[str]:
    """Yield one paragraph per device, then PyTorch and the driver."""
    for device in inventory.devices:
        is_other = device.build_kind != CUDA_BUILD
        address = device.address or (f"({device.maker or 'other'})" if is_other else "(hidden)")
        yield f"{address:<10}{device.name}"
        if device.is_cpu:
            capability = description.cpu_capability if description else None
            facts = _cpu_facts(device, capability)
        else:
            facts = _card_facts(device)
        for line in facts:
            yield f"{'':<10}{line}"
    for name in inventory.other_gpus:
        yield f"{'(no CUDA)':<10}{name}"
    if description is not None:
        build = f"{description.torch_version}, built for {description.built_for}"
        yield f"{'PyTorch':<10}{build}"
    driver = inventory.driver
    cuda = f", supports CUDA up to {driver.cuda_version}" if driver.cuda_version else ""
    yield f"{'Driver':<10}{driver.error or driver.version or 'unknown'}{cuda}"


def finding_lines(inventory: Inventory, description: EngineDescribed) -> Iterator[str]:
    """Yield the findings, worst first, each with its next step."""
    for finding in find(inventory, description):
        yield finding.sentence
        if finding.command:
            yield f"    {finding.command}"


def missing_lines(inventory: Inventory, reason: str) -> Iterator[str]:
    """Yield what to do about a PyTorch that is missing, then what does not depend on it."""
    for finding in find(inventory, None, absence=reason):
        yield finding.sentence
        if finding.code == "engine_missing":
            yield f"    {finding.evidence}"
        if finding.command:
            yield f"    {finding.command}"


def _cpu_facts(cpu: Device, capability: str | None) -> Iterator[str]:
    facts = [
        _counted(cpu.cores, "core"),
        _counted(cpu.threads, "thread"),
        f"{cpu.clock_max_mhz:.0f} MHz" if cpu.clock_max_mhz else "",
        f"{format_bytes(cpu.memory_total_bytes)} of memory" if cpu.memory_total_bytes else "",
        capability or "",
    ]
    yield ", ".join(fact for fact in facts if fact)
    now = cpu.telemetry
    sensors = [
        _with_unit(now.utilization_percent, "% busy"),
        f"{format_bytes(now.memory_used_bytes)} in use" if now.memory_used_bytes else "",
        _with_unit(now.temperature_c, "°C"),
    ]
    yield "now: " + ", ".join(sensor for sensor in sensors if sensor)


def _card_facts(card: Device) -> Iterator[str]:
    if card.unreadable:
        yield card.unreadable
        return
    capability = f"compute capability {card.compute_capability}" if card.compute_capability else ""
    chip = f"{card.chip} ({card.architecture})" if card.chip and card.architecture else card.chip
    facts = [
        _memory(card),
        chip or "",
        capability + (f" ({card.architecture})" if capability and card.architecture else ""),
        _counted(card.multiprocessors, "multiprocessor"),
        _counted(card.cuda_cores, "core"),
        f"PCIe {card.pcie_generation_max}.0 × {card.pcie_width_max}"
        if card.pcie_generation_max and card.pcie_width_max
        else "",
    ]
    yield ", ".join(fact for fact in facts if fact)
    slot = f"slot {card.pci_bus_id}" if card.pci_bus_id else "no slot"
    yield f"{identity_line(card)}; {slot}, {card.uuid or 'no UUID'}"
    if card.kernel_driver is not None and card.build_kind != CUDA_BUILD:
        yield f"driver {driver_text(card)}" + (f", VBIOS {card.vbios}" if card.vbios else "")
    now = card.telemetry
    used = now.memory_used_bytes
    sensors = [
        _with_unit(now.utilization_percent, "% busy") or "utilization n/a",
        "memory n/a" if used is None else f"{format_bytes(used)} in use",
        _with_unit(now.temperature_c, "°C") or "temperature n/a",
        _with_unit(now.hotspot_c, "°C hot spot"),
        _with_unit(now.memory_temperature_c, "°C memory"),
        _with_unit(now.power_w, "W") or "power n/a",
        _with_unit(now.fan_percent, "% fan"),
        _with_unit(now.fan_rpm, "rpm"),
        "" if now.pstate is None else f"P{now.pstate}",
        _with_unit(now.sm_clock_mhz, "MHz"),
    ]
    yield "now: " + ", ".join(sensor for sensor in sensors if sensor)
    for process in card.processes:
        yield f"used by {_process(process)}"


def _memory(card: Device) -> str:
    if not card.memory_total_bytes:
        return ""
    size = format_bytes(card.memory_total_bytes)
    return f"{size} of the PC's memory" if card.is_integrated else size


def _process(process: GpuProcess) -> str:
    size_bytes = process.memory_bytes
    memory = "memory unknown" if size_bytes is None else format_bytes(size_bytes)
    user = f", {process.user}" if process.user else ""
    return f"{process.name} ({process.pid}{user}): {process.kind}, {memory}"


def _counted(count: int | None, thing: str) -> str:
    if count is None:
        return ""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _with_unit(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.0f} {unit}"


def show_first_look(log_path: Path) -> int:
    """Print this PC's devices and how the CPU and cards compare; return the exit status.

    Raises:
        StudioError: the engine does not start, or the driver does not answer.
    """
    with Progress() as progress:
        progress.show("Looking at this PC …")
        inventory = read_inventory(log_path)
    try:
        engine = new_engine(log_path)
    except NoEngineError as error:
        parts = (device_lines(inventory, None), missing_lines(inventory, str(error)))
        for part in parts:
            for line in part:
                print_line(line)
            print_line()
        print_line(_how_to_get_the_window())
        return DONE
    with at_work(engine) as work:
        work.progress.show("Starting PyTorch …")
        description = describe_beside(inventory, work.engine, work.interrupt)
        work.progress.clear()
        for lines in (device_lines, finding_lines):
            for line in lines(inventory, description):
                print_line(line)
            print_line()
        from gpu_studio.cli.bench_runs import BenchRuns, verdicts  # 20 ms

        runs = BenchRuns(work)
        runs.cards = {card.address: card for card in description.cards}
        runs.make_all(
            [
                _request(workload, size, device)
                for workload in _WORKLOADS
                for size in _SIZES
                for device in addresses(description)
            ]
        )
    print_line()
    for sentence in verdicts(runs.results):
        print_line(sentence)
    print_line()
    print_line(_how_to_get_the_window())
    return runs.exit_status


def _how_to_get_the_window() -> str:
    return _HOW_TO_GET_THE_WINDOW.format(help=typed("gpu-studio --help"))


def _request(workload: str, size: int, device: str) -> RunWorkload:
    return RunWorkload(
        run_id=f"{workload}-{size}-{device}",
        workload=workload,
        device=device,
        size=size,
        dtype="float32",
        budget_s=_BUDGET_S,
    )


COMMAND = Command(
    about="List the devices in this PC, and whether PyTorch can use them.",
    run=_run,
    json=JSON_OBJECT,
)
