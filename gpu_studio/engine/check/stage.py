"""The interface of a check's stage, and what it works with."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np
import torch

from gpu_studio.core.check.thresholds import HIGHEST_C, LOWEST_C, OVERTIME_S
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.messages.check_messages import (
    CheckedDevice,
    CheckFinding,
    FindingKind,
    LoadStep,
    MemoryCoverage,
    MemoryRates,
    Severity,
    StageName,
    WrongBits,
)
from gpu_studio.engine.check.planting import Plant
from gpu_studio.engine.device import accelerator_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from gpu_studio.core.telemetry import Telemetry

_VITALS_EVERY_S = 1.0
_MOST_OF_A_KIND = 5
_TF32_FROM = (8, 0)
# On Windows, the time of a process ticks in 15.6 ms, and the clock that never goes back as well.
_HAS_PROCESS_TIME = sys.platform != "win32"
_SHORT_REST_S = 0.05


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage does next, and what it has tested so far, in words.

    If the device is lost, ``doing`` is where it was: it comes before the work that it names.
    """

    doing: str
    tested: str
    coverage: MemoryCoverage | None = None


class Stage(Protocol):
    """One stage of a check: a file in this folder."""

    name: StageName

    def run(self, bench: StageBench) -> Generator[Step, None, bool]:
        """Yield at least one step per second; return whether everything was tested.

        It reports findings to the bench, looks at `StageBench.is_over` between two steps, and
        leaves nothing on the device.
        """


class StageBench:
    """What a stage works with: the device, the time, the sensors, and the fault to make.

    Args:
        stage: the stage.
        device: the device to check.
        budget_s: the time for the stage.
        plant: the fault to make on purpose.
        stop: set by any thread to end the stage between two steps.
        read: reads the card's sensors; None if there are none.
        clock: the seconds of a clock that never goes back.
        work_clock: the seconds of the device's work: for the CPU, of the time that this process
            really ran, so that other programs make no step slow; not on Windows.
        rest: waits for some seconds, or until the stop.
        seed: different in each round, so that no round repeats another one's numbers.
        facts: of the device; None if they are unknown.
        offset_s: the seconds of the round before this stage.

    Attributes:
        readings: of the sensors, each with the seconds since the stage began.
        unread: when the sensors gave no answer, likewise.
        is_steady: whether the load ended because the temperature did not change any more; None in
            any other stage, and if there is no temperature.
        pause: when a pause began and ended, in seconds since the stage began; None without one.
        part_load: likewise, when bursts with rests between them did.
        load_steps: the table of the load in steps.
        memory_rates: the speed of the memory, first and when hot; None if it was not measured.
    """

    def __init__(
        self,
        stage: StageName,
        device: torch.device,
        budget_s: float,
        *,
        plant: Plant | None = None,
        stop: threading.Event | None = None,
        read: Callable[[], Telemetry | None] = lambda: None,
        clock: Callable[[], float] = time.perf_counter,
        work_clock: Callable[[], float] | None = None,
        rest: Callable[[float], None] | None = None,
        seed: int = 0,
        facts: CheckedDevice | None = None,
        offset_s: float = 0.0,
    ) -> None:
        self.stage = stage
        self.device = device
        self.budget_s = budget_s
        self.plant = plant or Plant()
        self.seed = seed
        self.facts = facts
        self.errors = 0
        self.findings: list[CheckFinding] = []
        self.readings: list[Telemetry] = []
        self.unread: list[float] = []
        self.offset_s = offset_s
        self.is_steady: bool | None = None
        self.pause: tuple[float, float] | None = None
        self.part_load: tuple[float, float] | None = None
        self.load_steps: tuple[LoadStep, ...] = ()
        self.memory_rates: MemoryRates | None = None
        self._stop = stop or threading.Event()
        self._read = read
        self._clock = clock
        has_own = is_cpu(device.type) and _HAS_PROCESS_TIME
        self._work_clock = work_clock or (time.process_time if has_own else clock)
        self._rest = rest
        self._synchronize = accelerator_of(device).synchronize
        self._begun_s = clock()
        self._looked_s: float | None = None
        self._kinds: Counter[FindingKind] = Counter()
        self.generator = torch.Generator().manual_seed(seed)
        # PyTorch's own generator is under test where the CPU is.
        self.numbers = np.random.default_rng(seed)

    @property
    def is_stopped(self) -> bool:
        """Whether the user ended the check."""
        return self._stop.is_set()

    def is_over(self, *, has_tested_all: bool = True) -> bool:
        """Return whether the stage has to end: stopped, or its time is over.

        Args:
            has_tested_all: whether everything was tested once; if not, there is overtime.
        """
        overtime_s = 0.0 if has_tested_all else OVERTIME_S
        return self.is_stopped or self.elapsed_s >= self.budget_s + overtime_s

    @property
    def elapsed_s(self) -> float:
        """The seconds since the stage began."""
        return self._clock() - self._begun_s

    @property
    def base_clock_mhz(self) -> float | None:
        """The clock that the card is sold with; None if unknown."""
        return self.facts.base_clock_mhz if self.facts else None

    @property
    def is_card(self) -> bool:
        """Whether the device is a card."""
        return not is_cpu(self.device.type)

    @property
    def is_laptops_cpu(self) -> bool:
        """Whether it is the processor of a laptop, which is built to slow down in its heat."""
        return not self.is_card and bool(self.facts and self.facts.is_laptop)

    @property
    def has_tf32(self) -> bool:
        """Whether the device has tensor cores for TF32."""
        capability = accelerator_of(self.device).capability(self.device)
        return capability is not None and capability >= _TF32_FROM

    def timed(self, work: Callable[[], None], step: int) -> float:
        """Return the seconds that work takes on the device, until it is done.

        Args:
            work: may only launch it.
            step: the step's number, for a slow step made on purpose.
        """
        self.synchronize()
        begun_s = self._work_clock()
        work()
        self.synchronize()
        return self.plant.elapsed_s(self._work_clock() - begun_s, step)

    def synchronize(self) -> None:
        """Wait until the device has done its work."""
        self._synchronize(self.device)

    def vitals(self, *, at_once: bool = False) -> Telemetry | None:
        """Return a reading of the sensors once a second; None if it is not time for one.

        Args:
            at_once: read now, even if the last reading is younger.
        """
        now_s = self.elapsed_s
        looked_s = self._looked_s
        if looked_s is not None and now_s - looked_s < _VITALS_EVERY_S and not at_once:
            return None
        self._looked_s = now_s
        vitals = self.plant.sensed(self._read(), self.offset_s + now_s)
        if vitals is None:
            self.unread.append(now_s)
            return None
        vitals = _plausible(vitals)
        self.readings.append(vitals.at(now_s))
        return vitals

    def rise(self, first: Telemetry | None, count: Callable[[Telemetry], int | None]) -> int:
        """Return how far a counter rose since a first reading; 0 if there is no such counter."""
        before = None if first is None else count(first)
        known = [number for one in self.readings if (number := count(one)) is not None]
        return 0 if before is None or not known else max(0, known[-1] - before)

    def rest(self, seconds: float) -> None:
        """Let the device rest for a while, or until the stop."""
        if self._rest is not None:
            self._rest(seconds)
        elif seconds < _SHORT_REST_S:
            time.sleep(seconds)  # exact to a millisecond on Windows as well; a wait is not
        else:
            self._stop.wait(seconds)

    def report(
        self,
        kind: FindingKind,
        severity: Severity,
        sentence: str,
        *,
        count: int = 0,
        came_back: bool | None = None,
        bits: WrongBits | None = None,
    ) -> None:
        """Report a finding. All errors count, but only the first few of a kind are told."""
        if severity == "error":
            self.errors += max(count, 1)
        self._kinds[kind] += 1
        if self._kinds[kind] <= _MOST_OF_A_KIND:
            self.findings.append(
                CheckFinding(
                    kind=kind, severity=severity, stage=self.stage, sentence=sentence,
                    count=max(count, int(severity == "error")), at_s=self.elapsed_s,
                    came_back=came_back, bits=bits,
                )
            )  # fmt: skip


def _plausible(vitals: Telemetry) -> Telemetry:
    """Return a reading without a temperature that no device at work has: 0, 255."""
    degrees = vitals.temperature_c
    if degrees is None or LOWEST_C < degrees < HIGHEST_C:
        return vitals
    return msgspec.structs.replace(vitals, temperature_c=None)
