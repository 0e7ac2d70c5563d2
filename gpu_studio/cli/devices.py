"""``gpu-studio devices`` and ``doctor``: what is in this PC, and whether PyTorch can use it.

``gpu-studio`` without a window compares the devices as well.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from gpu_studio.cli.answers import CommandEngine, Interrupt, at_work
from gpu_studio.cli.command import (
    DONE,
    DOUBTFUL,
    FAILED,
    INTERRUPTED,
    JSON_OBJECT,
    Option,
    WrongUseError,
    command,
)
from gpu_studio.cli.output import LiveText, Progress, Typed, give, print_json, print_line
from gpu_studio.cli.pc import (
    GRAPHICS_DRIVER,
    TARGET,
    HeldEngineError,
    NoEngineError,
    SensorWatch,
    addresses,
    describe,
    describe_beside,
    new_engine,
    read_inventory,
    started_quick_engine,
)
from gpu_studio.core.benchmark.quick_look import first_look, quick_look
from gpu_studio.core.devices.access import PcProbed
from gpu_studio.core.devices.adapters import adapter_lines, usual_adapters
from gpu_studio.core.devices.devices import Device, Inventory
from gpu_studio.core.devices.facts import (
    PcSnapshot,
    bytes_text,
    celsius_text,
    identity_line,
    percent_text,
)
from gpu_studio.core.devices.finding import Finding, findings_value, is_usable
from gpu_studio.core.devices.findings import find
from gpu_studio.core.devices.report import card_table, pc_value, report_text
from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.engine_messages import Adapter, EngineDescribed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.notice import Tone
from gpu_studio.core.program_form import OF_ANOTHER_PC, typed
from gpu_studio.core.pythons import verdict as pythons
from gpu_studio.core.pythons.coverage import this_pc
from gpu_studio.core.pythons.kernel import after_kernel, kernel_command, run_kernel
from gpu_studio.core.pythons.search import AskPythons, ask_for_pythons
from gpu_studio.engine.client import QuickEngine
from gpu_studio.engine.devices.probe_client import probe_pc
from gpu_studio.process.child_call import call_child
from gpu_studio.process.command_call import call_command

# ── devices ──────────────────────────────────────────────────────────────────────────────────────

_WATCH_S = 1.0


@command(
    Option(
        "--watch", "show the cards' sensors once a second, until Ctrl-C", action="store_true"
    ),
    json=JSON_OBJECT,
)  # fmt: skip
def _show(options: argparse.Namespace, log_path: Path) -> int:
    """List the devices in this PC, and whether PyTorch can use them."""
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

    def lines() -> Iterator[str]:
        yield from report_text(snapshot, masked=False).splitlines()
        yield from _adapter_lines(adapters, lack, inventory)
        if is_missing or description is not None:
            yield from verdict_lines(find(inventory, description, absence=error))
        else:
            yield f"PyTorch did not start: {error}"

    give("devices", pc_value(snapshot, error) | {"adapters": adapters}, lines(), options)
    return FAILED if description is None and not is_missing else DONE


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


def _adapter_lines(adapters: Sequence[Adapter], lack: str, inventory: Inventory) -> Iterator[str]:
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


# ── without a command ────────────────────────────────────────────────────────────────────────────


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
        _print_summary(inventory, None, str(error))
        with started_quick_engine(log_path) as (work, described):
            return _compare(work, described, quick_look(described))
    with at_work(engine) as work:
        work.progress.show("Starting PyTorch …")
        described = describe_beside(inventory, work)
        work.progress.clear()
        _print_summary(inventory, described)
        alone = msgspec.structs.replace(described, workloads=())  # none takes turns
        return _compare(work, alone, first_look(addresses(described)))


def _print_summary(
    inventory: Inventory, described: EngineDescribed | None, absence: str = ""
) -> None:
    table = card_table(PcSnapshot(inventory=inventory, engine=described))
    findings = verdict_lines(find(inventory, described, absence=absence))
    for line in (inventory.cpu.name, *table, "", *findings, ""):
        print_line(line)


def _compare(work: CommandEngine, described: EngineDescribed, plan: Sequence[RunWorkload]) -> int:
    """Make runs and say which device is faster; return the exit status."""
    from gpu_studio.cli.runs import BenchRuns, verdicts  # 20 ms

    runs = BenchRuns(work, described)
    for workload in dict.fromkeys(one.workload for one in plan):
        runs.make_all([one for one in plan if one.workload == workload])
    how = (
        "The window shows live curves and your card's memory: start GPU Studio on a desktop, or "
        f"connect with “ssh -X”. “{typed('gpu-studio --help')}” lists the terminal commands."
    )
    for line in ("", *verdicts(runs.results), "", how):
        print_line(line)
    return runs.exit_status


# ── doctor ───────────────────────────────────────────────────────────────────────────────────────

_LOAD_S = 0.6  # three readings long
_MARKS = {
    Tone.GOOD: "[ok]     ", Tone.PLAIN: "[note]   ", Tone.AMBER: "[warning]",
    Tone.FAILURE: "[problem]",
}  # fmt: skip


@command(
    Option(
        "--no-kernel", "check versions and capabilities only; creates no CUDA context",
        action="store_true",
    ),
    Option(
        "--everywhere",
        "look at every PyTorch on this PC, or in these folders, and say which one is wrong for "
        "your card; only reads",
        nargs="*", metavar="FOLDER",
    ),
    Option(
        "--run", "with --everywhere: run a small kernel in each Python as well",
        dest="run_kernel", action="store_true",
    ),
    json=JSON_OBJECT,
)  # fmt: skip
def _diagnose(options: argparse.Namespace, log_path: Path) -> int:
    """Check whether PyTorch can use your cards, and say what to do if it cannot.

    Runs a real kernel on each card, in a separate process. Exit status: 0 if PyTorch can use a
    card, otherwise 1.
    """
    if options.everywhere is not None:
        return _look_everywhere(options, log_path)
    if options.run_kernel:
        raise WrongUseError("--run belongs to --everywhere.")
    with (
        Progress() as progress,
        Interrupt().recorded() as interrupt,
        SensorWatch(log_path) as watch,
    ):
        progress.show("Looking at this PC …")
        inventory = watch.inventory()
        progress.show("Asking PyTorch …")
        described, absence = None, ""
        try:
            described = _ask_engine(inventory, interrupt, log_path)
        except HeldEngineError:
            driver = msgspec.structs.replace(inventory.driver, is_silent=True)
            inventory = msgspec.structs.replace(inventory, driver=driver)
        except NoEngineError as error:
            absence = str(error)
        probe = None
        has_cards = any(card.is_cudas for card in inventory.cards)
        has_cuda = has_cards and described is not None and described.cuda_build
        if has_cuda and not options.no_kernel and TARGET.pc is None:
            progress.show("Running a small kernel on each card …")
            probe = probe_pc(log_path, load_s=_LOAD_S, is_over=lambda: interrupt.is_asked)
        if interrupt.is_asked:
            raise KeyboardInterrupt
        readings = watch.readings()
    findings = find(
        inventory, described, probe=probe, readings=readings, absence=absence, system=TARGET.system,
        program=OF_ANOTHER_PC if TARGET.pc is not None else None,
    )  # fmt: skip
    lines = (*_identity_lines(inventory, described, probe), *verdict_lines(findings))
    give("findings", findings_value(findings), lines, options)
    return DONE if is_usable(findings) else FAILED


def verdict_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the findings as terminal lines, each with its evidence and next step."""
    for finding in findings:
        yield f"{_MARKS[finding.tone]} {finding.sentence}"
        if finding.detail:
            yield f"          ({finding.code}: {finding.detail})"
        if finding.command:
            where = f" on {TARGET.pc.name}" if TARGET.pc is not None else ""
            yield Typed(f"          next{where}: {finding.command}")


def _identity_lines(
    inventory: Inventory, engine: EngineDescribed | None, probe: PcProbed | None
) -> Iterator[str]:
    """Yield each card with its identifiers, then the versions that the findings rest on."""
    for card in inventory.cards:
        yield f"{card.short_name}: {identity_line(card)}"
    if engine is not None:
        kernel = "tested with a real kernel" if probe else "no kernel was run"
        yield f"PyTorch {engine.torch_version}, built for {engine.built_for}; {kernel}"
    yield f"Driver: {inventory.driver.version or inventory.driver.error or 'unknown'}"
    yield ""


def _ask_engine(inventory: Inventory, interrupt: Interrupt, log_path: Path) -> EngineDescribed:
    """Return the engine's description of itself."""
    try:
        with at_work(new_engine(log_path), interrupt=interrupt) as work:
            return describe_beside(inventory, work)
    except (HeldEngineError, NoEngineError):
        raise
    except StudioError as error:
        message = f"PyTorch did not start: {error}"
        raise StudioError(error.kind, message) from error


# ── doctor --everywhere ──────────────────────────────────────────────────────────────────────────

_PYTHON_MARKS = {
    pythons.PythonVerdict.WRONG: "[problem]",
    pythons.PythonVerdict.UNSURE: "[unsure] ",
    pythons.PythonVerdict.RIGHT: "[ok]     ",
}


def _look_everywhere(options: argparse.Namespace, log_path: Path) -> int:
    """Print each PyTorch; return 0 if none is wrong, 1 if one is, 3 if the files do not tell."""
    if TARGET.pc is not None:
        raise WrongUseError("--everywhere looks at this PC; type it on the other one.")
    folders = tuple(os.path.abspath(folder) for folder in options.everywhere)
    for folder in folders:
        if not os.path.exists(folder):
            raise WrongUseError(f"There is no folder {folder}.")
    with Progress() as progress, Interrupt().recorded() as interrupt:
        progress.show("Looking for PyTorch …")
        pc = this_pc(read_inventory(log_path))
        question = AskPythons(folders=folders)
        found = ask_for_pythons(question, call_child, lambda: interrupt.is_asked)
        verdicts = pythons.judged(found.environments, pc)
        for place, one in enumerate(verdicts if options.run_kernel else ()):
            progress.show(f"Running a small kernel in {one.environment.program} …")
            if kernel_command(one.environment) and not interrupt.is_asked:
                ended = run_kernel(one.environment, call_command, lambda: interrupt.is_asked)
                verdicts[place] = after_kernel(one, ended)
        if interrupt.is_asked:
            raise KeyboardInterrupt
    lines: Iterable[str] = (
        f"{pythons.headline(verdicts, pc)}.",
        *(line for one in verdicts for line in _python_lines(one)),
        *pythons.left_out_lines(found),
        pythons.looked_line(found),
    )
    give("pythons", pythons.judged_value(found, verdicts), lines, options)
    states = {one.verdict for one in verdicts}
    if pythons.PythonVerdict.WRONG in states:
        return FAILED
    is_unsure = pythons.PythonVerdict.UNSURE in states or not found.is_whole
    return DOUBTFUL if is_unsure else DONE


def _python_lines(one: pythons.Judged) -> Iterator[str]:
    """Yield a Python's verdict as terminal lines, with the line to copy."""
    place, torch, line = one.environment, one.environment.torch, one.line
    version = torch.version.partition("+")[0] or "of an unknown version"
    mark = _PYTHON_MARKS[one.verdict]
    yield f"{mark} {place.program}: PyTorch {version}, {one.build}. {one.reason}".rstrip()
    yield f"          {place.folder}"
    if one.covers:
        yield f"          {pythons.cover_words(one)}"
    if line.text:
        yield Typed(f"          next: {line.text}")
    if line.cmd:
        yield Typed(f"          in cmd: {line.cmd}")
    for words in filter(None, (line.why_none, line.note)):
        yield f"          {words}"


COMMANDS = {"devices": _show, "doctor": _diagnose}
