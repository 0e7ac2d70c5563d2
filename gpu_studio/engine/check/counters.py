"""Errors that the card counts itself: on its link, and in its memory if that has ECC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.messages.check_messages import Vitals
    from gpu_studio.engine.check.stage import StageBench


def report_link_errors(bench: StageBench, first: Vitals | None) -> None:
    """Report packets that were sent again over the PCIe link since a first reading."""
    more = _rise(bench, first, lambda vitals: vitals.pcie_replays)
    if more:
        noun = "packet" if more == 1 else "packets"
        bench.report(
            "link_errors", "doubt",
            f"{format_count(more)} {noun} had to be sent again over the link during the copies: "
            "the contact, the slot or a riser cable is poor.",
        )  # fmt: skip


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
    if bench.readings and bench.readings[-1][1].has_pending_remap:
        bench.report(
            "ecc_errors", "doubt",
            "The card waits for a restart to replace rows of its memory that failed.",
        )  # fmt: skip


def _rise(bench: StageBench, first: Vitals | None, count: Callable[[Vitals], int | None]) -> int:
    """Return how far a counter rose since a first reading; 0 if the card has no such counter."""
    before = None if first is None else count(first)
    counts = [count(vitals) for _, vitals in bench.readings]
    known = [number for number in counts if number is not None]
    if before is None or not known:
        return 0
    return max(0, known[-1] - before)
