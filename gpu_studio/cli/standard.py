"""``gpu-studio standard`` and ``bench compare``: “Measure this PC”, and other PCs beside it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import RunPrinter
from gpu_studio.cli.bench_runs import is_in_doubt
from gpu_studio.cli.command import DONE, JSON_OBJECT, Command, Option
from gpu_studio.cli.data_folder import data_folder
from gpu_studio.cli.engines import addresses, check_device, started_engine
from gpu_studio.cli.other_pc import TARGET
from gpu_studio.cli.saving import painted, save
from gpu_studio.cli.screen import TerminalTable, note, now, print_json, print_line
from gpu_studio.cli.sensors import read_inventory
from gpu_studio.core.benchmark.comparison import (
    compared_rows,
    compared_works,
    headline,
    table_rows,
)
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.benchmark.side import (
    Side,
    facts_of,
    sides_of,
    trust_of_sides,
)
from gpu_studio.core.benchmark.standard import STANDARD, StandardPlan, standard_s
from gpu_studio.core.benchmark.standard_file import FOLDER_NAME, StandardFolder, read_standard
from gpu_studio.core.benchmark.standard_record import (
    StandardFinished,
    encode_standard,
    record_of,
    shared_json,
)
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.core.program_form import typed
from gpu_studio.core.texts import listed
from gpu_studio.core.units import about_time
from gpu_studio.process.sleep_block import SleepBlock

_PAINTER = "gpu_studio.ui.standard_page"
_COLUMNS = (("device", 34), ("per second", -16), ("95 % interval", -18), ("verdict", 0))
_NO_RUN = "This PC has no standard run yet: “{command}” makes one."


class ComparedRuns(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison as JSON."""

    standard: int
    sentence: str
    trust: str
    rows: tuple[dict[str, Any], ...]


def _run(options: argparse.Namespace, log_path: Path) -> int:
    """Make a standard run; return the exit status."""
    inventory = read_inventory(log_path)
    with (
        SleepBlock("A measurement"),
        started_engine(log_path, is_json=options.json) as (work, described),
    ):
        devices = list(dict.fromkeys(options.device or addresses(described)))
        for device in devices:
            check_device(device, described)
        plan = StandardPlan(devices)
        if not options.json:
            print_line(
                f"Standard {STANDARD} on {listed(plan.devices)}: "
                f"{about_time(standard_s(devices))}. Leave the PC alone meanwhile."
            )
        printer = _Printer(plan)
        is_complete = work.run(printer.steps(), printer) and printer.has_engine
    if work.interrupt.is_asked:
        note("Stopped. The results until then are kept.")
    record = record_of(
        plan, printer.runs, inventory=inventory, described=described, made_at=now(),
        system=TARGET.system_name,
    )  # fmt: skip
    if record is None:
        note("Nothing was measured.")
        return work.exit_status(is_done=False)
    if problem := StandardFolder(data_folder() / FOLDER_NAME).keep(record):
        note(problem)
    sides = sides_of(record)
    sentence = ". ".join(headline(sides, compared_works(sides)))
    if options.json:
        finished = StandardFinished(run=record, sentence=sentence, is_complete=is_complete)
        print_json("standard_finished", finished)
    else:
        _print(sides)
        print_line()
        for line in (*facts_of(sides), f"{trust_of_sides(sides).sentence}.", sentence):
            print_line(line)
        if not is_complete:
            print_line("This run is not complete.")
    if options.save is not None:
        is_picture = options.save.suffix.lower() == ".png"
        shared = shared_json(record).encode()
        save(options.save, painted(_PAINTER, encode_standard(record)) if is_picture else shared)
    return work.exit_status(is_done=is_complete, in_doubt=is_in_doubt(printer.results))


class _Printer(RunPrinter):
    """The progress of a standard run.

    Args:
        plan: what is made; it ends with its engine, and with Ctrl-C.
    """

    def __init__(self, plan: StandardPlan) -> None:
        super().__init__()
        self._plan, self._begun_s = plan, time.perf_counter()
        self.has_engine = True

    def steps(self) -> Iterator[Request]:
        """Yield all runs of the plan."""
        while self.has_engine and (requests := self._plan.next_requests(len(self.runs) + 1)):
            yield self.begin(requests)

    def end(self, last: Event) -> None:
        self.has_engine = not last.ends_engine

    def line(self, run: Run) -> str:
        left = self._plan.left_words(time.perf_counter() - self._begun_s)
        work = self._plan.work_words(run.request.run_id)
        return f"{work} on {run.request.device}: {run.phase or 'starting'}; {left}"

    def complaint(self, event: Event) -> str:
        return "PyTorch ended. The results until then are kept." if event.ends_engine else ""


def _compare(options: argparse.Namespace, _log_path: Path) -> int:
    """Print the comparison; return the exit status."""
    own = StandardFolder(data_folder() / FOLDER_NAME).newest()
    if own is None:
        note(_NO_RUN.format(command=typed("gpu-studio standard")))
    sides = [*sides_of(own, is_here=True)] if own is not None else []
    sides += [side for path in options.files for side in sides_of(read_standard(path))]
    sides = [side for side in sides if not side.is_spare]
    sentence = ". ".join(headline(sides, compared_works(sides)))
    if options.json:
        trust, rows = trust_of_sides(sides).sentence, tuple(compared_rows(sides))
        compared = ComparedRuns(standard=STANDARD, sentence=sentence, trust=trust, rows=rows)
        print_json("compared_runs", compared)
        return DONE
    print_line(sentence)
    _print(sides)
    print_line()
    print_line(f"{trust_of_sides(sides).sentence}.")
    return DONE


def _print(sides: Sequence[Side]) -> None:
    """Print each work with a line for each side."""
    table = TerminalTable(_COLUMNS, ("95 % interval",))
    for work, name, *figures in table_rows(sides, compared_works(sides)):
        if work:
            print_line()
            print_line(work, style="bold")
        table.print_row([name[:34], *figures])


_SAVE = types.save(
    "write the result, which another PC compares with its own, as a picture or as JSON",
    ".png", ".json",
)  # fmt: skip
_FILES = Option("files", "pictures (PNG), recordings or JSON", metavar="FILE", type=Path, nargs="+")
COMMAND = Command(
    about="Measure this PC: memory bandwidth, products in float32, float16 and bfloat16, a "
    "convolution, a training step, the launch of an operation and copies to a card and back; "
    "always the same work, then 20 s of full load. It takes about a minute a device. The result "
    "has nothing in it that identifies you or your PC.",
    run=_run,
    options=(types.DEVICES, _SAVE),
)
PARTS = {
    "compare": Command(
        help="compare standard runs of other PCs with this one's",
        about="Compare the standard runs in files with the newest one of this PC. A file is what "
        "its contents are, whatever its name.",
        run=_compare,
        options=(_FILES,),
        json=JSON_OBJECT,
    )
}
"""The parts of ``gpu-studio bench`` that are about standard runs."""
