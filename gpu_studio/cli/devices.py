"""The devices in this PC, and whether PyTorch can use them.

``gpu-studio devices`` shows them, and ``gpu-studio`` without a window compares them as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from gpu_studio.cli.answers import CommandEngine, Interrupt, at_work
from gpu_studio.cli.command import DONE, FAILED, INTERRUPTED, JSON_OBJECT, Command, Option
from gpu_studio.cli.engines import (
    GRAPHICS_DRIVER,
    NoEngineError,
    addresses,
    describe,
    describe_beside,
    new_engine,
    started_quick_engine,
)
from gpu_studio.cli.other_pc import TARGET
from gpu_studio.cli.screen import LiveText, Progress, Typed, print_json, print_line
from gpu_studio.cli.sensors import SensorWatch, read_inventory
from gpu_studio.core.benchmark.quick_look import first_look, quick_look
from gpu_studio.core.devices.adapters import adapter_lines, usual_adapters
from gpu_studio.core.devices.devices import Device, Inventory
from gpu_studio.core.devices.facts import PcSnapshot, bytes_text, celsius_text, percent_text
from gpu_studio.core.devices.findings import find
from gpu_studio.core.devices.report import card_table, pc_value, report_text
from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.engine_messages import Adapter, EngineDescribed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.program_form import typed
from gpu_studio.engine.client import QuickEngine

_WATCH_S = 1.0
_HOW_TO_GET_THE_WINDOW = (
    "The window shows live curves and your card's memory: start GPU Studio on a desktop, or "
    "connect with “ssh -X”. “{help}” lists the terminal commands."
)


def _run(options: argparse.Namespace, log_path: Path) -> int:
    """Print the devices, PyTorch and the driver; return the exit status."""
    if options.watch:
        return _watch(log_path, as_json=options.json)
    description: EngineDescribed | None = None
    reads: dict[str, MemoryRead] = {}
    error, is_missing = "", False
    with Progress() as progress:
        progress.show("Looking at this PC …")
        inventory = read_inventory(log_path)
        progress.show("Asking PyTorch …")
        try:
            with at_work(new_engine(log_path)) as work:
                description = describe_beside(inventory, work, wakes_cards=False)
                reads = _read_allocators(work, description)
        except StudioError as failure:
            error, is_missing = str(failure), isinstance(failure, NoEngineError)
        progress.show("Asking the graphics drivers …")
        adapters, lack = _adapters(inventory, log_path)
    snapshot = PcSnapshot(inventory=inventory, engine=description, memory=reads)
    if options.json:
        print_json("devices", pc_value(snapshot, error) | {"adapters": adapters})
        return FAILED if description is None and not is_missing else DONE
    for line in report_text(snapshot, masked=False).splitlines():
        print_line(line)
    _print_lines(_adapter_section(adapters, lack, inventory))
    if is_missing:
        _print_lines(missing_lines(inventory, error))
        return DONE
    if description is None:
        print_line(f"PyTorch did not start: {error}")
        return FAILED
    _print_lines(finding_lines(inventory, description))
    return DONE


def _adapters(inventory: Inventory, log_path: Path) -> tuple[tuple[Adapter, ...], str]:
    """Return what computes without PyTorch, or why it is not known; wakes no card."""
    if TARGET.pc is not None:
        return (), ""
    if any(card.is_asleep for card in inventory.cards):
        return (), "Not asked, because that would wake a sleeping card."
    with at_work(QuickEngine(log_path=log_path)) as work:
        try:
            found = describe(work, has_loaded=True, who=GRAPHICS_DRIVER)
        except StudioError as failure:
            return (), str(failure)
    return found.adapters, found.cuda_reason or ""


def _adapter_section(
    adapters: Sequence[Adapter], lack: str, inventory: Inventory
) -> Iterator[str | Typed]:
    if not (adapters or lack):
        return
    yield "Without PyTorch (Vulkan and the like)"
    yield from (f"  {line}" for line in adapter_lines(adapters, inventory.cards) if adapters)
    if lack:
        yield f"  {lack}"
    else:
        usual = ",".join(one.address for one in usual_adapters(adapters))
        yield Typed(f"    {typed(f'gpu-studio bench matmul --device cpu,{usual}')}")
    yield ""


def _watch(log_path: Path, *, as_json: bool) -> int:
    """Show what the sensors say once a second, in one place of a terminal; return the status."""
    with (
        Interrupt().recorded() as interrupt,
        SensorWatch(log_path, period_s=_WATCH_S) as watch,
        LiveText() as screen,
    ):
        for inventory in watch.followed(interrupt):
            if as_json:
                print_json("reading", {"devices": inventory.devices})
                continue
            moment = f"{datetime.now():%H:%M:%S}"
            table = card_table(PcSnapshot(inventory=inventory), moment)
            screen.show([*table, _processor_line(inventory.cpu)])
    return INTERRUPTED if interrupt.is_asked else FAILED


def _processor_line(cpu: Device) -> str:
    """Return how busy the processor is, how warm, and how much of its memory is used."""
    now = cpu.telemetry
    used = bytes_text(now.memory_used_bytes)
    share = percent_text(now.utilization_percent)
    parts = (
        share and f"{share} busy",
        celsius_text(now.temperature_c),
        used and f"{used} of {bytes_text(cpu.memory_total_bytes)} used",
    )
    return f"{cpu.name}: {', '.join(filter(None, parts))}"


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print_line(line)


def _read_allocators(work: CommandEngine, description: EngineDescribed) -> dict[str, MemoryRead]:
    """Return the memory that PyTorch holds on each card, by address, without a CUDA context.

    An engine that has not used a card yet holds none: the reading is 0.
    """
    reads = {}
    for address in description.card_addresses:
        read = work.answer(ReadMemory(device=address), MemoryRead)
        reads[address] = msgspec.structs.replace(
            read, allocated_bytes=read.allocated_bytes or 0, reserved_bytes=read.reserved_bytes or 0
        )
    return reads


def summary_lines(inventory: Inventory, description: EngineDescribed | None) -> Iterator[str]:
    """Yield the processor, and the table of the cards with PyTorch and the driver."""
    yield inventory.cpu.name
    yield from card_table(PcSnapshot(inventory=inventory, engine=description))
    yield ""


def finding_lines(inventory: Inventory, description: EngineDescribed) -> Iterator[str]:
    """Yield the findings, worst first, each with its next step."""
    for finding in find(inventory, description):
        yield finding.sentence
        if finding.command:
            yield Typed(f"    {finding.command}")


def missing_lines(inventory: Inventory, reason: str) -> Iterator[str]:
    """Yield what to do about a PyTorch that is missing, then what does not depend on it."""
    for finding in find(inventory, None, absence=reason):
        yield finding.sentence
        if finding.code == "engine_missing":
            yield f"    {finding.detail}"
        if finding.command:
            yield Typed(f"    {finding.command}")


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
        _print_lines(summary_lines(inventory, None))
        _print_lines(missing_lines(inventory, str(error)))
        print_line()
        return _show_quick_look(log_path)
    with at_work(engine) as work:
        work.progress.show("Starting PyTorch …")
        description = describe_beside(inventory, work)
        work.progress.clear()
        _print_lines(summary_lines(inventory, description))
        _print_lines(finding_lines(inventory, description))
        print_line()
        from gpu_studio.cli.bench_runs import BenchRuns, verdicts  # 20 ms

        runs = BenchRuns(work, msgspec.structs.replace(description, workloads=()))
        runs.make_all(first_look(addresses(description)))
    print_line()
    for sentence in verdicts(runs.results):
        print_line(sentence)
    print_line()
    print_line(_how_to_get_the_window())
    return runs.exit_status


def _show_quick_look(log_path: Path) -> int:
    """Print how the CPU and the cards compare without PyTorch; return the exit status."""
    from gpu_studio.cli.bench_runs import BenchRuns, verdicts  # 20 ms

    with started_quick_engine(log_path) as (work, described):
        runs = BenchRuns(work, described)
        requests = quick_look(described)
        for workload in dict.fromkeys(request.workload for request in requests):
            runs.make_all([one for one in requests if one.workload == workload])
    print_line()
    _print_lines(verdicts(runs.results))
    print_line()
    print_line(_how_to_get_the_window())
    return runs.exit_status


def _how_to_get_the_window() -> str:
    return _HOW_TO_GET_THE_WINDOW.format(help=typed("gpu-studio --help"))


_WATCH = Option(
    "--watch", "show the cards' sensors once a second, until Ctrl-C", action="store_true"
)
COMMAND = Command(
    about="List the devices in this PC, and whether PyTorch can use them.",
    run=_run,
    options=(_WATCH,),
    json=JSON_OBJECT,
)
