"""Errors that the card counts itself: on its link, and in its memory if that has ECC."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpu_studio.core.check.thresholds import BIT_ERROR_RATE, CHANCE
from gpu_studio.core.devices.link import transfers
from gpu_studio.core.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.messages.check_messages import Vitals
    from gpu_studio.engine.check.stage import StageBench


def report_link_errors(bench: StageBench, first: Vitals | None) -> None:
    """Report packets that were sent again over the PCIe link since a first reading.

    A link may have a wrong bit now and then, and sends that packet again. It is a doubt if there
    are more than the standard's error rate makes likely in this time.
    """
    more = _rise(bench, first, lambda vitals: vitals.pcie_replays)
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
    links = [
        (one.vitals.pcie_generation or 0, one.vitals.pcie_width or 0) for one in bench.readings
    ]
    generation, width = max(links, default=(0, 0))
    return transfers(generation, width, bench.elapsed_s)


def report_ecc_errors(bench: StageBench, first: Vitals | None) -> None:
    """Report memory errors that the card counted since a first reading."""
    lost = _rise(bench, first, lambda vitals: vitals.ecc_uncorrected)
    if lost:
        bench.report(
            "ecc_errors", "error",
            f"The card counted {format_count(lost)} memory errors that it could not correct.",
            count=lost,
        )  # fmt: skip
    corrected = _rise(bench, first, lambda vitals: vitals.ecc_corrected)
    if corrected:
        bench.report(
            "ecc_errors", "doubt",
            f"The card counted {format_count(corrected)} memory errors and corrected them.",
        )  # fmt: skip
    if bench.readings and bench.readings[-1].vitals.has_pending_remap:
        bench.report(
            "ecc_errors", "doubt",
            "The card waits for a restart to replace rows of its memory that failed.",
        )  # fmt: skip


def _rise(bench: StageBench, first: Vitals | None, count: Callable[[Vitals], int | None]) -> int:
    """Return how far a counter rose since a first reading; 0 if the card has no such counter."""
    before = None if first is None else count(first)
    counts = [count(one.vitals) for one in bench.readings]
    known = [number for number in counts if number is not None]
    if before is None or not known:
        return 0
    return max(0, known[-1] - before)
