"""The PCIe link: copies in both directions, timed and compared bit for bit."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import torch

from gpu_studio.core.check.thresholds import BIT_ERROR_RATE, CHANCE, SLOW_LINK_SHARE
from gpu_studio.core.devices.link import link_bytes_per_s, transfers
from gpu_studio.core.units import format_bytes, format_count, format_rate
from gpu_studio.engine.check.detectors import SlowSteps, mismatched_bits
from gpu_studio.engine.check.stage import StageBench, Step
from gpu_studio.engine.device import free_bytes

if TYPE_CHECKING:
    from collections.abc import Generator

    from torch import Tensor

    from gpu_studio.core.messages.check_messages import StageName
    from gpu_studio.core.telemetry import Telemetry

_MIB = 1 << 20
_CARD_COPY_BYTES, _RAM_COPY_BYTES = 32 * _MIB, 4 * _MIB
# Larger copies take another way through a driver; a card with little free memory has a smaller one.
_LARGE_COPY_BYTES, _LARGE_SHARE = 96 * _MIB, 0.25
_LARGE_EVERY = 32
_WORD_BYTES = 4
_FEWEST_COPIES = 8


class LinkCheck:
    """Copies to the card and back; on the CPU, from RAM to RAM."""

    name: StageName = "link"

    def run(self, bench: StageBench) -> Generator[Step, None, bool]:
        """Copy again and again; see `stage.Stage`."""
        first = bench.vitals(at_once=True)
        copies = _Copies(bench)
        while not bench.is_over(has_tested_all=copies.count >= _FEWEST_COPIES):
            copies.there_and_back()
            bench.vitals()
            yield Step(doing="Copies in both directions", tested=copies.tested)
            if copies.count % _LARGE_EVERY == 1:
                copies.large()
                yield Step(doing="Large copies in both directions", tested=copies.tested)
        bench.vitals(at_once=True)
        if bench.is_card:
            copies.judge_speed()
        _report_link_errors(bench, first)
        return copies.count >= _FEWEST_COPIES and not bench.is_stopped


def _copy_bytes(bench: StageBench) -> int:
    return _CARD_COPY_BYTES if bench.is_card else _RAM_COPY_BYTES


class _Copies:
    def __init__(self, bench: StageBench) -> None:
        self._bench = bench
        words = _copy_bytes(bench) // _WORD_BYTES
        is_pinned = bench.is_card
        self._source = torch.empty(words, dtype=torch.int32, pin_memory=is_pinned)
        self._back = torch.empty_like(self._source, pin_memory=is_pinned)
        self._there = torch.empty(words, dtype=torch.int32, device=bench.device)
        self._source.random_(generator=bench.generator)
        self._before: Tensor | None = None
        self._large_bytes = 0
        self._seconds: tuple[list[float], list[float]] = ([], [])
        self._slow = (SlowSteps(), SlowSteps())
        self.count = 0

    @property
    def tested(self) -> str:
        """What was tested so far, in words."""
        bytes_done = 2 * self.count * _copy_bytes(self._bench) + self._large_bytes
        text = f"{format_count(2 * self.count)} copies, {format_bytes(bytes_done)}"
        if self._bench.is_card and self.count:
            to, back = (format_rate(rate, "B/s") for rate in self._rates())
            text += f", {to} to the card, {back} back"
        return text

    def there_and_back(self) -> None:
        """Copy new data to the device and back, and compare them."""
        self._source.bitwise_xor_(0x5A5A5A5A + self.count)
        self._copy(0, self._source, self._there)
        self._copy(1, self._there, self._back)
        seen = self._back
        if self._bench.plant.kind is not None:
            self._bench.plant.corrupt(seen, self._before)
            self._before = self._source.clone()
        self.count += 1
        self._compare(seen, self._source)

    def large(self) -> None:
        """Copy more than 64 MiB from usual memory and back, if the device has room for it."""
        device = self._bench.device
        size = min(_LARGE_COPY_BYTES, int(_LARGE_SHARE * free_bytes(device)))
        if size <= _copy_bytes(self._bench):
            return
        numbers = self._bench.numbers.integers(0, 1 << 31, size // _WORD_BYTES, dtype=np.int32)
        source = torch.from_numpy(numbers)
        back = source.to(device, copy=True).to("cpu", copy=True)
        self._bench.plant.corrupt(back)
        self._large_bytes += 2 * size
        self._compare(back, source)

    def _compare(self, seen: Tensor, source: Tensor) -> None:
        found = mismatched_bits(seen, source)
        if found is not None:
            self._bench.report(
                "wrong_copy", "error",
                f"{format_count(found.count)} of {format_count(found.total)} numbers arrived "
                "changed after a copy to the device and back.",
                count=found.count,
            )  # fmt: skip

    def judge_speed(self) -> None:
        """Compare the median speed with the link, as the card reported it while it copied."""
        links = self._bench.readings
        best = max(links, key=_generation_and_width, default=None)
        if best is None or self.count < _FEWEST_COPIES:
            return
        most = link_bytes_per_s(best.pcie_generation, best.pcie_width)
        slowest = min(self._rates())
        name = f"gen {best.pcie_generation} × {best.pcie_width}"
        if most is not None and slowest < SLOW_LINK_SHARE * most:
            self._bench.report(
                "slow_link", "doubt",
                f"Copies reach {format_rate(slowest, 'B/s')}, less than half of what the link "
                f"({name}) carries: {format_rate(most, 'B/s')}.",
            )  # fmt: skip
        widest = self._bench.facts.pcie_width_max if self._bench.facts else None
        if widest and best.pcie_width and best.pcie_width < widest:
            self._bench.report(
                "narrow_link", "note",
                f"The link has {best.pcie_width} of {widest} lanes. Some slots have no more; a "
                "riser cable or a card that is not fully inserted also does that.",
            )  # fmt: skip

    def _copy(self, way: int, source: Tensor, target: Tensor) -> None:
        def timed(number: int) -> float:
            return self._bench.timed(lambda: _launch(source, target), number)

        seconds = timed(self.count)
        self._seconds[way].append(seconds)
        slowness = self._slow[way].slowness(seconds, lambda: timed(self.count), lambda: timed(0))
        if slowness is not None:
            direction = ("to the device", "from the device")[way]
            self._bench.report(
                "slow_sample", "doubt",
                f"One copy {direction} takes {slowness:.0f} times as long as the others, each "
                "time.",
            )  # fmt: skip

    def _rates(self) -> list[float]:
        """Return the median speed to the device and from it, in bytes per second."""
        size = _copy_bytes(self._bench)
        return [size / max(median(seconds), 1e-9) for seconds in self._seconds]


def _launch(source: Tensor, target: Tensor) -> None:
    target.copy_(source, non_blocking=True)


def _generation_and_width(vitals: Telemetry) -> tuple[int, int]:
    return vitals.pcie_generation or 0, vitals.pcie_width or 0


def _report_link_errors(bench: StageBench, first: Telemetry | None) -> None:
    """Report packets that were sent again over the PCIe link since a first reading.

    A link may have a wrong bit now and then, and sends that packet again. It is a doubt if there
    are more than the standard's error rate makes likely in this time.
    """
    more = bench.rise(first, lambda vitals: vitals.pcie_replays)
    if not more:
        return
    noun = "packet" if more == 1 else "packets"
    text = f"{format_count(more)} {noun} had to be sent again over the link during the copies"
    bits = _bits(bench)
    allowed = most_errors(bits * BIT_ERROR_RATE) if bits is not None else 1
    if more > allowed:
        bench.report(
            "link_errors", "doubt",
            f"{text}; the standard's error rate allows {allowed} in this time. The contact, the "
            "slot or a riser cable is poor.",
        )  # fmt: skip
    else:
        bench.report("link_errors", "note", f"{text}: within the standard's error rate.")


def most_errors(expected: float) -> int:
    """Return the most errors that a sound link has, by the Poisson distribution.

    Args:
        expected: the mean; more than the result come by chance once in a thousand times.
    """
    term = math.exp(-min(expected, 500.0))
    total, count = term, 0
    while 1 - total > CHANCE and term > 0:
        count += 1
        term *= expected / count
        total += term
    return count


def _bits(bench: StageBench) -> float | None:
    """Return the bits that the fastest link of the stage moved in its time; None if unknown."""
    links = [(one.pcie_generation or 0, one.pcie_width or 0) for one in bench.readings]
    generation, width = max(links, default=(0, 0))
    return transfers(generation, width, bench.elapsed_s)
