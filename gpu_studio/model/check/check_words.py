"""What a check says before it begins, while it runs, and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.check.check_verdict import (
    CheckEnd,
    end_of,
    end_tone,
    end_words,
    errors_text,
    interruption_sentence,
    sentence_finding,
)
from gpu_studio.core.check.plants import PLANTED_MARK, planted_fault
from gpu_studio.core.check.record_words import (
    VERDICT_WORDS,
    device_line,
    length_text,
    origin_text,
    planted_text,
    started_text,
    when_line,
)
from gpu_studio.core.check.stages import STAGES, stage_title, stage_words
from gpu_studio.core.device_name import CPU, name_at, pc_of
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.moments import written_moment
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import clock_text

if TYPE_CHECKING:
    from gpu_studio.core.check.check_folder import CutOffCheck
    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.check.check_run import CheckRun, StageTrack
    from gpu_studio.core.messages.check_messages import (
        CheckFinding,
        StageName,
        StageOutcome,
    )
    from gpu_studio.model.check.card_check import CardCheck
    from gpu_studio.model.devices.device_board import DeviceRow

_NOT_YET = "Cannot be checked yet"
_LOAD = (
    "It loads the device fully, and the desktop may become slow. Save your work first. You can "
    "stop it at any time."
)
_CPU = "On the CPU, the check tests the RAM of its own process and computes on all cores."
_PLANTED = "This check will make a fault on purpose, to show that it is found: {does}"


class HeroWords(NamedTuple):
    """The words at the top of the page.

    ``device`` and ``when`` say what was checked, when, and for how long; ``words`` are the largest,
    in a ``tone``.
    """

    device: str
    when: str
    words: str
    tone: Tone
    sentence: str
    next_step: str


class StageWords(NamedTuple):
    """A row of the stages.

    ``state`` is ``waiting``, ``running`` or a verdict; ``fraction`` is its progress while it runs.
    """

    name: StageName
    title: str
    detail: str
    time: str
    state: str
    fraction: float = 0.0


def device_title(device: DeviceRow) -> str:
    """Return a device's name in the list of what can be checked."""
    if not device.is_cpu:
        return device.label
    title = f"CPU and RAM: {device.device.short_name}" if device.device else "CPU and RAM"
    return name_at(device.pc, title)


def hero(check: CardCheck) -> HeroWords:
    """Return the words at the top: the errors, the current stage, and what is covered."""
    run, record = check.run, check.record
    if check.phase.is_busy and run is not None:
        return _progress(check, run)
    if record is not None:
        return HeroWords(
            device_line(record.device), when_line(record), end_words(record), end_tone(record),
            record.sentence, f"Next: {record.next_action}",
        )  # fmt: skip
    return _question(check)


def _question(check: CardCheck) -> HeroWords:
    device, planted = check.device, ""
    if check.plant is not None:
        planted = _PLANTED.format(does=planted_fault(check.plant).does)
    if check.reason and not device.is_cpu and check.is_barred:
        return HeroWords(device.label, "", _NOT_YET, Tone.AMBER, check.reason, planted)
    hint, question = _LOAD, "Is this card sound?"
    if device.is_cpu:
        hint, question = f"{_CPU} {_LOAD}", "Does this CPU compute correctly?"
    count = len(STAGES)
    length = length_text(check.minutes)
    plan = f"{count} stages. {length[0].upper()}{length[1:]}."
    next_step = " ".join(filter(None, (planted, check.reason or hint)))
    return HeroWords(device_title(device), "", question, Tone.PLAIN, plan, next_step)


def _progress(check: CardCheck, run: CheckRun) -> HeroWords:
    present = run.present
    doubts = any(one.severity == "doubt" for one in run.findings)
    tone = Tone.FAILURE if run.errors else Tone.AMBER if doubts else Tone.QUIET
    words = f"{errors_text(run.errors)} so far" if run.spans else "Starting"
    device = device_line(run.device) if run.device is not None else check.device.label
    when = f"{written_moment(run.started_at)} · {length_text(run.plan.minutes)}"
    if present is None:
        stage = "Starting." if not run.elapsed_s else "The next stage is starting."
        return HeroWords(device, when, words, tone, stage, "")
    doing = present.doing or "Starting"
    tested = f"Covered so far: {present.tested}." if present.tested else ""
    title = stage_title(present.name, run.plan.device)
    final = "The verdict is final after the last stage."
    if run.errors:
        final = "The check goes on, to find out how many errors there are."
    next_step = " ".join(filter(None, (tested, final)))
    return HeroWords(device, when, words, tone, f"Now: {title}. {doing}.", next_step)


def chip(check: CardCheck) -> Notice:
    """Return the chip beside the hero."""
    run, record = check.run, check.record
    if check.phase.is_busy and run is not None:
        if check.phase.value == "stopping":
            return Notice("Stopping…", Tone.QUIET)
        rounds = f"Round {run.round} of {run.rounds}, " if run.rounds > 1 else "Running, "
        return Notice(f"{rounds}{_left(run.remaining_s)} left", Tone.QUIET)
    if record is None or end_of(record) is CheckEnd.NOTHING_TESTED:
        return Notice()
    tone = end_tone(record)
    return Notice(VERDICT_WORDS[record.verdict], Tone.QUIET if tone is Tone.PLAIN else tone)


def _left(seconds: float) -> str:
    if seconds < 60:
        return "under 1 min"
    minutes = round(seconds / 60)
    return f"about {minutes}\u202fmin" if minutes < 90 else f"about {minutes / 60:.0f}\u202fh"


def planted(check: CardCheck) -> str:
    """Return the mark of a check with a fault made on purpose; empty for any other."""
    run, record = check.run, check.record
    if record is not None:
        return planted_text(record)
    if check.phase.is_busy and run is not None and run.plan.plant is not None:
        return f"{PLANTED_MARK} The fault: {planted_fault(run.plan.plant).does}"
    return ""


def origin(check: CardCheck) -> str:
    """Return the mark of a record from a file; empty for any other."""
    return origin_text(check.record) if check.record is not None else ""


def heading(check: CardCheck) -> str:
    """Return what the stages belong to: a check of this PC, or a record."""
    run, record = check.run, check.record
    if run is not None and check.phase.is_busy:
        return f"Check of {run.started_at[11:16]}"
    if record is None:
        return "Stages"
    return f"Record of {started_text(record)}"


def stage_rows(check: CardCheck) -> tuple[StageWords, ...]:
    """Return the rows of the stages, in their order."""
    run, record = check.run, check.record
    if check.phase.is_busy and run is not None:
        return tuple(_running_row(track, run.plan.device) for track in run.stages)
    if record is not None:
        return tuple(_finished_row(stage, record.device.address) for stage in record.stages)
    return tuple(
        StageWords(one.name, stage_title(one.name, address(check)), "", "", "waiting")
        for one in STAGES
    )


def address(check: CardCheck) -> str:
    """Return PyTorch's name for the shown or chosen device, or one of its kind."""
    if check.record is not None:
        return check.record.device.address
    if check.run is not None and check.phase.is_busy:
        return check.run.plan.device
    row = check.device
    return row.address or row.number or (CPU if row.is_cpu else "cuda:0")


def quoted(check: CardCheck) -> CheckFinding | None:
    """Return the finding whose sentence the hero says already."""
    record = check.record
    if record is None:
        return None
    return sentence_finding(record)


def plan_rows(check: CardCheck) -> tuple[tuple[str, str], ...]:
    """Return what each stage tests, before a check; nothing during and after one."""
    if check.phase.is_busy or check.record is not None:
        return ()
    words = (stage_words(one.name, address(check)) for one in STAGES)
    return tuple((one.title, one.tests) for one in words)


def _running_row(track: StageTrack, address: str) -> StageWords:
    title = stage_title(track.name, address)
    if track.state == "running":
        time = f"{clock_text(track.fraction * track.budget_s)} of {clock_text(track.budget_s)}"
        detail = _with_errors(track.tested or "Starting", track.total_errors)
        return StageWords(track.name, title, detail, time, "running", track.fraction)
    if track.state == "finished" and track.verdict is not None:
        detail = _with_errors(track.tested, track.total_errors)
        return StageWords(track.name, title, detail, clock_text(track.seconds), track.verdict)
    time = clock_text(track.budget_s)
    return StageWords(track.name, title, "", time, "waiting")


def _finished_row(outcome: StageOutcome, address: str) -> StageWords:
    verdict = VERDICT_WORDS[outcome.verdict]
    tested = f"{verdict}: {outcome.tested}" if outcome.tested else verdict
    time = clock_text(outcome.seconds) if outcome.seconds else ""
    title = stage_title(outcome.name, address)
    detail = _with_errors(tested, outcome.errors)
    return StageWords(outcome.name, title, detail, time, outcome.verdict)


def _with_errors(tested: str, errors: int) -> str:
    return f"{errors_text(errors)}. {tested}".strip() if errors else tested


def cut_off_text(cut_off: CutOffCheck) -> str:
    """Return what happened to a check that was cut off."""
    state = cut_off.state
    name = state.device.name if state.device is not None else state.plan.device
    began = state.started_at[:16].replace("T", " ")
    return (
        f"{interruption_sentence(cut_off.interruption)} It was the check of {short_name(name)} "
        f"that began on {began}."
    )


def record_title(record: CheckRecord) -> str:
    """Return the name of a kept record in a list."""
    mark = ", fault made on purpose" if record.planted is not None else ""
    verdict = VERDICT_WORDS[record.verdict]
    name = name_at(pc_of(record.device.address), short_name(record.device.name))
    return f"{started_text(record)}  {name}: {verdict}{mark}"
