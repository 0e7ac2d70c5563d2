"""What a check says before it begins, while it runs, and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.check.check_run import StageTrack
from gpu_studio.core.check.check_verdict import (
    CheckEnd,
    end_of,
    end_tone,
    end_words,
    errors_text,
    interruption_sentence,
)
from gpu_studio.core.check.record_words import (
    VERDICT_WORDS,
    RecordPart,
    RecordRow,
    device_line,
    findings_part,
    length_text,
    origin_text,
    planted_text,
    record_parts,
    started_text,
    when_line,
)
from gpu_studio.core.check.stages import STAGES, planted_fault, stage_title, stage_words
from gpu_studio.core.device_name import CPU, name_at, pc_of
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import clock_text, written_moment

if TYPE_CHECKING:
    from gpu_studio.core.check.check_folder import CutOffCheck
    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.check.check_run import CheckRun
    from gpu_studio.core.messages.check_messages import StageName
    from gpu_studio.model.check.card_check import CardCheck
    from gpu_studio.model.devices.device_board import DeviceRow

_LOAD = (
    "It loads the device fully, and the desktop may become slow. Save your work first. You can "
    "stop it at any time."
)
_CPU = "On the CPU, the check tests the RAM of its own process and computes on all cores."


class HeroWords(NamedTuple):
    """The words at the top of the page; an empty text is hidden.

    ``subject`` and ``when`` say what was checked, when, and for how long; ``errors`` is the
    largest, in a ``tone``. ``origin`` marks a record from a file, ``planted`` a fault on purpose.
    """

    subject: str
    errors: str
    tone: Tone
    doing: str
    next: str
    when: str = ""
    origin: str = ""
    planted: str = ""
    chip: Notice = Notice()


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


def running(check: CardCheck) -> CheckRun | None:
    """Return the check while it runs."""
    return check.run if check.phase.is_busy else None


def hero(check: CardCheck) -> HeroWords:
    """Return the words at the top: the errors, the current stage, and what is covered."""
    if (run := running(check)) is not None:
        return _progress(check, run)
    return _result(check.record) if check.record is not None else _question(check)


def _question(check: CardCheck) -> HeroWords:
    device, planted = check.device, ""
    if check.plant is not None:
        does = planted_fault(check.plant).does
        planted = f"This check will make a fault on purpose, to show that it is found: {does}"
    if check.reason and not device.is_cpu and check.is_barred:
        words, fix = "Cannot be checked yet", "The Devices tab says how to fix it."
        return HeroWords(device.label, words, Tone.AMBER, check.reason, planted or fix)
    question = "Does this CPU compute correctly?" if device.is_cpu else "Is this card sound?"
    hint = f"{_CPU} {_LOAD}" if device.is_cpu else _LOAD
    length = length_text(check.minutes)
    plan = f"{len(STAGES)} stages. {length[0].upper()}{length[1:]}."
    next_step = " ".join(filter(None, (planted, check.reason or hint)))
    return HeroWords(device_title(device), question, Tone.PLAIN, plan, next_step)


def _progress(check: CardCheck, run: CheckRun) -> HeroWords:
    present, address = run.present, run.plan.device
    stage = "The next stage is starting." if run.elapsed_s else "Starting."
    next_step = ""
    if present is not None:
        stage = f"Now: {stage_title(present.name, address)}. {present.doing or 'Starting'}."
        tested = f"Covered so far: {present.tested}. " if present.tested else ""
        final = "The verdict is final after the last stage."
        if run.errors:
            final = "The check goes on, to find out how many errors there are."
        next_step = f"{tested}{final}"
    has_doubt = any(one.severity == "doubt" for one in run.findings)
    rounds = f"Round {run.round} of {run.rounds}, " if run.rounds > 1 else "Running, "
    left = f"{rounds}{_left(run.remaining_s)} left"
    return HeroWords(
        subject=device_line(run.device) if run.device is not None else check.device.label,
        errors=f"{errors_text(run.errors)} so far" if run.spans else "Starting",
        tone=Tone.FAILURE if run.errors else Tone.AMBER if has_doubt else Tone.QUIET,
        doing=stage,
        next=next_step,
        when=f"{written_moment(run.started_at)} · {length_text(run.plan.minutes)}",
        planted=planted_text(run.plan.plant),
        chip=Notice("Stopping…" if run.is_stopped else left, Tone.QUIET),
    )


def _result(record: CheckRecord) -> HeroWords:
    tone = end_tone(record)
    chip = Notice(VERDICT_WORDS[record.verdict], Tone.QUIET if tone is Tone.PLAIN else tone)
    return HeroWords(
        subject=device_line(record.device),
        errors=end_words(record),
        tone=tone,
        doing=record.sentence,
        next=f"Next: {record.next_action}",
        when=when_line(record),
        origin=origin_text(record),
        planted=planted_text(record.planted),
        chip=Notice() if end_of(record) is CheckEnd.NOTHING_TESTED else chip,
    )


def _left(seconds: float) -> str:
    if seconds < 60:
        return "under 1 min"
    minutes = round(seconds / 60)
    return f"about {minutes}\u202fmin" if minutes < 90 else f"about {minutes / 60:.0f}\u202fh"


def stage_rows(check: CardCheck) -> tuple[StageWords, ...]:
    """Return the rows of the stages, in their order."""
    tracks = tuple(StageTrack(name=one.name) for one in STAGES)
    if (run := running(check)) is not None:
        tracks = run.stages
    elif check.record is not None:
        tracks = tuple(
            StageTrack(
                name=one.name, state="finished", verdict=one.verdict, tested=one.tested,
                errors=one.errors, seconds=one.seconds,
            )
            for one in check.record.stages
        )  # fmt: skip
    return tuple(_stage_row(track, address(check)) for track in tracks)


def _stage_row(track: StageTrack, address: str) -> StageWords:
    title, tested = stage_title(track.name, address), track.tested
    state, time = "waiting", track.budget_s
    if track.state == "finished" and track.verdict is not None:
        state, time = track.verdict, track.seconds
        tested = ": ".join(filter(None, (VERDICT_WORDS[track.verdict], tested)))
    if track.state == "running":
        state, tested = "running", tested or "Starting"
    if track.total_errors:
        tested = f"{errors_text(track.total_errors)}. {tested}".strip()
    spent = f"{clock_text(track.fraction * time)} of " if state == "running" else ""
    written = f"{spent}{clock_text(time)}" if time else ""
    return StageWords(track.name, title, tested, written, state, track.fraction)


def address(check: CardCheck) -> str:
    """Return PyTorch's name for the shown or chosen device, or one of its kind."""
    if check.record is not None:
        return check.record.device.address
    if (run := running(check)) is not None:
        return run.plan.device
    row = check.device
    return row.address or row.number or (CPU if row.is_cpu else "cuda:0")


def parts(check: CardCheck) -> tuple[RecordPart, ...]:
    """Return what stands below: the plan, the findings of a running check, or the record."""
    if (run := running(check)) is not None:
        return (findings_part(run.findings),)
    if check.record is not None:
        return record_parts(check.record)
    words = (stage_words(one.name, address(check)) for one in STAGES)
    rows = tuple(RecordRow(one.title, one.tests) for one in words)
    return (RecordPart("plan", "What the stages test", rows),)


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
    name = name_at(pc_of(record.device.address), short_name(record.device.name))
    return f"{started_text(record)}  {name}: {VERDICT_WORDS[record.verdict]}"
