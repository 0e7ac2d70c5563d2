"""A round of a check: the stages one after the other, as events."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

import msgspec
import torch

from gpu_studio.core.check.check_record import loss_finding, stage_verdict
from gpu_studio.core.check.stages import SPARE_TIME_OF, SPARE_TIME_TO, in_order, stage_budget_s
from gpu_studio.core.device_name import CPU, is_cpu
from gpu_studio.core.devices.card_identity import identity_of
from gpu_studio.core.devices.cards import known_card, silicon_text
from gpu_studio.core.devices.devices import uuid_tail
from gpu_studio.core.devices.finding import untested_sentence
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
from gpu_studio.core.units import format_count
from gpu_studio.engine.check.compute import compute
from gpu_studio.engine.check.heat import HeatWatch
from gpu_studio.engine.check.layouts import layouts
from gpu_studio.engine.check.link import link
from gpu_studio.engine.check.load import load
from gpu_studio.engine.check.memory import memory
from gpu_studio.engine.check.stage_run import StageRun
from gpu_studio.engine.device import (
    accelerator_of,
    card_name,
    prove_kernels,
    resolve,
    torch_card,
    total_bytes,
    uuid_of,
)
from gpu_studio.engine.faults import failure_of

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Generator, Iterator

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.engine_messages import TorchCard
    from gpu_studio.core.messages.message import Event
    from gpu_studio.engine.sensor import Sensor

_LEAST_SHARE = 0.5
_FINGERPRINT_DIGITS = 16
_PROGRESS_EVERY_S = 0.1


STAGES: dict[StageName, Callable[[StageRun], Generator[str, None, bool]]] = {
    "load": load, "compute": compute, "layouts": layouts, "memory": memory, "link": link,
}  # fmt: skip


class CheckRound:
    """Answers one `RunCheck`.

    Args:
        request: the round.
        stop: set by any thread to end it between two steps.
        sensor: reads the card; None if there is no sensor.
        cpu_name: the name of this PC's CPU.
        clock: the seconds of a clock that never goes back.
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
            Exception: the card or PyTorch failed so that no other stage can run.
        """
        request = self._request
        device = resolve(request.device)
        accelerator_of(device).use(device)
        self._uuid = uuid_of(device)
        self._facts = self._checked_device(device)
        yield CheckStarted(device=self._facts, fingerprint=fingerprint_of(self._uuid))
        prove_kernels(device)  # after it: a card without code has a record, too
        for name in in_order(request.stages):
            if self._stop.is_set():
                break
            yield from self._stage(name, device)
        yield CheckRoundFinished(is_stopped=self._stop.is_set())

    def _stage(self, name: StageName, device: torch.device) -> Iterator[Event]:
        request = self._request
        planned_s = stage_budget_s(name, request.round_s)
        if name == SPARE_TIME_TO:
            # Other programs may have made the stages before it late.
            planned_s = max(planned_s + self._spare_s, _LEAST_SHARE * planned_s)
        yield CheckStageBegan(stage=name, planned_s=planned_s)
        run = StageRun(
            name, device, planned_s, plant_kind=request.plant, stop=self._stop, read=self._read,
            clock=self._clock, seed=request.round, facts=self._facts, offset_s=self._elapsed_s,
        )  # fmt: skip
        self._doing, self._readings_sent, self._findings_sent = "", 0, 0
        is_whole = False
        failure: Failure | None = None
        try:
            is_whole = yield from self._follow(run)
        except Exception as error:
            failure = failure_of(error)
            if failure.fatal:
                yield self._progress(run)  # it names the step that failed
                raise
        # Outside the except block, the error and the tensors in its frames are gone.
        if failure is not None:
            ended = RequestFailed(failure=failure)
            run.findings.append(loss_finding(ended, name, address=request.device))
            accelerator_of(device).empty_cache()
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
        steps, told_s = STAGES[run.stage](run), -_PROGRESS_EVERY_S
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
        return CPU if is_cpu(self._request.device) else self._uuid

    def _checked_device(self, device: torch.device) -> CheckedDevice:
        identity = self._identity
        known = self._sensor.device(identity) if self._sensor and identity else None
        if known is not None:
            known = msgspec.structs.replace(known, telemetry=self._read() or Telemetry())
        checked = checked_device(device, self._request.device, known, self._cpu_name)
        return msgspec.structs.replace(checked, uuid_tail=uuid_tail(self._uuid))


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


def fingerprint_of(uuid: str | None) -> str:
    """Return a name for this copy of a card that cannot be turned back into its UUID.

    Args:
        uuid: PyTorch's name of the card; None for the CPU.
    """
    if uuid is None:
        return CPU
    return hashlib.sha256(uuid.encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def checked_card(card: Device, address: str, torch_card: TorchCard | None = None) -> CheckedDevice:
    """Return the facts of a card that the driver and its name have.

    Args:
        card: the card.
        address: PyTorch's name for it.
        torch_card: as for `identity_of`.
    """
    identity, known = identity_of(card, torch_card), known_card(card.name)
    return CheckedDevice(
        address=address,
        name=card.name,
        silicon=silicon_text(card),
        contradiction=identity.contradiction,
        agreement=identity.agreement,
        vbios=card.vbios,
        compute_capability=card.compute_capability,
        memory_total_bytes=card.memory_total_bytes,
        driver_version=card.driver_version,
        power_limit_w=card.telemetry.power_limit_w,
        shutdown_c=card.shutdown_c,
        slowdown_c=card.slowdown_c,
        operating_max_c=card.operating_max_c,
        base_clock_mhz=card.sm_clock_base_mhz or (known.base_clock_mhz if known else None),
    )


def ecc_text(card: Device) -> str:
    """Return what one of NVIDIA's cards says of its memory's error correction, as sentences."""
    if card.ecc_enabled is None:
        text = "The card reports no ECC memory. GeForce cards usually have none."
    else:
        text = f"The memory has ECC, and it is {'on' if card.ecc_enabled else 'off'}."
    rows = card.telemetry.remapped_rows
    return text if rows is None else f"{text} Rows of it replaced so far: {format_count(rows)}."
