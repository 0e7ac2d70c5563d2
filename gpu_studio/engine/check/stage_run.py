"""One run of a stage: what the stage works with, what it finds, and the fault made on purpose."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from gpu_studio.core.check.stages import HIGHEST_C, LOWEST_C, OVERTIME_S
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.messages.check_messages import (
    CheckedDevice,
    CheckFinding,
    FindingKind,
    MemoryCoverage,
    PlantKind,
    Severity,
    StageName,
)
from gpu_studio.core.telemetry import ClockReason, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
    from numpy.typing import NDArray
    from torch import Tensor

    Words = NDArray[np.int64]


_VITALS_EVERY_S = 1.0
_MOST_OF_A_KIND = 5
_TF32_FROM = (8, 0)
_SHORT_REST_S = 0.05
_HOT_C, _FAR_TOO_HOT_C = 97.0, 105.0
_LATE_FROM_S, _LOW_MHZ = 13.0, 300.0
_SLOW_MEMORY = 1.25


@dataclass(eq=False)
class StageRun:
    """The device, the time, the sensors and the findings of a stage.

    A stage is a generator function: it yields, at least once a second and before the work that it
    names, what it does next in words, looks at `is_over` between two steps, leaves nothing on the
    device, and returns whether everything was tested.

    Attributes:
        plant_kind: the fault to make on purpose.
        stop: set by any thread to end the stage between two steps.
        read: reads the device's sensors; None if there are none.
        clock: the seconds of a clock that never goes back.
        seed: different in each round, so that no round repeats another one's numbers.
        offset_s: the seconds of the round before this stage.
        tested: what was tested so far, in words; empty if nothing was.
        readings: of the sensors, each with the seconds since the stage began.
        unread: when the sensors gave no answer, likewise.
        rested: when a rest, or bursts with rests, began and ended, likewise.
    """

    stage: StageName
    device: torch.device
    planned_s: float
    plant_kind: PlantKind | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    read: Callable[[], Telemetry | None] = lambda: None
    clock: Callable[[], float] = time.perf_counter
    seed: int = 0
    facts: CheckedDevice | None = None
    offset_s: float = 0.0

    def __post_init__(self) -> None:
        """Begin."""
        self.plant = Plant(self.plant_kind)
        self.tested = ""
        self.coverage: MemoryCoverage | None = None
        self.errors = 0
        self.findings: list[CheckFinding] = []
        self.readings: list[Telemetry] = []
        self.unread: list[float] = []
        self.rested: tuple[float, float] | None = None
        self._begun_s = self.clock()
        self._looked_s: float | None = None
        self._kinds: Counter[FindingKind] = Counter()
        # PyTorch's own generator is under test where the CPU is.
        self.numbers = np.random.default_rng(self.seed)

    @cached_property
    def generator(self) -> torch.Generator:
        """PyTorch's random numbers."""
        import torch

        return torch.Generator().manual_seed(self.seed)

    @property
    def is_stopped(self) -> bool:
        """Whether the user ended the check."""
        return self.stop.is_set()

    def is_over(self, *, has_tested_all: bool = True) -> bool:
        """Return whether the stage has to end; it has overtime until everything was tested once."""
        overtime_s = 0.0 if has_tested_all else OVERTIME_S
        return self.is_stopped or self.elapsed_s >= self.planned_s + overtime_s

    @property
    def elapsed_s(self) -> float:
        """The seconds since the stage began."""
        return self.clock() - self._begun_s

    @property
    def is_card(self) -> bool:
        """Whether the device is a card."""
        return not is_cpu(self.device.type)

    @property
    def last_c(self) -> float | None:
        """The last temperature that was reported, in °C."""
        known = [one.temperature_c for one in self.readings if one.temperature_c is not None]
        return known[-1] if known else None

    @property
    def subject(self) -> str:
        """The device in a sentence."""
        return "card" if self.is_card else "CPU"

    @property
    def has_tf32(self) -> bool:
        """Whether the device has tensor cores for TF32."""
        from gpu_studio.engine.device import accelerator_of

        capability = accelerator_of(self.device).capability(self.device)
        return capability is not None and capability >= _TF32_FROM

    def timed(self, work: Callable[[], None]) -> float:
        """Return the seconds of work on the device, until it is done; it may only launch it."""
        self.synchronize()
        begun_s = self.clock()
        work()
        self.synchronize()
        return self.clock() - begun_s

    def synchronize(self) -> None:
        """Wait until the device has done its work."""
        from gpu_studio.engine.device import accelerator_of

        accelerator_of(self.device).synchronize(self.device)

    def vitals(self, *, at_once: bool = False) -> Telemetry | None:
        """Return a reading of the sensors, once a second or ``at_once``; else None."""
        now_s = self.elapsed_s
        looked_s = self._looked_s
        if looked_s is not None and now_s - looked_s < _VITALS_EVERY_S and not at_once:
            return None
        self._looked_s = now_s
        vitals = self.plant.sensed(self.read(), self.offset_s + now_s)
        if vitals is None:
            self.unread.append(now_s)
            return None
        degrees = vitals.temperature_c
        if degrees is not None and not LOWEST_C < degrees < HIGHEST_C:  # no device at work has it
            vitals = msgspec.structs.replace(vitals, temperature_c=None)
        self.readings.append(vitals.at(now_s))
        return vitals

    def rise(self, counter: str) -> int:
        """Return how far a counter of the sensors rose in this stage; 0 without one."""
        every = [getattr(one, counter) for one in self.readings]
        known: list[int] = [number for number in every if number is not None]
        return max(0, known[-1] - known[0]) if known else 0

    def rest(self, seconds: float) -> None:
        """Let the device rest for a while, or until the stop."""
        if seconds < _SHORT_REST_S:
            time.sleep(seconds)  # exact to a millisecond on Windows as well; a wait is not
        else:
            self.stop.wait(seconds)

    def report(
        self,
        kind: FindingKind,
        severity: Severity,
        sentence: str,
        *,
        count: int = 0,
    ) -> None:
        """Report a finding. All errors count, but only the first few of a kind are told."""
        if severity == "error":
            self.errors += max(count, 1)
        self._kinds[kind] += 1
        if self._kinds[kind] <= _MOST_OF_A_KIND:
            self.findings.append(
                CheckFinding(
                    kind=kind, severity=severity, stage=self.stage, sentence=sentence,
                    count=max(count, int(severity == "error")),
                )
            )  # fmt: skip


class Plant:
    """Makes one kind of fault in what comes back from the device, or none."""

    def __init__(self, kind: PlantKind | None = None) -> None:
        self.kind = kind
        self._before: dict[object, Tensor | NDArray[Any]] = {}

    def corrupt(
        self, now: Tensor | NDArray[Any], key: object = None,
        before: Tensor | NDArray[Any] | None = None, *, after_rest: bool = False,
    ) -> None:  # fmt: skip
        """Change what came back, in place, by copies: they work where a card's kernels do not.

        Args:
            now: a contiguous tensor or array that came back from the device, or its memory.
            key: of work that is done again and again: its earlier result is the one ``before``.
            before: what was there before it, of the same shape; None the first time.
            after_rest: whether it is the first work after a rest.
        """
        if self.kind is None:
            return
        seen = now if isinstance(now, np.ndarray) else now.detach().cpu()
        if key is not None:
            copy = seen.copy() if isinstance(seen, np.ndarray) else seen.clone()
            before, self._before[key] = self._before.get(key), copy
        flat, old = _bytes_of(seen), None if before is None else _bytes_of(before)
        # A complex number of 16 bytes is two whole numbers.
        size = min(seen.itemsize, 8)
        count = len(flat) // size
        if self.kind == "bit" or (self.kind == "edge" and after_rest):
            flat[count // 3 * size] ^= 1 << 3
        elif self.kind == "stuck" and old is not None:
            flat[:] = old
        elif self.kind == "swap":
            part = max(1, count // 4) * size
            flat[:part], flat[-part:] = flat[-part:].copy(), flat[:part].copy()
        elif self.kind == "drop":
            lost = slice(count // 2 * size, (count // 2 + count // 8 + 1) * size)
            flat[lost] = 0 if old is None else old[lost]
        if not isinstance(now, np.ndarray):
            now.copy_(seen)  # type: ignore[arg-type]

    def copy_s(self, seconds: float, *, is_hot: bool) -> float:
        """Return the time of a copy, which may be slow in hot memory."""
        return seconds * _SLOW_MEMORY if self.kind == "slow_memory" and is_hot else seconds

    def sensed(self, vitals: Telemetry | None, at_s: float) -> Telemetry | None:
        """Return the sensors' reading, ``at_s`` seconds after the start of the round."""
        is_late = self.kind == "late_heat" and at_s >= _LATE_FROM_S
        if self.kind not in ("hot", "throttle") and not is_late:
            return vitals
        is_braked = self.kind != "hot"
        known = vitals or Telemetry()
        return msgspec.structs.replace(
            known,
            temperature_c=_HOT_C if is_braked else _FAR_TOO_HOT_C,
            sm_clock_mhz=_LOW_MHZ if is_braked else known.sm_clock_mhz,
            clock_event_reasons=ClockReason.HARDWARE_HEAT if is_braked else ClockReason(0),
        )


def _bytes_of(numbers: Tensor | NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bytes of an array, or of a tensor in the PC's memory, in place."""
    if isinstance(numbers, np.ndarray):
        return numbers.reshape(-1).view(np.uint8)
    import torch

    return numbers.view(-1).view(torch.uint8).numpy()
