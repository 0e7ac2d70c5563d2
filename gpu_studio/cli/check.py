"""``gpu-studio check``: the window's check in a terminal; same engine, same verdict."""

from __future__ import annotations

import argparse
import contextlib
import time
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import Patience, Printer
from gpu_studio.cli.command import FAILED, Option, WrongUseError, command
from gpu_studio.cli.output import TerminalTable, note, now, painted, print_event, print_line, save
from gpu_studio.cli.pc import addresses, check_device, data_folder, engine_for
from gpu_studio.core import limits
from gpu_studio.core.check.check_file import RECORD_ENDINGS, encode_record
from gpu_studio.core.check.check_folder import FOLDER_NAME, STATE_EVERY_S, CheckFolder
from gpu_studio.core.check.check_record import end_of
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.check_words import (
    device_line,
    paused_text,
    planted_text,
    record_parts,
    running_rows,
    when_line,
)
from gpu_studio.core.check.stages import (
    in_order,
    stage_title,
    stages_for,
    stages_of,
)
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.access import usable_cards
from gpu_studio.core.devices.adapters import usual_adapters
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.check_messages import (
    STAGE_NAMES,
    CheckStageFinished,
    CheckStarted,
)
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.program_version import program_title
from gpu_studio.core.shared_texts import without_identifiers
from gpu_studio.core.texts import listed
from gpu_studio.core.units import counted, format_percent
from gpu_studio.hardware.cpu import boot_mark
from gpu_studio.process.sleep_block import SleepBlock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.message import Event, Request

_PAINTER = "gpu_studio.ui.check.record_document"
_STYLES = {"passed": "green", "failed": "red"}
_COLUMNS = (("stage", 22), ("result", 14), ("time", -6), ("tested", 60))


@command(
    types.CARD_OR_CPU,
    *types.settings(CheckPlan, "check"),
    Option(
        "--stage", f"only these: {', '.join(STAGE_NAMES)} (default: all; in one minute, all but "
        "layouts)",
        metavar="S[,S…]", type=types.some_of(STAGE_NAMES),
    ),
    types.save(
        "write the record to show it to a buyer, as a picture with curves that has the record "
        "inside, or only the record", *RECORD_ENDINGS,
    ),
)  # fmt: skip
def _check(options: argparse.Namespace, log_path: Path) -> int:
    """Check whether a card is sound: load, compute, layouts, memory and link.

    Without a card, the check runs on the CPU, so that you can see what it does. If a crash or a
    restart cuts a check off, the next one says so and keeps its result. Exit status: 0 if the check
    passed, 1 if it failed, 3 if it cannot tell. A pass applies to what was tested and to nothing
    else.
    """
    folder = CheckFolder(data_folder() / FOLDER_NAME, boot_mark())
    _tell_cut_off(folder)
    with contextlib.ExitStack() as after:
        after.callback(folder.release)
        if not folder.claim():
            message = "Another check is running on this PC: wait for its end, or stop it."
            raise StudioError(FailureKind.BAD_REQUEST, message)
        awake = SleepBlock("A check")
        named = [options.device] if options.device else None
        with awake, engine_for(named, log_path, is_json=options.json) as (work, described):
            if awake.is_held and not options.json:
                note("This PC stays awake during the check.")
            run = CheckRun(_plan(options, described), now(), program=program_title())
            printer = _Printer(run, folder)
            if not options.json:
                print_line(printer.heading, style="dim")
            work.run(printer.steps(), printer, printer.patience)
        with _noted_if_not_kept():
            folder.conclude(run.check_id, run.record(), run.fingerprint)
    if options.json:
        print_event(run.finished())
    else:
        _print_result(run.record())
    if options.save is not None:
        _save(options.save, run.record())
    verdict = run.record().verdict
    if verdict == "failed":
        return FAILED
    return work.exit_status(is_done=True, in_doubt=verdict != "passed")


def _plan(options: argparse.Namespace, described: EngineDescribed) -> CheckPlan:
    device = options.device or _usual_device(described)
    check_device(device, described)
    stages = options.stage or stages_for(options.time, device)
    if lacking := [name for name in stages if name not in stages_of(device)]:
        there = listed(stages_of(device), "or")
        raise WrongUseError(f"There is no stage {lacking[0]} without PyTorch: choose {there}.")
    if options.device is None and is_cpu(device):
        note("PyTorch can use no card here, so the check runs on the CPU.")
    return CheckPlan(
        device=device,
        stages=in_order(stages),
        **types.chosen(options, CheckPlan, "check"),
    )


def _usual_device(described: EngineDescribed) -> str:
    """Return the device to check if none is named: a card, or else the CPU."""
    cards = [*usable_cards(described), *(one.address for one in usual_adapters(described.adapters))]
    return next(iter(cards), addresses(described)[0])


def _tell_cut_off(folder: CheckFolder) -> None:
    """Say what became of a check that was cut off: it is a result, and kept."""
    with _noted_if_not_kept():
        record = folder.conclude_cut_off()
        if record is not None:
            note(f"The check of {record.started_at[:16].replace('T', ' ')} was cut off.")
            note(f"{record.sentence} {record.next_action}")


@contextlib.contextmanager
def _noted_if_not_kept() -> Iterator[None]:
    try:
        yield
    except StudioError as error:
        note(str(error))


class _Printer(Printer):
    """A check on its way: its events on the screen, its state in the file.

    Args:
        run: the check.
        folder: keeps the state, and has the earlier results.
    """

    def __init__(self, run: CheckRun, folder: CheckFolder) -> None:
        self._run, self._folder = run, folder
        self._table = TerminalTable(_COLUMNS)
        self._saved_s: float | None = None
        self._has_warned = False

    @property
    def heading(self) -> str:
        """The line above the stages."""
        return self._table.heading

    @property
    def patience(self) -> Patience:
        """How long an engine may be silent: what a pause spoiled is made again."""
        run = self._run
        return Patience(
            stop_s=limits.current.terminal_stop_check_s, silence_s=lambda: run.patience_s,
            farewell_s=limits.current.terminal_farewell_s, on_stop=run.stop, on_silence=run.give_up,
            on_pause=self._on_pause,
        )  # fmt: skip

    def steps(self) -> Iterator[Request]:
        """Yield all rounds."""
        while (request := self._run.next_request()) is not None:
            self._save()
            yield request

    def _on_pause(self, pause_s: float) -> None:
        self._run.pause(pause_s)
        note(f"{paused_text(self._run.pauses[-1])}.")

    def _save(self) -> None:
        self._saved_s, run = time.monotonic(), self._run
        try:
            self._folder.keep_progress(run.check_id, run.record(), run.fingerprint)
        except StudioError as error:
            if not self._has_warned:
                self._has_warned = True
                note(str(error))

    def apply(self, event: Event) -> str:
        run = self._run
        run.apply(event)
        if isinstance(event, CheckStarted):
            run.earlier = self._folder.earlier(run.fingerprint)
        is_due = self._saved_s is None or time.monotonic() >= self._saved_s + STATE_EVERY_S
        if is_due or isinstance(event, CheckStageFinished):
            self._save()
        present = run.present
        if present is None:
            return ""
        title, share = stage_title(present.name, run.plan.device), format_percent(present.fraction)
        return f"{title} {share}: {present.doing}. {counted(run.errors, 'error')} so far"

    def show(self, event: Event) -> None:
        if isinstance(event, CheckStageFinished):
            title = stage_title(event.stage, self._run.plan.device)
            _, result, *rest = next(row for row in running_rows(self._run) if row[0] == title)
            self._table.print_row([title, result[2:], *rest])  # not every terminal has signs

    def as_json(self, event: Event) -> Event:
        return _shared(event)

    def complaint(self, event: Event) -> str:
        return ""


def _shared(event: Event) -> Event:
    """Return an event as others may see it: nothing identifies the card, and no stack trace."""
    if isinstance(event, CheckStarted):
        return msgspec.structs.replace(event, fingerprint="")
    if isinstance(event, RequestFailed):
        failure = msgspec.structs.replace(event.failure, traceback_text="")
        return msgspec.structs.replace(event, failure=failure)
    return event


def _print_result(record: CheckRecord) -> None:
    for part in (part for part in record_parts(record) if part.rows):
        print_line(part.title)
        for row in part.rows:
            title = f"{row.title.removesuffix('?')}: " if row.title else ""
            print_line(f"  {title}{row.words}")
            for detail in row.details:
                print_line(f"    {detail}")
        print_line()
    if record.planted is not None:
        print_line(planted_text(record.planted))
    print_line(f"{device_line(record.device)}, {when_line(record)}")
    print_line(
        f"{end_of(record).sentence} ({record.verdict}). {record.sentence}",
        style=_STYLES.get(record.verdict, "yellow"),
    )
    print_line(f"next: {record.next_action}")


def _save(path: Path, record: CheckRecord) -> None:
    """Write the record for a buyer; the window opens the picture and the JSON again."""
    text = encode_record(without_identifiers(record))
    is_picture = path.suffix.lower() == ".png"
    save(path, painted(_PAINTER, text) if is_picture else text)


COMMANDS = {"check": _check}
