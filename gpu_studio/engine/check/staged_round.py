"""A round of a check: the stages one after the other, as events. No PyTorch here."""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from gpu_studio.core.check.check_record import loss_finding, stage_verdict
from gpu_studio.core.check.stages import SPARE_TIME_OF, SPARE_TIME_TO, in_order, stage_budget_s
from gpu_studio.core.device_name import CPU
from gpu_studio.core.messages.check_messages import (
    CheckedDevice,
    CheckFindingMade,
    CheckProgressed,
    CheckRoundFinished,
    CheckStageBegan,
    CheckStageFinished,
    CheckStarted,
    CheckVitalsRead,
    RunCheck,
    StageName,
)
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.telemetry import CHECKED, Telemetry
from gpu_studio.engine.check.heat import HeatWatch
from gpu_studio.engine.check.stage_run import StageRun

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Generator, Iterator, Mapping

    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.message import Event
    from gpu_studio.engine.sensor import Sensor

    Stage = Callable[[Any], Generator[str, None, bool]]

_LEAST_SHARE = 0.5
_FINGERPRINT_DIGITS = 16
_PROGRESS_EVERY_S = 0.1


class StagedRound(ABC):
    """Answers one `RunCheck`; a subclass knows the device and its stages.

    Args:
        request: the round.
        stop: set by any thread to end it between two steps.
        sensor: reads the card; None if there is no sensor.
        cpu_name: the name of this PC's CPU.
        clock: the seconds of a clock that never goes back.
    """

    stages: ClassVar[Mapping[StageName, Stage]]

    def __init__(
        self,
        request: RunCheck,
        stop: threading.Event,
        *,
        sensor: Sensor | None = None,
        cpu_name: str = "CPU",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._request = request
        self._stop = stop
        self._sensor = sensor
        self._cpu_name = cpu_name
        self._clock = clock
        self._begun_s = clock()
        self._facts: CheckedDevice | None = None
        self._uuid: str | None = None
        self._heat = HeatWatch()
        self._spare_s = 0.0
        self._doing = ""
        self._readings_sent = self._findings_sent = 0  # of the present stage

    def events(self) -> Iterator[Event]:
        """Yield the events of the round.

        Raises:
            Exception: the device failed so that no other stage can run.
        """
        request = self._request
        self._facts = self._opened()
        yield CheckStarted(device=self._facts, fingerprint=fingerprint_of(self._uuid))
        self._prove()  # after it: a card without code has a record, too
        for name in in_order(request.stages):
            if self._stop.is_set():
                break
            yield from self._stage(name)
        yield CheckRoundFinished(is_stopped=self._stop.is_set())

    def _stage(self, name: StageName) -> Iterator[Event]:
        request = self._request
        planned_s = stage_budget_s(name, request.round_s)
        if name == SPARE_TIME_TO:
            # Other programs may have made the stages before it late.
            planned_s = max(planned_s + self._spare_s, _LEAST_SHARE * planned_s)
        yield CheckStageBegan(stage=name, planned_s=planned_s)
        run = self._new_run(name, planned_s)
        self._doing, self._readings_sent, self._findings_sent = "", 0, 0
        is_whole = False
        failure: Failure | None = None
        try:
            is_whole = yield from self._follow(run)
        except Exception as error:
            failure = self._failure_of(error)
            if failure.fatal:
                yield self._progress(run)  # it names the step that failed
                raise
        # Outside the except block, the error and the tensors in its frames are gone.
        if failure is not None:
            ended = RequestFailed(failure=failure)
            run.findings.append(loss_finding(ended, name, address=request.device))
            self._recover()
        left_s = planned_s - run.elapsed_s
        if name == SPARE_TIME_OF or left_s < 0:
            self._spare_s += left_s
        self._heat.end_stage(run)
        yield from self._news(run)
        errors = sum(found.count for found in run.findings if found.severity == "error")
        yield CheckStageFinished(
            stage=name, verdict=stage_verdict(
                run.findings, has_tested=bool(run.tested), is_complete=is_whole
            ),
            tested=run.tested, errors=max(run.errors, errors), seconds=run.elapsed_s,
            coverage=run.coverage,
        )  # fmt: skip

    def _follow(self, run: StageRun) -> Generator[Event, None, bool]:
        """Yield the events of a stage until it ends; return whether it tested everything."""
        steps, told_s = self.stages[run.stage](run), -_PROGRESS_EVERY_S
        while True:
            try:
                self._doing = next(steps)
            except StopIteration as end:
                return bool(end.value)
            run.vitals()
            yield from self._news(run)
            if run.elapsed_s >= told_s + _PROGRESS_EVERY_S:
                told_s = run.elapsed_s
                yield self._progress(run)

    def _news(self, run: StageRun) -> Iterator[Event]:
        """Yield the readings and findings that were not told yet."""
        for one in run.readings[self._readings_sent :]:
            at_s = run.offset_s + one.at_s
            yield CheckVitalsRead(elapsed_s=at_s, vitals=one)
        for found in run.findings[self._findings_sent :]:
            yield CheckFindingMade(finding=found)
        self._readings_sent, self._findings_sent = len(run.readings), len(run.findings)

    def _progress(self, run: StageRun) -> CheckProgressed:
        share = run.elapsed_s / run.planned_s if run.planned_s else 1.0
        return CheckProgressed(
            stage=run.stage, fraction=min(share, 1.0),
            doing=self._doing, tested=run.tested, errors=run.errors, elapsed_s=self._elapsed_s,
            coverage=run.coverage,
        )  # fmt: skip

    @property
    def _elapsed_s(self) -> float:
        return self._clock() - self._begun_s

    def _read(self) -> Telemetry | None:
        identity = self._identity
        return self._sensor.read(identity, CHECKED) if self._sensor and identity else None

    @property
    def _identity(self) -> str | None:
        return self._uuid

    @abstractmethod
    def _opened(self) -> CheckedDevice:
        """Make the device ready, and return its facts."""

    def _prove(self) -> None:  # noqa: B027 - the device may have proved it already
        """Raise if the device can run nothing of this program."""

    @abstractmethod
    def _failure_of(self, error: Exception) -> Failure:
        """Return what an error in a stage means."""

    def _recover(self) -> None:  # noqa: B027 - most leave nothing
        """Free what a stage that failed has left."""

    @property
    @abstractmethod
    def _target(self) -> Any:
        """What the stages work on."""

    def _new_run(self, name: StageName, planned_s: float) -> StageRun:
        request = self._request
        return StageRun(
            name, self._target, planned_s, plant_kind=request.plant, stop=self._stop,
            read=self._read, clock=self._clock, seed=request.round, facts=self._facts,
            offset_s=self._elapsed_s,
        )  # fmt: skip


def fingerprint_of(uuid: str | None) -> str:
    """Return a name for this copy of a card that cannot be turned back into its UUID.

    Args:
        uuid: PyTorch's name of the card; None for the CPU.
    """
    if uuid is None:
        return CPU
    return hashlib.sha256(uuid.encode()).hexdigest()[:_FINGERPRINT_DIGITS]
