"""``gpu-studio devices`` and ``doctor``: what is in this PC, and whether PyTorch can use it.

``gpu-studio`` without a window compares the devices as well.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
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
    Command,
    Option,
    WrongUseError,
)
from gpu_studio.cli.output import LiveText, Progress, Typed, print_json, print_line
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
from gpu_studio.core.devices.torch_facts import PcProbed
from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.engine_messages import Adapter, EngineDescribed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.notice import Tone
from gpu_studio.core.program_form import OF_ANOTHER_PC, typed
from gpu_studio.core.pythons.coverage import this_pc
from gpu_studio.core.pythons.kernel import after_kernel, kernel_command, run_kernel
from gpu_studio.core.pythons.search import AskPythons, ask_for_pythons
from gpu_studio.core.pythons.verdict import (
    Judged,
    PythonVerdict,
    cover_words,
    headline,
    judged,
    judged_value,
    left_out_lines,
    looked_line,
)
from gpu_studio.engine.client import QuickEngine
from gpu_studio.engine.devices.probe_client import probe_pc
from gpu_studio.process.child_call import call_child
from gpu_studio.process.command_call import call_command

_PYTHON_MARKS = {
    PythonVerdict.WRONG: ("[problem]", "bold red"),
    PythonVerdict.UNSURE: ("[unsure] ", "yellow"),
    PythonVerdict.RIGHT: ("[ok]     ", "green"),
}


def look_everywhere(options: argparse.Namespace, log_path: Path) -> int:
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
        verdicts = judged(found.environments, pc)
        for place, one in enumerate(verdicts if options.run_kernel else ()):
            progress.show(f"Running a small kernel in {one.environment.program} …")
            verdicts[place] = _tried(one, interrupt)
        if interrupt.is_asked:
            raise KeyboardInterrupt
    if options.json:
        print_json("pythons", judged_value(found, verdicts))
    else:
        print_line(f"{headline(verdicts, pc)}.")
        for one in verdicts:
            mark, style = _PYTHON_MARKS[one.verdict]
            for line in python_lines(one, mark):
                print_line(line, style=style if line.startswith(mark) else "")
        for line in (*left_out_lines(found), looked_line(found)):
            print_line(line)
    states = {one.verdict for one in verdicts}
    if PythonVerdict.WRONG in states:
        return FAILED
    return DOUBTFUL if PythonVerdict.UNSURE in states or not found.is_whole else DONE


def python_lines(one: Judged, mark: str) -> Iterator[str]:
    """Yield a Python's verdict as terminal lines, with the line to copy."""
    place, torch, line = one.environment, one.environment.torch, one.line
    version = torch.version.partition("+")[0] or "of an unknown version"
    yield f"{mark} {place.program}: PyTorch {version}, {one.build}. {one.reason}".rstrip()
    yield f"          {place.folder}"
    if one.covers:
        yield f"          {cover_words(one)}"
    if line.text:
        yield Typed(f"          next: {line.text}")
    if line.cmd:
        yield Typed(f"          in cmd: {line.cmd}")
    for words in filter(None, (line.why_none, line.note)):
        yield f"          {words}"


def _tried(one: Judged, interrupt: Interrupt) -> Judged:
    if not kernel_command(one.environment) or interrupt.is_asked:
        return one
    ended = run_kernel(one.environment, call_command, lambda: interrupt.is_asked)
    return one if interrupt.is_asked else after_kernel(one, ended)


_LOAD_S = 0.6  # three readings long
_STYLES = {"[ok": "green", "[warning": "yellow", "[problem": "bold red"}
_MARKS = {
    Tone.GOOD: "[ok]     ", Tone.PLAIN: "[note]   ", Tone.AMBER: "[warning]",
    Tone.FAILURE: "[problem]",
}  # fmt: skip


def _diagnose(options: argparse.Namespace, log_path: Path) -> int:
    """Print the findings, worst first; return 0 if PyTorch can use a card, otherwise 1."""
    if options.everywhere is not None:
        from gpu_studio.cli.devices import look_everywhere  # only with its option

        return look_everywhere(options, log_path)
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
        engine, absence = None, ""
        try:
            engine = _ask_engine(inventory, interrupt, log_path)
        except HeldEngineError:
            inventory = _silent(inventory)
        except NoEngineError as error:
            absence = str(error)
        probe = None
        has_cards = any(card.is_cudas for card in inventory.cards)
        has_cuda = has_cards and engine is not None and engine.cuda_build
        if has_cuda and not options.no_kernel and TARGET.pc is None:
            progress.show("Running a small kernel on each card …")
            probe = probe_pc(log_path, load_s=_LOAD_S, is_over=lambda: interrupt.is_asked)
        if interrupt.is_asked:
            raise KeyboardInterrupt
        readings = watch.readings()
    findings = find(
        inventory, engine, probe=probe, readings=readings, absence=absence, system=TARGET.system,
        program=OF_ANOTHER_PC if TARGET.pc is not None else None,
    )  # fmt: skip
    if options.json:
        print_json("findings", findings_value(findings))
    else:
        for line in (*identity_lines(inventory, engine, probe), *verdict_lines(findings)):
            print_line(line, style=_STYLES.get(line.split("]")[0], ""))
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


def identity_lines(
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
        engine = new_engine(log_path)
        with closing(engine), Progress() as progress:
            return describe_beside(inventory, CommandEngine(engine, interrupt, progress))
    except (HeldEngineError, NoEngineError):
        raise
    except StudioError as error:
        message = f"PyTorch did not start: {error}"
        raise StudioError(error.kind, message) from error


def _silent(inventory: Inventory) -> Inventory:
    driver = msgspec.structs.replace(inventory.driver, is_silent=True)
    return msgspec.structs.replace(inventory, driver=driver)


_NO_KERNEL = Option(
    "--no-kernel", "check versions and capabilities only; creates no CUDA context",
    action="store_true",
)  # fmt: skip
_EVERYWHERE = Option(
    "--everywhere",
    "look at every PyTorch on this PC, or in these folders, and say which one is wrong for your "
    "card; only reads",
    nargs="*", metavar="FOLDER",
)  # fmt: skip
_RUN_KERNEL = Option(
    "--run", "with --everywhere: run a small kernel in each Python as well",
    dest="run_kernel", action="store_true",
)  # fmt: skip

_DOCTOR = Command(
    about="Checks whether PyTorch can use your cards, and says what to do if it cannot. Runs a "
    "real kernel on each card, in a separate process. Exit status: 0 if PyTorch can use a card, "
    "otherwise 1.",
    run=_diagnose,
    options=(_NO_KERNEL, _EVERYWHERE, _RUN_KERNEL),
    json=JSON_OBJECT,
)


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
        from gpu_studio.cli.runs import BenchRuns, verdicts  # 20 ms

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
    from gpu_studio.cli.runs import BenchRuns, verdicts  # 20 ms

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
_DEVICES = Command(
    about="List the devices in this PC, and whether PyTorch can use them.",
    run=_run,
    options=(_WATCH,),
    json=JSON_OBJECT,
)
COMMANDS = {"devices": _DEVICES, "doctor": _DOCTOR}
