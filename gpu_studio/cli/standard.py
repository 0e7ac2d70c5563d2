"""``gpu-studio standard``: the window's “Measure this PC” in a terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import addresses, check_device, read_inventory, started_engine
from gpu_studio.cli.command import FAILED, Command
from gpu_studio.cli.data_folder import data_folder
from gpu_studio.cli.other_pc import TARGET
from gpu_studio.cli.saving import painted, save
from gpu_studio.cli.screen import TerminalTable, note, now, print_bytes, print_line
from gpu_studio.core.benchmark.run import Run, interval_words
from gpu_studio.core.benchmark.standard import (
    LOAD_ITEM,
    STANDARD,
    STANDARD_1,
    StandardPlan,
    standard_item,
    standard_s,
)
from gpu_studio.core.benchmark.standard_card import standard_card
from gpu_studio.core.benchmark.standard_folder import FOLDER_NAME, StandardFolder
from gpu_studio.core.benchmark.standard_page import standard_page
from gpu_studio.core.benchmark.standard_record import (
    StandardFinished,
    encode_standard,
)
from gpu_studio.core.benchmark.standard_result import (
    facts_of,
    held_words,
    sentence_of,
    standard_run_of,
)
from gpu_studio.core.benchmark.standard_text import standard_markdown
from gpu_studio.core.listing import listed
from gpu_studio.core.messages.engine_messages import identity_at
from gpu_studio.core.messages.run_messages import RunInTurns
from gpu_studio.core.newest_check import newest_check
from gpu_studio.core.program_version import program_title
from gpu_studio.core.protocol import encode
from gpu_studio.core.shared_card import PAINTER, encode_card
from gpu_studio.core.shared_texts import without_identifiers
from gpu_studio.core.units import about_time, format_percent, format_rate
from gpu_studio.process.sleep_block import SleepBlock

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from gpu_studio.cli.answers import CommandEngine
    from gpu_studio.core.benchmark.standard_record import StandardDevice, StandardRun
    from gpu_studio.core.messages.run_messages import RunWorkload

_ENDINGS = (".png", ".html", ".htm", ".md", ".json")
_COLUMNS = (("work", 20), ("speed", -14), ("95 % interval of a call", 30))


def _run(options: argparse.Namespace, log_path: Path) -> int:
    """Make a standard run; return the exit status."""
    inventory = read_inventory(log_path)
    with SleepBlock("A measurement"), started_engine(log_path) as (work, described):
        devices = list(dict.fromkeys(options.device or addresses(described)))
        for device in devices:
            check_device(device, described)
        plan = StandardPlan(devices)
        if not options.json:
            print_line(
                f"Standard {STANDARD} on {listed(plan.devices)}: "
                f"{about_time(standard_s(devices))}. Leave the PC alone meanwhile."
            )
        runs, is_complete = _make(plan, work, as_json=options.json)
        status = work.exit_status(is_done=is_complete)
    names = {device: identity_at(device, described.cards) for device in plan.devices}
    folder = data_folder()
    record = standard_run_of(
        plan,
        runs,
        {
            one: facts_of(
                one,
                inventory,
                described,
                newest_check(folder, one, name),
            )
            for one, name in names.items()
        },
        described,
        made_at=now(),
        program=program_title(),
        system=TARGET.system_name,
    )
    if record is None:
        note("Nothing was measured.")
        return status or FAILED
    _keep(record)
    if options.json:
        finished = StandardFinished(
            run=record, sentence=sentence_of(record), is_complete=is_complete
        )
        print_bytes(msgspec.json.encode(finished) + b"\n")
    else:
        _print(record, is_complete=is_complete)
    if options.save is not None:
        save(options.save, _file_of(record, options.save.suffix.lower()))
    return status


def _make(plan: StandardPlan, work: CommandEngine, *, as_json: bool) -> tuple[list[Run], bool]:
    """Make a plan's runs; return those that began, and whether all did.

    The plan ends with its engine, and with Ctrl-C.
    """
    runs: list[Run] = []
    begun_s = time.perf_counter()
    requests = plan.requests()
    while requests:
        group = [Run(request) for request in requests]
        runs += group
        for event in work.answers(_request_of(requests)):
            changed = [run for run in group if run.apply(event)]
            if as_json and changed:
                print_bytes(encode(event))
            if changed:
                work.progress.show(_progress_text(plan, changed[-1], runs, begun_s))
            if event.ends_engine:
                work.progress.clear()
                note("The engine ended. The results until then are kept.")
                return runs, False
        if work.interrupt.is_asked:
            work.progress.clear()
            note("Stopped. The results until then are kept.")
            return runs, False
        results = [run.result for run in runs if run.result is not None]
        requests = plan.next_requests(results, len(runs) + 1)
    work.progress.clear()
    return runs, True


def _request_of(requests: Sequence[RunWorkload]) -> RunWorkload | RunInTurns:
    return requests[0] if len(requests) == 1 else RunInTurns(runs=tuple(requests))


def _progress_text(plan: StandardPlan, run: Run, runs: Sequence[Run], begun_s: float) -> str:
    key = plan.keys[run.request.run_id]
    item = standard_item(key)
    title = "Full load" if item is None else f"In turns: {item.title}"
    left = about_time(plan.left_s(runs, time.perf_counter() - begun_s))
    return f"{title} on {run.request.device}: {run.phase or 'starting'}; {left} left"


def _keep(record: StandardRun) -> None:
    try:
        StandardFolder(data_folder() / FOLDER_NAME).keep(record)
    except OSError as error:
        note(f"The run could not be kept: {error.strerror or error}.")


def _print(record: StandardRun, *, is_complete: bool) -> None:
    for device in record.devices:
        print_line()
        print_line(device.name)
        for line in _device_lines(device):
            print_line(line)
    print_line()
    print_line(sentence_of(record))
    if not is_complete:
        print_line("This run is not complete.")


def _device_lines(device: StandardDevice) -> list[str]:
    table = TerminalTable(_COLUMNS)
    lines = [table.heading]
    for item in STANDARD_1:
        figure = device.figure(item.key)
        if figure is None:
            continue
        result = figure.result
        if result is None:
            lines.append(f"{item.title:<20}  {figure.skipped}")
            continue
        rate = format_rate(result.throughput, result.throughput_unit)
        lines.append(table.row([item.title, rate, interval_words(result.ci95_s, result.samples)]))
    load = device.load
    if load is not None:
        ratio = load.steady_rate / load.first_rate
        words = [f"{format_rate(load.steady_rate, LOAD_ITEM.unit)} at the end"]
        words += [f"{format_percent(ratio)} of the first seconds"]
        words += [f"{load.steady_clock_mhz:.0f} MHz"] if load.steady_clock_mhz else []
        words += [f"{load.highest_temperature_c:.0f} °C"] if load.highest_temperature_c else []
        words += [f"hot spot {load.highest_hotspot_c:.0f} °C"] if load.highest_hotspot_c else []
        lines += [f"{'Full load':<20}  {', '.join(words)}", held_words(device)]
    return lines


def _file_of(record: StandardRun, ending: str) -> bytes:
    """Return what a file with an ending has of a record; all but JSON is for people.

    Raises:
        StudioError: the picture cannot be painted.
    """
    if ending == ".png":
        return painted(PAINTER, encode_card(standard_card(record)))
    if ending in (".html", ".htm"):
        return standard_page(record)
    if ending == ".md":
        return standard_markdown(record).encode()
    return encode_standard(without_identifiers(record))


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="cpu[,cuda:0…]", type=types.devices,
        help="the devices to measure (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--save", metavar="FILE", type=types.new_file(*_ENDINGS),
        help="write the result to FILE: a picture (.png), a page (.html) or JSON (.json), which "
        "another PC compares with its own, or a table for a forum (.md)",
    )  # fmt: skip


COMMAND = Command(
    about="Measure this PC: memory bandwidth, products in float32, float16 and bfloat16, a "
    "convolution, a training step, the launch of an operation and copies to a card and back; "
    "always the same work, then 20 s of full load. It takes about a minute a device. The result "
    "has nothing in it that identifies you or your PC.",
    run=_run,
    add_arguments=_add_arguments,
)
