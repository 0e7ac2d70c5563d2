"""What a check says before it begins, while it runs, and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.check.check_verdict import interruption_sentence
from gpu_studio.core.check.plants import PLANTED_MARK, planted_fault
from gpu_studio.core.check.record_words import (
    VERDICT_WORDS,
    clock_text,
    errors_text,
    length_text,
    planted_text,
    started_text,
)
from gpu_studio.core.check.stages import STAGES, stage_title, stage_words
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.notice import Notice, Tone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.check.check_folder import CutOffCheck
    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.check.check_run import CheckRun, StageTrack
    from gpu_studio.core.messages.check_messages import (
        CheckFinding,
        CheckVerdict,
        StageName,
        StageOutcome,
    )
    from gpu_studio.model.check.card_check import CardCheck
    from gpu_studio.model.devices.device_board import DeviceRow

TONES: dict[CheckVerdict, Tone] = {
    "passed": Tone.GOOD,
    "failed": Tone.FAILURE,
    "inconclusive": Tone.AMBER,
    "partial": Tone.AMBER,
    "skipped": Tone.QUIET,
}
_MOST_FINDINGS = 6
_LOAD = (
    "It loads the device fully, and the desktop may become slow. Save your work first. You can "
    "stop it at any time."
)
_CPU = "On the CPU, the check tests the RAM of its own process and computes on all cores."
_PLANTED = "This check will make a fault on purpose, to show that it is found: {does}"


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
    return f"CPU and RAM: {device.device.short_name}" if device.device else "CPU and RAM"


def hero(check: CardCheck) -> Notice:
    """Return the notice at the top: the errors, the current stage, and what is covered."""
    run, record = check.run, check.record
    if check.phase.is_busy and run is not None:
        return _progress(run)
    if record is not None:
        tone = Tone.FAILURE if record.errors else Tone.GOOD
        return Notice(errors_text(record.errors), tone, detail=record.sentence)
    planted = "" if check.plant is None else _PLANTED.format(does=planted_fault(check.plant).does)
    hint, question = _LOAD, "Is this card sound?"
    if check.device.is_cpu:
        hint, question = f"{_CPU} {_LOAD}", "Does this CPU compute correctly?"
    length = length_text(check.minutes)
    return Notice(
        question,
        detail=f"{device_title(check.device)}: six stages. {length[0].upper()}{length[1:]}.",
        next_step=" ".join(filter(None, (planted, check.reason or hint))),
    )


def _progress(run: CheckRun) -> Notice:
    present = run.present
    tone = Tone.FAILURE if run.errors else Tone.GOOD
    if present is None:
        stage = "Starting." if not run.elapsed_s else "Going on to the next stage."
        return Notice(errors_text(run.errors), tone, detail=stage)
    doing = present.doing or "Starting"
    tested = f"Covered so far: {present.tested}." if present.tested else ""
    title = stage_title(present.name, run.plan.device)
    return Notice(errors_text(run.errors), tone, detail=f"Now: {title}. {doing}.", next_step=tested)


def chip(check: CardCheck) -> Notice:
    """Return the chip beside the hero."""
    run, record = check.run, check.record
    if check.phase.is_busy and run is not None:
        if check.phase.value == "stopping":
            return Notice("Stopping…", Tone.QUIET)
        rounds = f"Round {run.round} of {run.rounds}, " if run.rounds > 1 else "Running, "
        return Notice(f"{rounds}{_left(run.remaining_s)} left", Tone.QUIET)
    if record is None:
        return Notice()
    return Notice(VERDICT_WORDS[record.verdict], TONES[record.verdict])


def _left(seconds: float) -> str:
    if seconds < 60:
        return "under 1 min"
    minutes = round(seconds / 60)
    return f"about {minutes}\u202fmin" if minutes < 90 else f"about {minutes / 60:.0f}\u202fh"


def verdict(check: CardCheck) -> Notice:
    """Return the verdict so far, or the final one."""
    run, record = check.run, check.record
    if check.phase.is_busy and run is not None:
        if run.errors:
            return Notice(
                f"Failed so far: {errors_text(run.errors)}", Tone.FAILURE,
                next_step="The check goes on, to find out how many errors there are.",
            )  # fmt: skip
        return Notice("No errors so far", next_step="The verdict is final after the last stage.")
    if record is None:
        return Notice("No verdict yet", next_step="The verdict says what was tested, and no more.")
    return Notice(
        VERDICT_WORDS[record.verdict], TONES[record.verdict],
        next_step=f"Next: {record.next_action}",
    )  # fmt: skip


def planted(check: CardCheck) -> str:
    """Return the mark of a check with a fault made on purpose; empty for any other."""
    run, record = check.run, check.record
    if record is not None:
        return planted_text(record)
    if check.phase.is_busy and run is not None and run.plan.plant is not None:
        return f"{PLANTED_MARK} The fault: {planted_fault(run.plan.plant).does}"
    return ""


def heading(check: CardCheck) -> str:
    """Return what the stages belong to: a check of this PC, or a record."""
    run, record = check.run, check.record
    if run is not None and check.phase.is_busy:
        return f"Check of {run.started_at[11:16]}"
    if record is None:
        return "Stages"
    origin = f", {check.file_name}" if check.file_name else ""
    return f"Record of {started_text(record)}{origin}"


def stage_rows(check: CardCheck) -> tuple[StageWords, ...]:
    """Return the rows of the stages, in their order."""
    run, record = check.run, check.record
    if check.phase.is_busy and run is not None:
        return tuple(_running_row(track, run.plan.device) for track in run.stages)
    if record is not None:
        return tuple(_finished_row(stage, record.device.address) for stage in record.stages)
    address = "cpu" if check.device.is_cpu else "cuda:0"
    return tuple(
        StageWords(one.name, stage_title(one.name, address), "", "", "waiting") for one in STAGES
    )


def plan_rows(check: CardCheck) -> tuple[tuple[str, str], ...]:
    """Return what each stage tests, before a check; nothing during and after one."""
    if check.phase.is_busy or check.record is not None:
        return ()
    address = "cpu" if check.device.is_cpu else "cuda:0"
    words = (stage_words(one.name, address) for one in STAGES)
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


def findings_text(findings: Sequence[CheckFinding]) -> str:
    """Return the findings, the worst first, a line each; a few of them if there are many."""
    worst_first = sorted(findings, key=lambda one: ("error", "doubt", "note").index(one.severity))
    lines = [f"• {one.sentence}" for one in worst_first[:_MOST_FINDINGS]]
    if len(worst_first) > _MOST_FINDINGS:
        lines.append(f"and {len(worst_first) - _MOST_FINDINGS} more, in the saved record")
    return "\n".join(lines)


def findings_tone(findings: Sequence[CheckFinding]) -> Tone:
    """Return the tone of the worst finding."""
    severities = {one.severity for one in findings}
    if "error" in severities:
        return Tone.FAILURE
    return Tone.AMBER if "doubt" in severities else Tone.PLAIN


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
    return f"{started_text(record)}  {short_name(record.device.name)}: {verdict}{mark}"
