"""A check in words, while it runs and after it: alike in the window, in the terminal, on paper."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.check.check_record import (
    end_of,
    errors_text,
)
from gpu_studio.core.check.stages import (
    OVERNIGHT_MINUTES,
    PLANTED_MARK,
    fault_words,
    stage_title,
    stage_words,
    stages_for,
    stages_of,
)
from gpu_studio.core.device_name import name_at, pc_of
from gpu_studio.core.devices.adapters import is_adapter
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.pause import pause_text
from gpu_studio.core.units import (
    clock_text,
    counted,
    format_bytes,
    format_count,
    format_percent,
    written_moment,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.check.check_run import CheckRun
    from gpu_studio.core.messages.check_messages import (
        CheckedDevice,
        CheckFinding,
        PlantKind,
        Severity,
        StageName,
    )
    from gpu_studio.core.pause import Pause

TITLE = "Record of a check"
PROMISE = "It says what was tested on that day. Passing cannot rule out every fault."
_TONES: dict[Severity, Tone] = {
    "error": Tone.FAILURE, "doubt": Tone.AMBER, "note": Tone.PLAIN,
}  # fmt: skip
"""Of the severities, the worst first."""
_LONGEST_WRITTEN = 1e7
_LONG_WORD = re.compile(r"\S{32}(?=\S)")
_LOOKS = (
    "Its looks, its connectors, its outputs and its fan's noise: look at it and listen to it while "
    "a game runs."
)
_FORGED = (
    "A record can be forged: it is a file that anyone can edit, and GPU Studio does not sign it. "
    "So do not pay because of a file alone."
)
_FRESH = (
    "Ask for a fresh one: the seller starts GPU Studio, opens the Check tab and runs the 6-minute "
    "check while you watch, at the handover or in a video call. Better, run it yourself: the "
    "program is free."
)


class RecordRow(NamedTuple):
    """A line of a record; one of a list has no title. ``details`` say more about the words."""

    title: str
    words: str
    tone: Tone = Tone.PLAIN
    details: tuple[str, ...] = ()


class RecordPart(NamedTuple):
    """A part of a record; its name is for the window."""

    name: str
    title: str
    rows: tuple[RecordRow, ...]


def breakable(text: str) -> str:
    """Return a text whose longest words can be wrapped: a record may come from a stranger."""
    return _LONG_WORD.sub("\\g<0>\u200b", text)


def length_text(minutes: int) -> str:
    """Return the chosen length of a check: ``6 minutes``."""
    return "Overnight (8 hours)" if minutes == OVERNIGHT_MINUTES else counted(minutes, "minute")


def record_title(record: CheckRecord) -> str:
    """Return the name of a kept record in a list."""
    name = name_at(pc_of(record.device.address), short_name(record.device.name))
    began = record.started_at[:16].replace("T", " ")
    return f"{began}  {name}: {record.verdict.capitalize()}"


def device_line(device: CheckedDevice) -> str:
    """Return a device with its memory: ``GeForce GT 1030, 1.95 GiB``."""
    is_card = not device.is_of_cpu
    name = device.name.removeprefix("NVIDIA ") if is_card else short_name(device.name)
    if device.memory_total_bytes is None:
        return name
    return f"{name}, {format_bytes(device.memory_total_bytes)}{'' if is_card else ' of RAM'}"


def when_line(record: CheckRecord) -> str:
    """Return when a check began and how long it was: ``November 22, 2026, 14:40 · 6:00 of 6:00``.

    The check may end before its time, if the card is steady soon, or be stopped.
    """
    planned = clock_text(60.0 * record.minutes)
    return f"{written_moment(record.started_at)} · ran {clock_text(record.seconds)} of {planned}"


def origin_text(record: CheckRecord) -> str:
    """Return the mark of a record from a file; empty for one of this PC."""
    if not record.origin:
        return ""
    return f"From the file {record.origin}: GPU Studio cannot know whether it is true."


def planted_text(plant: PlantKind | None) -> str:
    """Return the mark of a result with a fault made on purpose; empty for any other."""
    return f"{PLANTED_MARK} The fault: {fault_words(plant)}" if plant else ""


def paused_text(pause: Pause) -> str:
    """Return a pause of a check in words, without a full stop."""
    return f"{pause_text(pause)}, {clock_text(pause.after_s)} into the check"


def record_parts(record: CheckRecord) -> tuple[RecordPart, ...]:
    """Return all that a record says below its verdict; window, terminal and paper show it alike."""
    limits = tuple(RecordRow("", one) for one in _limits(record))
    trust = tuple(RecordRow("", one) for one in _trust(record))
    return (
        findings_part(record.findings),
        RecordPart("facts", "What was checked", record_facts(record)),
        RecordPart("limits", "What this record cannot rule out", limits),
        RecordPart("trust", "Can you rely on this record?", trust),
    )


def _trust(record: CheckRecord) -> Iterator[str]:
    """Yield how far a record itself can be trusted, and how to get a better one."""
    tail = record.device.uuid_tail
    yield _FORGED
    if tail:
        yield (
            f"The UUID of the checked card ends in {tail}: compare that with what the seller's PC "
            "shows in GPU Studio (Devices, All facts) or prints after “nvidia-smi -L”."
        )
    elif not record.device.is_of_cpu:
        yield "It does not say which copy of the card was checked: it has no part of a UUID."
    yield _FRESH


def _limits(record: CheckRecord) -> Iterator[str]:
    """Yield what a record cannot rule out, the most important first."""
    address, coverage = record.device.address, record.coverage
    ran = [stage.name for stage in record.stages if stage.has_tested]
    missing = [stage_title(name, address) for name in stages_of(address) if name not in ran]
    if missing:
        yield f"Faults that these stages find, which did not run: {', '.join(missing)}."
    if coverage is not None and coverage.total_bytes > coverage.tested_bytes:
        rest = format_bytes(coverage.total_bytes - coverage.tested_bytes)
        kind, why = "memory", "the system and other programs used it, or the check kept it free"
        if record.device.is_of_cpu:
            kind, why = "RAM", "a check takes a quarter of what is free, or what it has time for"
        yield f"Faults in {rest} of the {format_bytes(coverage.total_bytes)} of {kind}: {why}."
    if record.device.is_of_cpu:
        yield "Everything about the PC's graphics cards: this was a check of its CPU and RAM."
    elif record.highest_hotspot_c is None and record.has_tested:
        yield "Old thermal paste under the chip: this card reported no hot spot."
    for words in (stage_words(name, address) for name in ran):
        misses = words.misses
        if misses[1:2].islower():  # a name in capitals keeps them
            misses = misses[0].lower() + misses[1:]
        yield f"{words.title}: {misses}"
    if not record.device.is_of_cpu:
        yield _LOOKS


# ── in the window ────────────────────────────────────────────────────────────────────────────────


class HeroWords(NamedTuple):
    """The words at the top of the page; an empty text is hidden.

    ``subject`` and ``when`` say what was checked, when, and for how long; ``errors`` is the
    largest. ``origin`` marks a record from a file, ``planted`` a fault on purpose.
    """

    subject: str
    errors: Notice
    doing: str
    next: str
    when: str = ""
    origin: str = ""
    planted: str = ""
    chip: Notice = Notice()


def running_words(run: CheckRun, label: str) -> HeroWords:
    """Return the words of a check that runs.

    Args:
        run: the check.
        label: the device's name, until the engine says more of it.
    """
    present, address = run.present, run.plan.device
    doing = "The next stage is starting." if run.elapsed_s else "Starting."
    final = ""
    if present is not None:
        doing = f"Now: {stage_title(present.name, address)}. {present.doing or 'Starting'}."
        final = "The verdict is final after the last stage."
    if run.errors:
        final = "The check goes on, to find out how many errors there are."
    has_doubt = any(one.severity == "doubt" for one in run.findings)
    tone = Tone.FAILURE if run.errors else Tone.AMBER if has_doubt else Tone.QUIET
    errors = f"{errors_text(run.errors)} so far" if run.spans else "Starting"
    worst = next((row.words for row in findings_part(run.findings).rows), "")
    return HeroWords(
        subject=device_line(run.device) if run.device is not None else label,
        errors=Notice(errors, tone),
        doing=doing,
        next=f"{worst} {final}".strip(),
        when=f"{written_moment(run.started_at)} · {length_text(run.plan.minutes)}",
        planted=planted_text(run.plan.plant),
        chip=Notice("Stopping…" if run.is_stopped else _time_left(run), Tone.QUIET),
    )


def _time_left(run: CheckRun) -> str:
    """Return the time to the end; a stage that is not done in its time says so."""
    begins = f"Round {run.round} of {run.rounds}, " if run.rounds > 1 else "Running, "
    seconds, present = run.remaining_s, run.present
    if present is not None and present.fraction >= 1:
        return f"{begins}longer than planned"
    if seconds < 90:
        return f"{begins}about {10 * max(math.ceil(seconds / 10), 1)} s left"
    minutes = round(seconds / 60)
    left = f"{minutes} min" if minutes < 90 else f"{minutes / 60:.0f} h"
    return f"{begins}about {left} left"


def result_words(record: CheckRecord) -> HeroWords:
    """Return the words of a check that is over: the worst finding, and how many more there are."""
    end, more = end_of(record), len(findings_part(record.findings).rows) - 1
    chip = Notice(record.verdict.capitalize(), Tone.QUIET if end.tone is Tone.PLAIN else end.tone)
    also = f" {counted(more, 'more finding')} in Details." if more > 0 else ""
    return HeroWords(
        subject=breakable(device_line(record.device)),
        errors=end,
        doing=breakable(f"{record.sentence}{also}"),
        next=breakable(f"Next: {record.next_action}"),
        when=when_line(record),
        origin=breakable(origin_text(record)),
        planted=planted_text(record.planted),
        chip=chip if record.has_tested or record.errors else Notice(),
    )


_SIGNS = {"waiting": "○", "running": "●", "passed": "✓", "failed": "✗", "skipped": "–"}
StageRow = tuple[str, str, str, str]
"""The title of a stage, its state, its time, and what it tested."""


def planned_rows(minutes: int, address: str) -> tuple[StageRow, ...]:
    """Return the stages of a check of this length."""
    return tuple(_stage_row(one, address, "waiting") for one in stages_for(minutes, address))


def running_rows(run: CheckRun) -> tuple[StageRow, ...]:
    """Return the stages of a check that runs."""
    rows = []
    for track in run.stages:
        state, time = "waiting", clock_text(track.planned_s) if track.planned_s else ""
        if track.state == "finished" and track.verdict is not None:
            state, time = track.verdict, clock_text(track.seconds)
        elif track.state == "running":
            spent_s = run.elapsed_s - run.spans[-1].start_s if run.spans else 0.0
            state, time = "running", f"{clock_text(spent_s)} of {time}"
        rows.append(_stage_row(track.name, run.plan.device, state, time, track.tested,
                               track.total_errors))  # fmt: skip
    return tuple(rows)


def result_rows(record: CheckRecord) -> tuple[StageRow, ...]:
    """Return the stages of a check that is over."""
    return tuple(
        _stage_row(one.name, record.device.address, one.verdict, clock_text(one.seconds),
                   one.tested, one.errors)
        for one in record.stages
    )  # fmt: skip


def _stage_row(
    name: StageName, address: str, state: str, time: str = "", tested: str = "", errors: int = 0
) -> StageRow:
    found = f"{errors_text(errors)}. " if errors else ""
    return (
        stage_title(name, address),
        f"{_SIGNS.get(state, '!')} {state.capitalize()}",
        time,
        f"{found}{tested}".strip(),
    )


def plan_text(address: str) -> str:
    """Return what each stage tests, and what it cannot find."""
    every = (stage_words(name, address) for name in stages_of(address))
    return "\n\n".join(f"{one.title}. {one.tests} Cannot find: {one.misses}" for one in every)


# ── facts ────────────────────────────────────────────────────────────────────────────────────────


def record_facts(record: CheckRecord) -> tuple[RecordRow, ...]:
    """Return the facts of a record, the device first."""
    facts = [*_device_facts(record.device), *_check_facts(record)]
    if record.has_tested:
        facts += _sensor_facts(record)
        facts.append(("Errors", errors_text(record.errors)))
    for stop in record.interruptions:
        what = "The PC restarted" if stop.is_restart else "The program ended"
        facts.append(("Interruption", f"{what} after {clock_text(stop.after_s)}"))
    facts += [("Interruption", paused_text(pause)) for pause in record.pauses]
    return tuple(RecordRow(title, words) for title, words in facts if words)


def _device_facts(device: CheckedDevice) -> Iterator[tuple[str, str]]:
    """Yield what a buyer compares with the card in the hand: name, memory, driver."""
    memory = device.memory_total_bytes
    size = "" if memory is None else format_bytes(memory)
    if device.is_of_cpu:
        yield from (("Processor", device.name), ("RAM", size))
    else:
        unknown = "Not known: this program does not know what a card of this name has."
        yield "Card", device.name
        yield "Chip", device.silicon or "unknown"
        yield "Is it that card?", device.contradiction or device.agreement or unknown
        yield "VBIOS", device.vbios or _missing(device)
        yield "Driver", device.driver_version or _missing(device)
        yield "UUID ends in", device.uuid_tail
        yield "Video memory", size
    yield "Error correction", device.ecc
    unused = "not used" if is_adapter(device.address) else "unknown"
    yield "PyTorch", device.torch_version or unused
    yield "This check", device.untested


def _check_facts(record: CheckRecord) -> Iterator[tuple[str, str]]:
    yield "Started", written_moment(record.started_at, with_zone=True)
    rounds = f", {record.rounds} rounds" if record.rounds > 1 else ""
    yield "Length", f"{length_text(record.minutes)}; ran for {clock_text(record.seconds)}{rounds}"
    if record.coverage is not None:
        own = ", in this program's own RAM" if record.device.is_of_cpu else ""
        tested, free = record.coverage.tested_bytes, record.coverage.free_bytes
        share = format_percent(min(tested / free, 1.0) if free else 0.0)
        of_free = f"{format_bytes(tested)} of {format_bytes(free)} free ({share})"
        yield "Memory tested", f"{of_free}{own}"
    elif not record.has_tested:
        yield "Tested", "nothing"


def _sensor_facts(record: CheckRecord) -> Iterator[tuple[str, str]]:
    device = record.device
    slowdown = base = ""
    if device.slowdown_c is not None and record.highest_temperature_c is not None:
        slowdown = f" (slows down at {_amount(device, device.slowdown_c, '°C')})"
    if device.base_clock_mhz is not None and record.lowest_clock_mhz is not None:
        base = f" (base clock {_amount(device, device.base_clock_mhz, 'MHz')})"
    heat = _amount(device, record.highest_temperature_c, "°C")
    yield "Highest temperature", f"{heat}{slowdown}"
    if not device.is_of_cpu:
        yield "Highest hot spot", _amount(device, record.highest_hotspot_c, "°C")
        memory = _amount(device, record.highest_memory_temperature_c, "°C")
        yield "Highest memory temperature", memory
    yield "Lowest clock under load", f"{_amount(device, record.lowest_clock_mhz, 'MHz')}{base}"
    if record.highest_power_w is not None:
        yield "Highest power", _amount(device, record.highest_power_w, "W")


def _missing(device: CheckedDevice) -> str:
    return f"not reported by this {'PC' if device.is_of_cpu else 'card'}"


def _amount(device: CheckedDevice, value: float | None, unit: str) -> str:
    if value is None:
        return _missing(device)
    # A record may come from a stranger: no number is longer than a line.
    return f"{value:.0f}\u202f{unit}" if value < _LONGEST_WRITTEN else f"{value:.0e}\u202f{unit}"


# ── findings ─────────────────────────────────────────────────────────────────────────────────────


def findings_part(findings: Iterable[CheckFinding]) -> RecordPart:
    """Return the findings of a check as lines, the worst first, equal ones as one.

    The details are the sentences of the others, each once.
    """
    groups: dict[tuple[str, str, str], list[CheckFinding]] = {}
    for one in findings:
        groups.setdefault((one.severity, one.kind, one.stage), []).append(one)
    worst_first = sorted(groups.values(), key=lambda group: [*_TONES].index(group[0].severity))
    return RecordPart("findings", "Findings", tuple(_finding_row(group) for group in worst_first))


def _finding_row(group: list[CheckFinding]) -> RecordRow:
    sentence, *others = dict.fromkeys(one.sentence for one in group)
    times = format_count(len(group) - bool(others))
    if others:
        sentence += f" And {times} more like it."
    elif len(group) > 1:
        sentence += f" ({times} times)"
    severity = group[0].severity
    return RecordRow(severity.capitalize(), sentence, _TONES[severity], tuple(others))
