"""A check from its first event to its record: window and terminal read the same object.

It asks for one round after the other (`next_request`), takes the engine's events (`apply`), and
knows at any time what was found so far. If the engine dies or falls silent, that is a result, too.
"""

from __future__ import annotations

import secrets
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from gpu_studio.core import limits
from gpu_studio.core.check.check_record import (
    MOST_READINGS,
    MOST_SPANS,
    CheckRecord,
    StageSpan,
    loss_finding,
    stage_verdict,
    worse,
)
from gpu_studio.core.check.stages import (
    CHECK_MINUTES,
    NORMAL_MINUTES,
    PLANTED_FAULTS,
    in_order,
    round_count,
    round_s,
    stage_budget_s,
)
from gpu_studio.core.device_name import address_at, is_cpu, pc_of
from gpu_studio.core.messages.check_messages import (
    MOST_FINDINGS,
    STAGE_NAMES,
    CheckedDevice,
    CheckFinding,
    CheckFindingMade,
    CheckFinished,
    CheckProgressed,
    CheckRoundFinished,
    CheckStageBegan,
    CheckStageFinished,
    CheckStarted,
    CheckVerdict,
    CheckVitalsRead,
    MemoryCoverage,
    PlantKind,
    RunCheck,
    StageName,
    StageOutcome,
)
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.message import (  # noqa: TC001  # msgspec reads the annotations
    Count,
    PositiveCount,
    Seconds,
)
from gpu_studio.core.parameter import Parameter
from gpu_studio.core.pause import MOST_PAUSES, Pause
from gpu_studio.core.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.message import Event

_CLOCKS_SETTLE_S = 3.0
_RECORDED = (
    "temperature_c", "hotspot_c", "memory_temperature_c", "sm_clock_mhz", "power_w",
)  # fmt: skip
"""What a record has of each reading."""


class CheckPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The check that was asked for."""

    device: str
    minutes: Annotated[
        PositiveCount,
        Parameter(
            name="time",
            title="Length of the check",
            sentence="1min is a glance, 6min the usual check, 8h overnight.",
            offered=CHECK_MINUTES,
            names=("1 minute", "6 minutes", "Overnight"),
            unit="min",
            work=("check",),
        ),
    ] = NORMAL_MINUTES
    stages: tuple[StageName, ...] = STAGE_NAMES
    plant: Annotated[
        PlantKind | None,
        Parameter(
            name="plant",
            title="Fault to make on purpose",
            sentence="Make a fault on purpose, to see what a broken card looks like.",
            offered=(None, *(fault.kind for fault in PLANTED_FAULTS)),
            names=("No fault", *(fault.title for fault in PLANTED_FAULTS)),
            work=("check",),
        ),
    ] = None


class StageTrack(msgspec.Struct, kw_only=True):
    """A stage on its way, over all rounds so far.

    ``fraction`` is that of the present round. ``errors``, ``seconds`` and ``verdict`` cover the
    finished rounds, ``round_errors`` the present one.
    """

    name: StageName
    planned_s: Seconds = 0.0
    state: Literal["waiting", "running", "finished"] = "waiting"
    verdict: CheckVerdict | None = None
    tested: str = ""
    doing: str = ""
    fraction: float = 0.0
    errors: int = 0
    round_errors: int = 0
    seconds: Seconds = 0.0

    @property
    def total_errors(self) -> int:
        """The errors of all rounds, including the present one."""
        return self.errors + self.round_errors

    def leave(self, verdict: CheckVerdict | None, *, is_over: bool) -> None:
        """Go no further in this round."""
        self.verdict, self.state = verdict, "finished" if is_over else "waiting"
        self.errors, self.round_errors = self.total_errors, 0
        self.doing, self.fraction = "", float(is_over)


_FIGURES = (
    "highest_temperature_c", "highest_hotspot_c", "highest_memory_temperature_c",
    "lowest_clock_mhz", "highest_power_w", "coverage", "pauses",
)  # fmt: skip
"""What a record has of a check as it is."""


class CheckRun(msgspec.Struct):
    """A check that is planned, running or over.

    ``started_at`` is ISO 8601. ``stages`` are the chosen ones in their order, ``readings`` the
    sensors as a record has them. ``device`` is as the engine describes it, None before its first
    answer. ``elapsed_s`` is the time of the check so far, ``before_s`` that until the present
    round. ``program`` is the name and version of this program, for the record. ``earlier`` is the
    last record of the same card.
    """

    plan: CheckPlan
    started_at: str
    program: str = ""
    check_id: str = msgspec.field(default_factory=lambda: secrets.token_hex(4))
    round: PositiveCount = 1
    stages: tuple[StageTrack, ...] = ()
    findings: list[CheckFinding] = msgspec.field(default_factory=list)
    elapsed_s: Seconds = 0.0
    before_s: Seconds = 0.0
    device: CheckedDevice | None = None
    fingerprint: str = ""
    readings: list[Telemetry] = msgspec.field(default_factory=list)
    spans: list[StageSpan] = msgspec.field(default_factory=list)
    rounds_done: Count = 0
    highest_temperature_c: float | None = None
    highest_hotspot_c: float | None = None
    highest_memory_temperature_c: float | None = None
    lowest_clock_mhz: float | None = None
    highest_power_w: float | None = None
    coverage: MemoryCoverage | None = None
    pauses: tuple[Pause, ...] = ()
    earlier: CheckRecord | None = None
    is_stopped: bool = False
    is_over: bool = False
    is_silent: bool = False
    is_paused: bool = False
    has_begun: bool = False

    def __post_init__(self) -> None:
        """Plan the stages."""
        self.stages = tuple(StageTrack(name=name) for name in in_order(self.plan.stages))
        self._plan_budgets()

    def _plan_budgets(self) -> None:
        for track in self.stages:
            track.planned_s = stage_budget_s(track.name, round_s(self.plan.minutes))

    @property
    def rounds(self) -> int:
        """The planned number of rounds."""
        return round_count(self.plan.minutes)

    @property
    def remaining_s(self) -> float:
        """The longest time that the check still needs, in seconds."""
        one_round_s = sum(track.planned_s for track in self.stages)
        left_s = sum(
            track.planned_s * (1 - track.fraction)
            for track in self.stages
            if track.state != "finished"
        )
        return left_s + one_round_s * (self.rounds - self.round)

    @property
    def errors(self) -> int:
        """The errors found so far."""
        return sum(track.total_errors for track in self.stages)

    @property
    def present(self) -> StageTrack | None:
        """The stage that is running; None between stages."""
        return next((track for track in self.stages if track.state == "running"), None)

    @property
    def patience_s(self) -> float:
        """How long to wait for the next event before calling `give_up`, in seconds."""
        return limits.current.check_step_s if self.has_begun else limits.current.check_start_s

    def next_request(self) -> RunCheck | None:
        """Return the request for the next round; None if the check is over."""
        is_finished = all(track.state == "finished" for track in self.stages)
        if self.is_stopped or (is_finished and self.round >= self.rounds):
            self.is_over = True
        if self.is_over:
            return None
        if is_finished:
            self.round += 1
            for track in self.stages:
                track.leave(track.verdict, is_over=False)
            self._plan_budgets()
        self.has_begun = self.is_paused = False
        return RunCheck(
            device=self.plan.device,
            stages=tuple(track.name for track in self.stages if track.state != "finished"),
            round_s=round_s(self.plan.minutes), round=self.round, plant=self.plan.plant,
        )  # fmt: skip

    def stop(self) -> None:
        """Note that the user ends the check; the engine still has to be stopped."""
        self.is_stopped = True

    def pause(self, paused_s: float) -> None:
        """Note that the PC slept, or the program was stopped, until now.

        A sleep may end the engine's use of its card and empty the video memory, so nothing of it is
        the card's fault: the engine has to be abandoned, and the next request runs the stage again.
        """
        if self.is_over or self.is_paused:
            return
        self.is_paused = True
        if len(self.pauses) < MOST_PAUSES:
            self.pauses = (*self.pauses, Pause(after_s=self.elapsed_s, paused_s=paused_s))
        track = self.present
        self.before_s = self.elapsed_s
        if track is not None:
            self._rewind(track)

    def give_up(self) -> None:
        """Note that the engine was silent for too long; it still has to be abandoned."""
        self.is_silent = True

    def apply(self, event: Event) -> None:
        """Take an event of the engine."""
        if self.is_paused:
            return  # of the engine before the pause
        match event:
            case CheckStarted():
                self.device, self.fingerprint = event.device, event.fingerprint
                if is_cpu(event.fingerprint):  # each PC has one
                    self.fingerprint = address_at(pc_of(self.plan.device), event.fingerprint)
            case CheckStageBegan():
                self.has_begun = True
                track = self._track(event.stage)
                track.state, track.fraction, track.round_errors = "running", 0.0, 0
                track.planned_s = event.planned_s
                if len(self.spans) < MOST_SPANS:
                    self.spans.append(
                        StageSpan(name=event.stage, round=self.round, start_s=self.elapsed_s)
                    )
            case CheckProgressed():
                track = self._track(event.stage)
                track.fraction, track.doing = event.fraction, event.doing
                track.tested, track.round_errors = event.tested, event.errors
                self.coverage = event.coverage or self.coverage
                self._move_to(event.elapsed_s)
            case CheckVitalsRead():
                self._read(event)
            case CheckFindingMade():
                self._find(event.finding)
            case CheckStageFinished():
                self._finish_stage(event)
            case CheckRoundFinished():
                self.before_s = self.elapsed_s
                if event.is_stopped:
                    self.is_stopped = self.is_over = True
                elif all(track.state == "finished" for track in self.stages):
                    self.rounds_done += 1
            case RequestFailed() | EngineEnded():
                self._lose(event)

    def finished(self) -> CheckFinished:
        """Return the end of the check."""
        record = self.record()
        return CheckFinished(
            device=self.plan.device, verdict=record.verdict, stages=record.stages,
            planted=self.plan.plant, next_action=record.next_action,
        )  # fmt: skip

    def record(self) -> CheckRecord:
        """Return the record of the check so far."""
        unknown = CheckedDevice(address=self.plan.device, name=self.plan.device)
        return CheckRecord(
            device=self.device or unknown,
            started_at=self.started_at,
            minutes=self.plan.minutes,
            seconds=self.elapsed_s,
            rounds=self.rounds_done,
            stages=self.outcomes(),
            findings=tuple(self.findings),
            planted=self.plan.plant,
            is_stopped=self.is_stopped,
            failed_before=self.earlier is not None and self.earlier.verdict == "failed",
            readings=thinned(self.readings),
            spans=tuple(self.spans),
            program=self.program,
            **{name: getattr(self, name) for name in _FIGURES},
        )

    def outcomes(self) -> tuple[StageOutcome, ...]:
        """Return each chosen stage's outcome so far; a running stage counts as partial."""
        return tuple(self._outcome(track) for track in self.stages)

    def _track(self, name: StageName) -> StageTrack:
        return next(track for track in self.stages if track.name == name)

    def _outcome(self, track: StageTrack) -> StageOutcome:
        verdict: CheckVerdict = track.verdict or "skipped"
        if track.state == "running":
            verdict = self._verdict_if_cut(track)
        if track.total_errors:
            verdict = "failed"
        return StageOutcome(
            name=track.name, verdict=verdict, tested=track.tested, errors=track.total_errors,
            seconds=track.seconds,
        )  # fmt: skip

    def _verdict_if_cut(self, track: StageTrack) -> CheckVerdict:
        """Return the verdict of a stage that goes no further, with that of the rounds before."""
        found = [one for one in self.findings if one.stage == track.name]
        now = stage_verdict(found, has_tested=bool(track.tested), is_complete=False)
        return worse(track.verdict, now)

    def _rewind(self, track: StageTrack) -> None:
        """Let a stage run again, whole; what it found stays."""
        verdict: CheckVerdict | None = self._verdict_if_cut(track)
        if verdict in ("partial", "skipped"):
            verdict = "passed" if self.rounds_done else None
        track.leave(verdict, is_over=False)

    def _read(self, event: CheckVitalsRead) -> None:
        # Another PC's engine may send times that go back.
        before_s = self.readings[-1].at_s if self.readings else 0.0
        vitals, at_s = event.vitals, max(self.before_s + event.elapsed_s, before_s)
        self._move_to(event.elapsed_s)
        if (reading := reading_of(at_s, vitals)) is not None:
            self.readings.append(reading)
            if len(self.readings) > 2 * MOST_READINGS:
                self.readings = list(thinned(self.readings))
        for name, value in (
            ("highest_temperature_c", vitals.temperature_c),
            ("highest_power_w", vitals.power_w),
            ("highest_hotspot_c", vitals.hotspot_c),
            ("highest_memory_temperature_c", vitals.memory_temperature_c),
        ):
            setattr(self, name, _either(max, getattr(self, name), value))
        present = self.present
        # At any other time, the card may rest, and its clock says nothing.
        if present is None or present.name != "load":
            return
        if present.fraction * present.planned_s >= _CLOCKS_SETTLE_S:
            self.lowest_clock_mhz = _either(min, self.lowest_clock_mhz, vitals.sm_clock_mhz)

    def _find(self, finding: CheckFinding) -> None:
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding)
        track = self._track(finding.stage)
        if finding.severity == "error":
            track.round_errors = max(track.round_errors, finding.count)

    def _finish_stage(self, event: CheckStageFinished) -> None:
        track = self._track(event.stage)
        track.round_errors = event.errors
        track.leave(worse(track.verdict, event.verdict), is_over=True)
        track.tested = event.tested
        track.seconds += event.seconds
        if self.spans:
            self._move_to(self.spans[-1].start_s - self.before_s + event.seconds)
        self.coverage = event.coverage or self.coverage

    def _move_to(self, round_at_s: float) -> None:
        """Note how long the round has run so far."""
        self.elapsed_s = max(self.elapsed_s, self.before_s + round_at_s)

    def _lose(self, event: RequestFailed | EngineEnded) -> None:
        """Turn the end of the engine into the result of the stage that was running."""
        track = self.present or next(
            (one for one in self.stages if one.state == "waiting"), self.stages[-1]
        )
        if not (self.is_stopped and isinstance(event, EngineEnded)):
            finding = loss_finding(
                event, track.name, is_silent=self.is_silent, step=track.doing,
                address=self.plan.device, has_begun=bool(self.spans),
            )  # fmt: skip
            errors = track.round_errors + finding.count
            self._find(finding)
            track.round_errors = errors
        track.seconds += track.fraction * track.planned_s
        track.leave(self._verdict_if_cut(track), is_over=True)
        self.before_s = self.elapsed_s
        self.is_over = True


def _either(which: Any, before: float | None, now: float | None) -> Any:
    return which((value for value in (before, now) if value is not None), default=None)


def reading_of(at_s: float, vitals: Telemetry) -> Telemetry | None:
    """Return what a record has of a reading; None if it has nothing of a curve."""
    values = {name: getattr(vitals, name) for name in _RECORDED}
    known = {name: round(value, 1) for name, value in values.items() if value is not None}
    return Telemetry(at_s=round(at_s, 1), **known) if known else None


def thinned(readings: Sequence[Telemetry]) -> tuple[Telemetry, ...]:
    """Return at most `MOST_READINGS` of a check's readings, in their order.

    If there are more, each span of the check keeps two: the hottest, and the one with the lowest
    clock. So no peak and no drop is lost, and no value is a mean that the card never reported.
    """
    if len(readings) <= MOST_READINGS:
        return tuple(readings)
    spans, first_s = MOST_READINGS // 2, readings[0].at_s
    span_s = max(readings[-1].at_s - first_s, 1.0) / (spans - 1)
    kept: list[Telemetry] = []
    for _, group in groupby(readings, lambda one: (one.at_s - first_s) // span_s):
        those = list(group)
        hottest = max(those, key=lambda one: one.temperature_c or 0.0)
        slowest = min(those, key=_clock)
        one_or_two = (hottest,) if hottest is slowest else (hottest, slowest)
        kept += sorted(one_or_two, key=lambda one: one.at_s)
    return tuple(kept)


def _clock(reading: Telemetry) -> float:
    return float("inf") if reading.sm_clock_mhz is None else reading.sm_clock_mhz
