"""A check from its first event to its record: window and terminal read the same object.

It asks for one round after the other (`next_request`), takes the engine's events (`apply`), and
knows at any time what was found so far. If the engine dies or falls silent, that is a result, too.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from gpu_studio.core.check.check_record import (
    MOST_SPANS,
    CheckRecord,
    StageSpan,
    recorded,
)
from gpu_studio.core.check.check_verdict import (
    CheckFigures,
    Interruption,
    loss_finding,
    stage_verdict,
    worse,
)
from gpu_studio.core.check.heat import has_moved, joined_heat, steady_gap_c
from gpu_studio.core.check.stages import (
    SPARE_TIME_OF,
    SPARE_TIME_TO,
    in_order,
    round_count,
    round_s,
    stage_budget_s,
)
from gpu_studio.core.check.steps_table import joined_rates, joined_steps
from gpu_studio.core.device_name import address_at, is_cpu, pc_of
from gpu_studio.core.messages.check_messages import (
    MOST_CHUNKS,
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
    LoadStep,
    MemoryCoverage,
    MemoryRates,
    PlantKind,
    RunCheck,
    StageHeat,
    StageName,
    StageOutcome,
)
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.message import (  # noqa: TC001  # msgspec reads the annotations
    Count,
    PositiveCount,
    Seconds,
)
from gpu_studio.core.pause import MOST_PAUSES, Pause
from gpu_studio.core.telemetry import Telemetry  # noqa: TC001  # msgspec reads it

if TYPE_CHECKING:
    from gpu_studio.core.messages.message import Event

START_PATIENCE_S = 120.0
"""PyTorch and CUDA may take this long to start on an old PC."""
STEP_PATIENCE_S = 60.0
"""A step of a check takes a second at most; a card that is silent this long hangs."""
_CLOCKS_SETTLE_S = 3.0
_PARTS: dict[StageName, StageName] = {"steps": "load", "cool": "memory"}


class CheckPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The check that was asked for."""

    device: str
    minutes: PositiveCount
    stages: tuple[StageName, ...] = STAGE_NAMES
    plant: PlantKind | None = None


class StageTrack(msgspec.Struct, kw_only=True):
    """A stage on its way, over all rounds so far.

    ``fraction`` is that of the present round. ``errors``, ``seconds`` and ``verdict`` cover the
    finished rounds, ``round_errors`` the present one.
    """

    name: StageName
    budget_s: Seconds
    state: Literal["waiting", "running", "finished"] = "waiting"
    verdict: CheckVerdict | None = None
    tested: str = ""
    doing: str = ""
    fraction: float = 0.0
    errors: int = 0
    round_errors: int = 0
    seconds: Seconds = 0.0
    heat: StageHeat | None = None

    @property
    def total_errors(self) -> int:
        """The errors of all rounds, including the present one."""
        return self.errors + self.round_errors


class CheckState(CheckFigures, frozen=True, kw_only=True):
    """Everything that an interrupted check needs to continue, and to be told as a result."""

    plan: CheckPlan
    check_id: str
    started_at: str
    round: PositiveCount
    finished: tuple[StageName, ...]
    stages: tuple[StageOutcome, ...]
    findings: tuple[CheckFinding, ...]
    elapsed_s: Seconds
    device: CheckedDevice | None = None
    fingerprint: str = ""
    readings: tuple[Telemetry, ...] = ()
    spans: tuple[StageSpan, ...] = ()
    rounds_done: Count = 0


class CheckRun:
    """A check that is planned, running or over.

    Args:
        plan: what was asked for.
        started_at: the time in ISO 8601.
        program: the name and version of this program, for the record.
        known: what is known of the device without its engine, for the record of a check whose
            engine never answers; None if nothing is.

    Attributes:
        stages: the chosen stages in their order.
        findings: all findings so far.
        vitals: the sensors, each with the seconds since the start of the check.
        spans: when each stage ran; the last one may still run.
        device: the device as the engine describes it; None before its first answer.
    """

    def __init__(
        self,
        plan: CheckPlan,
        started_at: str,
        *,
        program: str = "",
        known: CheckedDevice | None = None,
    ) -> None:
        self.plan = plan
        self.started_at = started_at
        self.check_id = secrets.token_hex(4)
        self.device: CheckedDevice | None = None
        self.fingerprint = ""
        self.earlier: CheckRecord | None = None
        self.is_stopped = self.is_over = False
        self._program, self._known = program, known
        self._is_silent = self._is_paused = self._has_begun = False
        self._forget_results()

    def _forget_results(self) -> None:
        budget_s = round_s(self.plan.minutes)
        self.stages = tuple(
            StageTrack(name=name, budget_s=stage_budget_s(name, budget_s))
            for name in in_order(map(_today, self.plan.stages))
        )
        self.findings: list[CheckFinding] = []
        self.vitals: list[Telemetry] = []
        self._readings: tuple[Telemetry, ...] | None = ()
        self.spans: list[StageSpan] = []
        self.coverage: MemoryCoverage | None = None
        self.load_steps: tuple[LoadStep, ...] = ()
        self.memory_rates: MemoryRates | None = None
        self.interruptions: tuple[Interruption, ...] = ()
        self.pauses: tuple[Pause, ...] = ()
        self.highest_temperature_c: float | None = None
        self.highest_hotspot_c: float | None = None
        self.largest_hotspot_gap_c: float | None = None
        self.highest_memory_temperature_c: float | None = None
        self.lowest_clock_mhz: float | None = None
        self.highest_power_w: float | None = None
        self.round, self._rounds_done = 1, 0
        self._before_s = self._round_at_s = 0.0  # of the rounds before this one, and of this one

    @classmethod
    def resumed(cls, state: CheckState, interruption: Interruption, program: str = "") -> CheckRun:
        """Return an interrupted check that continues after its last finished stage."""
        run = cls._restored(state, interruption, program)
        for track in run.stages:
            # The interrupted stage runs again, whole.
            if track.state != "finished" and track.verdict == "partial":
                track.verdict = "passed" if state.rounds_done else None
        return run

    @classmethod
    def concluded(
        cls, state: CheckState, interruption: Interruption, program: str = ""
    ) -> CheckRun:
        """Return an interrupted check that is over: the interruption is its result."""
        run = cls._restored(state, interruption, program)
        run.is_over = True
        return run

    @classmethod
    def _restored(cls, state: CheckState, interruption: Interruption, program: str) -> CheckRun:
        run = cls(state.plan, state.started_at, program=program)
        run.check_id, run.round = state.check_id, state.round
        run.device, run.fingerprint = state.device, state.fingerprint
        run.findings = [
            msgspec.structs.replace(one, stage=_today(one.stage)) for one in state.findings
        ]
        for name in CheckFigures.__struct_fields__:
            setattr(run, name, getattr(state, name))
        run.interruptions = (*state.interruptions, interruption)
        run.vitals, run.spans = list(state.readings), list(state.spans)
        run._readings = None
        run._before_s, run._rounds_done = state.elapsed_s, state.rounds_done
        for outcome in state.stages:
            if outcome.verdict != "skipped":
                track = run._track(_today(outcome.name))
                track.verdict = _joined(track.verdict, outcome.verdict)
                track.tested = track.tested or outcome.tested
                track.errors, track.seconds = (
                    track.errors + outcome.errors,
                    track.seconds + outcome.seconds,
                )
                track.heat = joined_heat(track.heat, outcome.heat)
        for track in run.stages:
            if track.name in state.finished:
                track.state, track.fraction = "finished", 1.0
        return run

    @property
    def rounds(self) -> int:
        """The planned number of rounds."""
        return round_count(self.plan.minutes)

    @property
    def elapsed_s(self) -> float:
        """The time that the check has spent, in seconds, without interruptions."""
        return self._before_s + self._round_at_s

    @property
    def remaining_s(self) -> float:
        """The longest time that the check still needs, in seconds."""
        one_round_s = sum(track.budget_s for track in self.stages)
        left_s = sum(
            track.budget_s * (1 - track.fraction)
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
        return STEP_PATIENCE_S if self._has_begun else START_PATIENCE_S

    def next_request(self) -> RunCheck | None:
        """Return the request for the next round; None if the check is over."""
        if self.is_over or self.is_stopped:
            self.is_over = True
            return None
        waiting = tuple(track.name for track in self.stages if track.state != "finished")
        if not waiting:
            if self.round >= self.rounds:
                self.is_over = True
                return None
            self.round += 1
            for track in self.stages:
                track.state, track.fraction = "waiting", 0.0
                track.budget_s = stage_budget_s(track.name, round_s(self.plan.minutes))
            waiting = tuple(track.name for track in self.stages)
        self._has_begun = self._is_paused = False
        return RunCheck(
            check_id=self.check_id, device=self.plan.device, stages=waiting,
            budget_s=round_s(self.plan.minutes), round=self.round, plant=self.plan.plant,
        )  # fmt: skip

    def stop(self) -> None:
        """Note that the user ends the check; the engine still has to be stopped."""
        self.is_stopped = True

    def pause(self, paused_s: float) -> None:
        """Note that the PC slept, or the program was stopped, until now.

        A sleep may end the engine's use of its card and empty the video memory, so nothing of it is
        the card's fault: the engine has to be abandoned, and the next request runs the stage again.
        """
        if self.is_over or self._is_paused:
            return
        self._is_paused = True
        if len(self.pauses) < MOST_PAUSES:
            self.pauses = (*self.pauses, Pause(after_s=self.elapsed_s, paused_s=paused_s))
        track = self.present
        self._before_s, self._round_at_s = self.elapsed_s, 0.0
        if track is None:
            return
        verdict = self._verdict_if_cut(track)
        if verdict == "partial":
            track.verdict = "passed" if self._rounds_done else None
        else:
            track.verdict = verdict
        track.errors, track.round_errors = track.total_errors, 0
        track.state, track.doing, track.fraction = "waiting", "", 0.0

    def give_up(self) -> None:
        """Note that the engine was silent for too long; it still has to be abandoned."""
        self._is_silent = True

    def apply(self, event: Event) -> None:
        """Take an event of the engine."""
        if self._is_paused:
            return  # of the engine before the pause
        match event:
            case CheckStarted():
                fingerprint = event.fingerprint
                if is_cpu(fingerprint):  # each PC has one
                    fingerprint = address_at(pc_of(self.plan.device), fingerprint)
                if "" not in (self.fingerprint, fingerprint) and fingerprint != self.fingerprint:
                    self._begin_anew()
                self.device, self.fingerprint = event.device, fingerprint
            case CheckStageBegan():
                self._has_begun = True
                track = self._track(event.stage)
                track.state, track.fraction, track.round_errors = "running", 0.0, 0
                self._begin_span(event.stage)
                track.budget_s = event.budget_s
            case CheckProgressed():
                self._progress(event)
            case CheckVitalsRead():
                self._read(event)
            case CheckFindingMade():
                self._find(event.finding)
            case CheckStageFinished():
                self._finish_stage(event)
            case CheckRoundFinished():
                self._end_round(is_stopped=event.is_stopped)
            case RequestFailed() | EngineEnded():
                self._lose(event)

    def finished(self) -> CheckFinished:
        """Return the end of the check."""
        record = self.record()
        return CheckFinished(
            device=self.plan.device, verdict=record.verdict, stages=record.stages,
            planted=self.plan.plant, next_action=record.next_action,
        )  # fmt: skip

    @property
    def readings(self) -> tuple[Telemetry, ...]:
        """The sensors as a record has them; to thin those of a night takes a while."""
        if self._readings is None:
            self._readings = recorded(self.vitals)
        return self._readings

    def record(self) -> CheckRecord:
        """Return the record of the check so far."""
        figures = self._figures
        if not has_moved(self.vitals):
            figures["highest_hotspot_c"] = None
        return CheckRecord(
            device=self.device or self._known or self._unknown,
            started_at=self.started_at,
            minutes=self.plan.minutes,
            seconds=self.elapsed_s,
            rounds=self._rounds_done,
            stages=self.outcomes(),
            findings=tuple(self.findings),
            planted=self.plan.plant,
            is_stopped=self.is_stopped,
            failed_before=self.earlier is not None and self.earlier.verdict == "failed",
            readings=self.readings,
            spans=tuple(self.spans),
            program=self._program,
            **figures,
        )  # fmt: skip

    def outcomes(self) -> tuple[StageOutcome, ...]:
        """Return each chosen stage's outcome so far; a running stage counts as partial."""
        return tuple(self._outcome(track) for track in self.stages)

    def state(self) -> CheckState:
        """Return what an interrupted check needs to continue."""
        return CheckState(
            plan=self.plan,
            check_id=self.check_id,
            started_at=self.started_at,
            round=self.round,
            finished=tuple(track.name for track in self.stages if track.state == "finished"),
            stages=self.outcomes(),
            findings=tuple(self.findings),
            elapsed_s=self.elapsed_s,
            device=self.device,
            fingerprint=self.fingerprint,
            readings=self.readings,
            spans=tuple(self.spans),
            rounds_done=self._rounds_done,
            **self._figures,
        )

    @property
    def _figures(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in CheckFigures.__struct_fields__}

    @property
    def _unknown(self) -> CheckedDevice:
        return CheckedDevice(address=self.plan.device, name=self.plan.device)

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
            seconds=track.seconds, heat=track.heat,
        )  # fmt: skip

    def _verdict_if_cut(self, track: StageTrack) -> CheckVerdict:
        """Return the verdict of a stage that goes no further, with that of the rounds before."""
        found = [one for one in self.findings if one.stage == track.name]
        now = stage_verdict(found, has_tested=bool(track.tested), is_complete=False)
        return _joined(track.verdict, now)

    def _begin_anew(self) -> None:
        """Forget the results so far: another card has taken the place of the one before."""
        self._forget_results()
        sentence = "Another card is in this place than before the interruption: its check is new."
        self.findings = [
            CheckFinding(
                kind="could_not_run", severity="note", stage=self.stages[0].name, sentence=sentence
            )
        ]

    def _progress(self, event: CheckProgressed) -> None:
        track = self._track(event.stage)
        track.fraction, track.doing = event.fraction, event.doing
        track.tested, track.round_errors = event.tested, event.errors
        self._cover(event.coverage)
        self._move_to(event.elapsed_s)

    def _read(self, event: CheckVitalsRead) -> None:
        vitals = event.vitals
        self.vitals.append(vitals.at(self._before_s + event.elapsed_s))
        self._readings = None
        self._move_to(event.elapsed_s)
        for name in ("temperature_c", "power_w", "hotspot_c", "memory_temperature_c"):
            highest = _highest(getattr(self, f"highest_{name}"), getattr(vitals, name))
            setattr(self, f"highest_{name}", highest)
        self.largest_hotspot_gap_c = _highest(self.largest_hotspot_gap_c, steady_gap_c(self.vitals))
        present = self.present
        # At any other time, the card may rest, and its clock says nothing.
        if present is None or present.name != "load" or vitals.sm_clock_mhz is None:
            return
        if present.fraction * present.budget_s >= _CLOCKS_SETTLE_S:
            lowest = self.lowest_clock_mhz
            clock = vitals.sm_clock_mhz
            self.lowest_clock_mhz = clock if lowest is None else min(lowest, clock)

    def _find(self, finding: CheckFinding) -> None:
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding)
        track = self._track(finding.stage)
        if finding.severity == "error":
            track.round_errors = max(track.round_errors, finding.count)

    def _finish_stage(self, event: CheckStageFinished) -> None:
        track = self._track(event.stage)
        track.verdict = _joined(track.verdict, event.verdict)
        track.tested, track.doing = event.tested, ""
        track.errors, track.round_errors = track.errors + event.errors, 0
        track.seconds += event.seconds
        if self.spans:
            self._move_to(self.spans[-1].start_s - self._before_s + event.seconds)
        track.state, track.fraction = "finished", 1.0
        self._cover(event.coverage)
        if event.heat is not None:
            track.heat = joined_heat(track.heat, self._since_start(event.heat))
        self.load_steps = joined_steps(self.load_steps, event.steps)
        self.memory_rates = joined_rates(self.memory_rates, event.memory_rates)
        if track.name == SPARE_TIME_OF:
            self._pass_on(max(0.0, track.budget_s - event.seconds))

    def _since_start(self, heat: StageHeat) -> StageHeat:
        """Return heat with its time since the start of the check instead of the round."""
        if heat.hottest_at_s is None:
            return heat
        return msgspec.structs.replace(heat, hottest_at_s=self._before_s + heat.hottest_at_s)

    def _pass_on(self, spare_s: float) -> None:
        """Count the time that one stage leaves to another one, as the engine does."""
        for track in self.stages:
            if track.name == SPARE_TIME_TO and track.state == "waiting":
                track.budget_s += spare_s

    def _begin_span(self, name: StageName) -> None:
        if len(self.spans) < MOST_SPANS:
            now_s = self.elapsed_s
            self.spans.append(StageSpan(name=name, round=self.round, start_s=now_s, end_s=now_s))

    def _move_to(self, round_at_s: float) -> None:
        """Note how long the round has run so far, and with it the present stage."""
        self._round_at_s = max(self._round_at_s, round_at_s)
        if self.spans and self.present is not None:
            self.spans[-1] = msgspec.structs.replace(self.spans[-1], end_s=self.elapsed_s)

    def _cover(self, coverage: MemoryCoverage | None) -> None:
        """Note what was tested of the memory; a chunk that was bad in one round stays bad."""
        if coverage is None:
            return
        before = self.coverage.bad_chunks if self.coverage is not None else ()
        bad = sorted({*before, *coverage.bad_chunks})[:MOST_CHUNKS]
        self.coverage = msgspec.structs.replace(coverage, bad_chunks=tuple(bad))

    def _end_round(self, *, is_stopped: bool) -> None:
        self._before_s, self._round_at_s = self.elapsed_s, 0.0
        if is_stopped:
            self.is_stopped = self.is_over = True
        elif all(track.state == "finished" for track in self.stages):
            self._rounds_done += 1

    def _lose(self, event: RequestFailed | EngineEnded) -> None:
        """Turn the end of the engine into the result of the stage that was running."""
        track = self.present or next(
            (one for one in self.stages if one.state == "waiting"), self.stages[-1]
        )
        if not (self.is_stopped and isinstance(event, EngineEnded)):
            finding = loss_finding(
                event, track.name, self.elapsed_s, is_silent=self._is_silent, step=track.doing,
                address=self.plan.device, has_begun=bool(self.spans),
            )  # fmt: skip
            errors = track.round_errors + finding.count
            self._find(finding)
            track.round_errors = errors
        track.verdict = self._verdict_if_cut(track)
        track.seconds += track.fraction * track.budget_s
        track.errors, track.round_errors = track.total_errors, 0
        track.state, track.doing = "finished", ""
        self._before_s, self._round_at_s = self.elapsed_s, 0.0
        self.is_over = True


def _today(name: StageName) -> StageName:
    """Return the stage of which one of an older version is a part today."""
    return _PARTS.get(name, name)


def _joined(before: CheckVerdict | None, now: CheckVerdict) -> CheckVerdict:
    return now if before is None else worse(before, now)


def _highest(before: float | None, now: float | None) -> float | None:
    if before is None or now is None:
        return now if before is None else before
    return max(before, now)
