"""A round of a check: the stages one after the other, as events."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
import torch

from gpu_studio.core.check.check_record import checked_card, ecc_text, fingerprint_of
from gpu_studio.core.check.check_verdict import failure_finding, stage_verdict
from gpu_studio.core.check.stages import SPARE_TIME_OF, SPARE_TIME_TO, in_order, stage_budget_s
from gpu_studio.core.device_name import CPU, is_cpu
from gpu_studio.core.devices.devices import uuid_tail
from gpu_studio.core.devices.finding import untested_sentence
from gpu_studio.core.messages.check_messages import (
    CheckedDevice,
    CheckFinding,
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
from gpu_studio.core.telemetry import CHECKED, Telemetry
from gpu_studio.engine.check.compute import Compute
from gpu_studio.engine.check.heat import HeatWatch
from gpu_studio.engine.check.layouts import Layouts
from gpu_studio.engine.check.link import LinkCheck
from gpu_studio.engine.check.load import Load
from gpu_studio.engine.check.planting import Plant
from gpu_studio.engine.check.stage import Stage, StageBench, Step
from gpu_studio.engine.check.video_memory import VideoMemory
from gpu_studio.engine.device import (
    accelerator_of,
    card_name,
    prove_kernels,
    resolve,
    total_bytes,
    uuid_of,
)
from gpu_studio.engine.faults import failure_of
from gpu_studio.engine.torch_cards import torch_card

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Generator, Iterator

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.message import Event
    from gpu_studio.engine.sensor import Sensor

_LEAST_SHARE = 0.5
_PROGRESS_EVERY_S, _NEXT_STEP_EVERY_S = 0.2, 0.05


class CheckRound:
    """Answers one `RunCheck`.

    Args:
        request: the round.
        stop: set by any thread to end it between two steps.
        sensor: reads the card; None if there is no sensor.
        cpu_name: the name of this PC's CPU.
        clock: the seconds of a clock that never goes back.

    Attributes:
        heat: follows the sensors from stage to stage.
    """

    def __init__(
        self,
        request: RunCheck,
        stop: threading.Event,
        *,
        sensor: Sensor | None = None,
        cpu_name: str = "CPU",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.request = request
        self._stop = stop
        self._sensor = sensor
        self._cpu_name = cpu_name
        self._clock = clock
        self._begun_s = clock()
        self._plant = Plant(request.plant)
        self._facts: CheckedDevice | None = None
        self._uuid: str | None = None
        self.heat = HeatWatch()
        self._spare_s = 0.0

    def events(self) -> Iterator[Event]:
        """Yield the events of the round.

        Raises:
            Exception: the card or PyTorch failed so that no other stage can run.
        """
        request = self.request
        device = resolve(request.device)
        accelerator_of(device).use(device)
        self._uuid = uuid_of(device)
        self._facts = self._checked_device(device)
        yield CheckStarted(
            check_id=request.check_id, round=request.round, device=self._facts,
            fingerprint=fingerprint_of(self._uuid),
        )  # fmt: skip
        prove_kernels(device)  # after it: a card without code has a record, too
        for name in in_order(request.stages):
            if self._stop.is_set():
                break
            yield from self._stage(name, device)
        yield CheckRoundFinished(
            check_id=request.check_id, round=request.round, is_stopped=self._stop.is_set()
        )

    def _stage(self, name: StageName, device: torch.device) -> Iterator[Event]:
        request = self.request
        budget_s = stage_budget_s(name, request.budget_s)
        if name == SPARE_TIME_TO:
            # Other programs may have made the stages before it late.
            budget_s = max(budget_s + self._spare_s, _LEAST_SHARE * budget_s)
        yield CheckStageBegan(
            check_id=request.check_id, round=request.round, stage=name, budget_s=budget_s
        )
        bench = StageBench(
            name, device, budget_s, plant=self._plant, stop=self._stop, read=self._read,
            clock=self._clock, seed=request.round, facts=self._facts, offset_s=self.elapsed_s,
        )  # fmt: skip
        events = _StageEvents(self, name, bench)
        steps = _stages()[name].run(bench)
        failure: Failure | None = None
        try:
            yield from events.follow(steps)
        except Exception as error:
            failure = failure_of(error)
            if failure.fatal:
                yield events.progress()  # it names the step that failed
                raise
        # Outside the except block, the error and the tensors in its frames are gone.
        if failure is not None:
            bench.findings.append(failure_finding(failure, name, bench.elapsed_s, request.device))
            accelerator_of(device).empty_cache()
        left_s = budget_s - bench.elapsed_s
        if name == SPARE_TIME_OF or left_s < 0:
            self._spare_s += left_s
        yield from events.end()

    @property
    def elapsed_s(self) -> float:
        """The seconds since the start of the round."""
        return self._clock() - self._begun_s

    def _read(self) -> Telemetry | None:
        identity = self._identity
        return self._sensor.read(identity, CHECKED) if self._sensor and identity else None

    @property
    def _identity(self) -> str | None:
        return CPU if is_cpu(self.request.device) else self._uuid

    def _checked_device(self, device: torch.device) -> CheckedDevice:
        identity = self._identity
        known = self._sensor.device(identity) if self._sensor and identity else None
        if known is not None:
            known = msgspec.structs.replace(known, telemetry=self._read() or Telemetry())
        checked = checked_device(device, self.request.device, known, self._cpu_name)
        return msgspec.structs.replace(checked, uuid_tail=uuid_tail(self._uuid))


class _StageEvents:
    """A stage's steps, findings and readings as events."""

    def __init__(self, round_: CheckRound, name: StageName, bench: StageBench) -> None:
        self._round = round_
        self._name = name
        self._bench = bench
        self._offset_s = round_.elapsed_s
        self._findings_sent = 0
        self._readings_sent = 0
        self._step = Step(doing="", tested="")
        self._progress_s: float | None = None
        self._doing_sent = ""
        self._is_whole = False

    def follow(self, steps: Generator[Step, None, bool]) -> Iterator[Event]:
        """Yield the events of a stage until it ends."""
        while True:
            try:
                self._step = next(steps)
            except StopIteration as end:
                self._is_whole = bool(end.value)
                return
            yield from self._new_events()
            now_s = self._bench.elapsed_s
            is_next = self._step.doing != self._doing_sent
            every_s = _NEXT_STEP_EVERY_S if is_next else _PROGRESS_EVERY_S
            if self._progress_s is None or now_s - self._progress_s >= every_s:
                self._progress_s, self._doing_sent = now_s, self._step.doing
                yield self.progress()

    def end(self) -> Iterator[Event]:
        """Yield the last events of the stage."""
        heat = self._round.heat.end_stage(self._bench)
        yield from self._new_events()
        bench, request = self._bench, self._round.request
        tested = self._step.tested
        coverage = self._step.coverage
        yield CheckStageFinished(
            check_id=request.check_id, round=request.round, stage=self._name,
            verdict=stage_verdict(
                bench.findings, has_tested=bool(tested), is_complete=self._is_whole
            ),
            tested=tested, errors=max(bench.errors, _errors(bench.findings)),
            seconds=bench.elapsed_s, coverage=coverage, heat=heat, steps=bench.load_steps,
            memory_rates=bench.memory_rates,
        )  # fmt: skip

    def _new_events(self) -> Iterator[Event]:
        bench, check_id = self._bench, self._round.request.check_id
        for one in bench.readings[self._readings_sent :]:
            yield CheckVitalsRead(
                check_id=check_id, elapsed_s=self._offset_s + one.at_s, vitals=one
            )
        self._readings_sent = len(bench.readings)
        for found in bench.findings[self._findings_sent :]:
            finding = msgspec.structs.replace(found, at_s=self._offset_s + found.at_s)
            yield CheckFindingMade(check_id=check_id, finding=finding)
        self._findings_sent = len(bench.findings)

    def progress(self) -> CheckProgressed:
        """Return the present step as an event."""
        bench = self._bench
        share = bench.elapsed_s / bench.budget_s if bench.budget_s else 1.0
        return CheckProgressed(
            check_id=self._round.request.check_id, stage=self._name, fraction=min(share, 1.0),
            doing=self._step.doing, tested=self._step.tested, errors=bench.errors,
            elapsed_s=self._round.elapsed_s, coverage=self._step.coverage,
        )  # fmt: skip


def checked_device(
    device: torch.device, address: str, known: Device | None, cpu_name: str
) -> CheckedDevice:
    """Return the device of a check: its driver's facts, and PyTorch's where there are none."""
    if is_cpu(device.type):
        return CheckedDevice(
            address=address, name=cpu_name, torch_version=str(torch.__version__),
            slowdown_c=known.slowdown_c if known else None,
            is_laptop=known is not None and known.is_laptop,
            memory_total_bytes=total_bytes(device),
            ecc="The program cannot read whether this PC's RAM has ECC.",
        )  # fmt: skip
    capability = accelerator_of(device).capability(device)
    if known is None:
        facts = CheckedDevice(address=address, name=card_name(device))
    else:
        facts = checked_card(known, address, torch_card(device.index or 0))
    return msgspec.structs.replace(
        facts,
        ecc=ecc_text(known) if known is not None and known.is_cudas else "",
        torch_version=str(torch.__version__),
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        memory_total_bytes=facts.memory_total_bytes or total_bytes(device),
        untested=untested_sentence(accelerator_of(device).maker),
    )


def _stages() -> dict[StageName, Stage]:
    stages: tuple[Stage, ...] = (Load(), Compute(), Layouts(), VideoMemory(), LinkCheck())
    return {stage.name: stage for stage in stages}


def _errors(findings: list[CheckFinding]) -> int:
    return sum(finding.count for finding in findings if finding.severity == "error")
