"""The PCIe link: copies in both directions, timed and compared bit for bit."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import torch

from gpu_studio.core.check.stages import BIT_ERROR_RATE, SLOW_LINK_SHARE
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.link import link_bytes_per_s, transfers
from gpu_studio.core.units import format_bytes, format_count, format_rate
from gpu_studio.engine.device import free_bytes

if TYPE_CHECKING:
    from collections.abc import Generator

    from gpu_studio.engine.check.stage_run import StageRun


_MIB = 1 << 20
_CARD_COPY_BYTES, _RAM_COPY_BYTES = 32 * _MIB, 4 * _MIB
# Larger copies take another way through a driver; a card with little free memory has a smaller one.
_LARGE_COPY_BYTES, _LARGE_SHARE = 96 * _MIB, 0.25
_LARGE_EVERY = 32
_FEWEST_COPIES = 8


def link(run: StageRun) -> Generator[str, None, bool]:
    """Copy to the card and back, on the CPU from RAM to RAM; a stage, see `StageRun`."""
    run.vitals(at_once=True)
    size = _CARD_COPY_BYTES if run.is_card else _RAM_COPY_BYTES
    copies = Copies(run, size)
    to_s: list[float] = []
    back_s: list[float] = []
    large_bytes = 0
    while not run.is_over(has_tested_all=copies.count >= _FEWEST_COPIES):
        yield "Copies in both directions"
        copies.renew()
        to_s.append(run.timed(copies.send))
        back_s.append(run.timed(copies.fetch))
        copies.compare()
        if copies.count % _LARGE_EVERY == 1:
            yield "Large copies in both directions"
            large_bytes += _copy_large(run, size)
        moved = format_bytes(2 * copies.count * size + large_bytes)
        run.tested = f"{format_count(2 * copies.count)} copies, {moved}"
        if run.is_card:
            rates = [size / max(median(one), 1e-9) for one in (to_s, back_s)]
            there, here = (format_rate(rate, "B/s") for rate in rates)
            run.tested += f", {there} to the card, {here} back"
    run.vitals(at_once=True)
    is_whole = copies.count >= _FEWEST_COPIES
    if run.is_card and is_whole:
        _judge_speed(run, min(rates))
    _report_link_errors(run)
    return is_whole and not run.is_stopped


class Copies:
    """New numbers, each time, to the device and back.

    Args:
        run: has the device, and gets the findings.
        size_bytes: of a copy.
        is_pinned: whether the memory of the PC cannot be swapped, where the device is a card.

    Attributes:
        count: how often the numbers were renewed.
    """

    def __init__(self, run: StageRun, size_bytes: int, *, is_pinned: bool = True) -> None:
        self._run = run
        count = size_bytes // torch.int32.itemsize
        is_pinned = is_pinned and not is_cpu(run.device.type)
        self._source = torch.empty(count, dtype=torch.int32, pin_memory=is_pinned)
        self._source.random_(generator=run.generator)
        self._back = torch.empty_like(self._source, pin_memory=is_pinned)
        self._there = torch.empty(count, dtype=torch.int32, device=run.device)
        self.count = 0

    def renew(self) -> None:
        """Make new numbers."""
        self._source.bitwise_xor_(0x5A5A5A5A + self.count)
        self.count += 1

    def send(self) -> None:
        """Launch the copy to the device."""
        self._there.copy_(self._source, non_blocking=True)

    def fetch(self) -> None:
        """Launch the copy back."""
        self._back.copy_(self._there, non_blocking=True)

    def compare(self, when: str = "") -> None:
        """Report numbers that arrived changed; ``when`` ends the sentence."""
        self._run.plant.corrupt(self._back, self._back.numel())
        changed = int(np.count_nonzero(self._back.numpy() != self._source.numpy()))
        if changed:
            self._run.report(
                "wrong_copy", "error",
                f"{format_count(changed)} of {format_count(self._source.numel())} numbers arrived "
                f"changed after a copy to the device and back{when}.",
                count=changed,
            )  # fmt: skip


def _copy_large(run: StageRun, usual_bytes: int) -> int:
    """Copy more than 64 MiB from usual memory and back, if there is room; return the bytes."""
    size = min(_LARGE_COPY_BYTES, int(_LARGE_SHARE * free_bytes(run.device)))
    if size <= usual_bytes:
        return 0
    copies = Copies(run, size, is_pinned=False)
    copies.send()
    copies.fetch()
    run.synchronize()
    copies.compare()
    return 2 * size


def _best_link(run: StageRun) -> tuple[int, int]:
    """Return generation and lanes of the fastest link that the card reported; 0 if unknown."""
    links = [(one.pcie_generation or 0, one.pcie_width or 0) for one in run.readings]
    return max(links, default=(0, 0))


def _judge_speed(run: StageRun, slowest: float) -> None:
    """Compare the median speed with the link, as the card reported it while it copied."""
    generation, width = _best_link(run)
    most = link_bytes_per_s(generation, width)
    if most is not None and slowest < SLOW_LINK_SHARE * most:
        run.report(
            "slow_link", "doubt",
            f"Copies reach {format_rate(slowest, 'B/s')}, less than half of what the link "
            f"(gen {generation} × {width}) carries: {format_rate(most, 'B/s')}.",
        )  # fmt: skip


def _report_link_errors(run: StageRun) -> None:
    """Report packets that were sent again over the PCIe link since a first reading.

    A link may have a wrong bit now and then, and sends that packet again. It is a doubt if there
    are more than the standard's error rate makes likely: three deviations over its mean.
    """
    more = run.rise("pcie_replays")
    if not more:
        return
    noun = "packet" if more == 1 else "packets"
    text = f"{format_count(more)} {noun} had to be sent again over the link during the copies"
    mean = (transfers(*_best_link(run), run.elapsed_s) or 0.0) * BIT_ERROR_RATE
    allowed = 1 + math.ceil(mean + 3 * math.sqrt(mean))
    if more <= allowed:
        run.report("link_errors", "note", f"{text}: within the standard's error rate.")
        return
    run.report(
        "link_errors", "doubt",
        f"{text}; the standard's error rate allows {allowed} in this time. The contact, the slot "
        "or a riser cable is poor.",
    )  # fmt: skip
