"""Warm up: full load until temperature and clock are steady, with every result compared.

Heat comes first: a card that fails only when it is hot is then hot in all stages after it. A stage
under load also reports what held the card back: heat, power, a fan that stands still, a low clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from gpu_studio.core.check.thresholds import (
    BRAKED_SHARE,
    DRIVER_HEAT_FROM_S,
    FAN_TURNS_FROM_C,
    HARDWARE_BRAKES_FROM_S,
    LOW_CLOCK_SHARE,
    STEADY_C,
    STEADY_CLOCK_SHARE,
    STEADY_FOR_S,
)
from gpu_studio.core.clock_reasons import HARDWARE_BRAKES, ClockReason, held_back_words
from gpu_studio.core.devices.facts import celsius_text
from gpu_studio.core.units import format_count, format_duration
from gpu_studio.engine.check.detectors import SlowSteps, mismatched_bits, steady
from gpu_studio.engine.check.stage import StageBench, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from torch import Tensor

    from gpu_studio.core.messages.check_messages import StageName, Vitals


_SIDE, _CPU_SIDE = 2048, 256
_STEP_S = 0.3  # the card rests while its result is compared
_LONGEST_STEP_S = 1.0  # other programs may take the CPU in the middle of a step
_MOST_CALLS = 4096
_INPUTS = 2  # in turn, so that a stale result is seen
_FEWEST_STEPS = 8  # so many that a step that is always slow stands out


class WarmUp:
    """Products and element-wise work at full load."""

    name: StageName = "load"

    def run(self, bench: StageBench) -> Generator[Step, None, bool]:
        """Work until the card is steady or the time is over; see `stage.Stage`."""
        side = _SIDE if bench.is_card else _CPU_SIDE
        sources = [torch.randn(side, side, generator=bench.generator) for _ in range(_INPUTS)]
        inputs = [source.to(bench.device) for source in sources]
        results = [torch.empty_like(inputs[0]) for _ in inputs]
        firsts: list[Tensor] = []
        calls, step, done = _calls_in_a_step(bench, inputs[0], results[0]), 0, 0
        slow, before = SlowSteps(), None
        while not bench.is_over(has_tested_all=step >= _FEWEST_STEPS):
            which = step % _INPUTS
            work = _Work(bench, inputs[which], results[which], calls)
            _time(bench, slow, work, step)
            done += work.done
            seen = results[which].to("cpu", copy=True)
            if step < _INPUTS:
                firsts.append(seen)
            else:
                bench.plant.corrupt(seen, before)
                _compare(bench, seen, firsts[which])
            before, step = seen, step + 1
            bench.vitals()
            yield Step(doing="Matrix products", tested=_tested(done, bench))
            if step >= _FEWEST_STEPS and _is_steady(bench.readings):
                break
        report_brakes(bench, bench.base_clock_mhz)
        return step >= _FEWEST_STEPS and not bench.is_stopped


class _Work:
    """Some calls of the same work, on a tensor of its own: each call has the same result.

    Args:
        bench: has the clock.
        source: the input.
        result: gets the result.
        calls: how many at most.

    Attributes:
        done: the calls of the last step; fewer if they took too long.
    """

    def __init__(self, bench: StageBench, source: Tensor, result: Tensor, calls: int) -> None:
        self._bench, self._source, self._result = bench, source, result
        self._calls = calls
        self.done = 0

    def __call__(self) -> None:
        end_s, self.done = self._bench.elapsed_s + _LONGEST_STEP_S, 0
        while self.done < self._calls and self._bench.elapsed_s < end_s:
            torch.mm(self._source, self._source, out=self._result)
            self._result.mul_(1.5).add_(self._source).tanh_()
            self.done += 1


def _time(bench: StageBench, slow: SlowSteps, work: _Work, step: int) -> None:
    """Time a step by its calls, because a busy PC gets fewer of them done."""

    def seconds_of(number: int) -> float:
        return bench.timed(work, number) / max(1, work.done)

    def again() -> float:
        return seconds_of(step)

    slowness = slow.slowness(again(), again, lambda: seconds_of(0))
    if slowness is not None:
        _report_slow(bench, slowness)


def _calls_in_a_step(bench: StageBench, source: Tensor, result: Tensor) -> int:
    once = _Work(bench, source, result, 1)
    bench.timed(once, 0)  # loads the kernels
    one_s = bench.timed(once, 0)
    return max(1, min(int(_STEP_S / one_s) if one_s > 0 else 1, _MOST_CALLS))


def _compare(bench: StageBench, seen: Tensor, first: Tensor) -> None:
    found = mismatched_bits(seen, first)
    if found is not None:
        bench.report(
            "unstable_result", "error",
            f"A product under load differs from the first time in {format_count(found.count)} of "
            f"{format_count(found.total)} elements.",
            count=found.count,
        )  # fmt: skip


def _report_slow(bench: StageBench, slowness: float) -> None:
    bench.report(
        "slow_sample", "doubt",
        f"One step under load takes {slowness:.0f} times as long as the others, each time.",
    )  # fmt: skip


def _tested(products: int, bench: StageBench) -> str:
    text = f"{format_count(products)} products in {format_duration(bench.elapsed_s)}"
    if bench.readings:
        degrees = celsius_text(bench.readings[-1][1].temperature_c)
        text += f", now {degrees}" if degrees else ""
    return text


def _is_steady(readings: list[tuple[float, Vitals]]) -> bool:
    """Return whether temperature and clock have settled; False if the card reports neither."""
    if not readings or readings[-1][0] < STEADY_FOR_S:
        return False
    since_s = readings[-1][0] - STEADY_FOR_S
    last = [vitals for at_s, vitals in readings if at_s >= since_s]
    degrees = [one.temperature_c for one in last if one.temperature_c is not None]
    clocks = [one.sm_clock_mhz for one in last if one.sm_clock_mhz is not None]
    if not degrees or not steady(degrees, STEADY_C):
        return False
    return not clocks or steady(clocks, STEADY_CLOCK_SHARE * max(clocks))


_FEWEST_READINGS = 2


def report_brakes(bench: StageBench, base_clock_mhz: float | None = None) -> None:
    """Report what held the card back while it was loaded.

    Args:
        bench: with the readings of the stage.
        base_clock_mhz: the clock that the card is sold with; None if unknown.
    """
    readings = bench.readings
    hardware = _readings_with(readings, lambda one: _has(one, HARDWARE_BRAKES))
    heat = _readings_with(readings, lambda one: _has(one, ClockReason.DRIVER_HEAT))
    slow = _readings_with(readings, lambda one: _is_low(one, base_clock_mhz))
    still = _readings_with(readings, _has_still_fan)
    if _counts(still, readings, HARDWARE_BRAKES_FROM_S):
        _report_fan(bench, still)
    for found, from_s in ((hardware, HARDWARE_BRAKES_FROM_S), (heat, DRIVER_HEAT_FROM_S)):
        if _counts(found, readings, from_s):
            _report_throttling(bench, found)
            return
    if _counts(slow, readings, HARDWARE_BRAKES_FROM_S) and base_clock_mhz:
        lowest = min(one.sm_clock_mhz or 0.0 for _, one in slow)
        bench.report(
            "low_clock", "doubt",
            f"The clock fell to {lowest:.0f} MHz under load, and the card named no reason. Its "
            f"base clock is {base_clock_mhz:.0f} MHz. {_begin_words(slow)}",
        )  # fmt: skip


def _report_throttling(bench: StageBench, found: Sequence[tuple[float, Vitals]]) -> None:
    reasons = ClockReason(0)
    for _, one in found:
        reasons |= one.clock_event_reasons or ClockReason(0)
    subject = "card" if bench.is_card else "CPU"
    fans = [one.fan_percent for _, one in found if one.fan_percent is not None]
    fan = f", with the fan at {max(fans):.0f} %" if fans else ""
    bench.report(
        "throttled", "doubt",
        f"The {subject} slowed itself down for about {_seconds(found)} s"
        f"{_hottest_words(found)}{fan}: "
        f"{held_back_words(reasons)}. {_begin_words(found)}",
    )  # fmt: skip


def _report_fan(bench: StageBench, found: Sequence[tuple[float, Vitals]]) -> None:
    bench.report(
        "fan_stopped", "doubt",
        f"The card reports a fan that stands still for about {_seconds(found)} s"
        f"{_hottest_words(found)}. {_begin_words(found)}",
    )  # fmt: skip


def _hottest_words(found: Sequence[tuple[float, Vitals]]) -> str:
    hottest = max((one.temperature_c or 0.0 for _, one in found), default=0.0)
    return f" at {celsius_text(hottest)}" if hottest else ""


def _begin_words(found: Sequence[tuple[float, Vitals]]) -> str:
    return f"It began {found[0][0]:.0f} s after the start of the load."


def _readings_with(
    readings: Sequence[tuple[float, Vitals]], has: Callable[[Vitals], bool]
) -> list[tuple[float, Vitals]]:
    return [reading for reading in readings if has(reading[1])]


def _has(vitals: Vitals, reasons: ClockReason) -> bool:
    return bool(vitals.clock_event_reasons and vitals.clock_event_reasons & reasons)


def _has_still_fan(vitals: Vitals) -> bool:
    return vitals.fan_percent == 0 and (vitals.temperature_c or 0.0) >= FAN_TURNS_FROM_C


def _is_low(vitals: Vitals, base_clock_mhz: float | None) -> bool:
    if not base_clock_mhz or vitals.sm_clock_mhz is None:
        return False
    return vitals.sm_clock_mhz < LOW_CLOCK_SHARE * base_clock_mhz


def _counts(
    found: Sequence[tuple[float, Vitals]], readings: Sequence[tuple[float, Vitals]], from_s: float
) -> bool:
    if len(found) < _FEWEST_READINGS:
        return False
    return _seconds(found) >= from_s or len(found) >= BRAKED_SHARE * len(readings)


def _seconds(found: Sequence[tuple[float, Vitals]]) -> int:
    """Return about how long the readings lasted: there is one a second."""
    return len(found)
