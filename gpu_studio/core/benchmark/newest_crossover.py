"""From which size on a card beats its CPU: the newest sweep in the history, for a standard run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.crossover import (
    CrossoverKind,
    find_crossover,
    ratios_of,
    reference_of,
)
from gpu_studio.core.benchmark.history import FOLDER_NAME, History
from gpu_studio.core.benchmark.standard_record import StandardCrossover
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.failure import StudioError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gpu_studio.core.benchmark.kept_run import KeptHeader
    from gpu_studio.core.messages.run_messages import RunFinished

_WORKLOAD, _DTYPE = "matmul", "float32"
_MOST_FILES = 300


def newest_crossover(folder: Path | None, identity: str) -> StandardCrossover | None:
    """Return what the kept matrix products in float32 say of a card and its CPU.

    Only results of the newest one's PyTorch, options and CPU count, and of a size the newest. The
    answer is None if fewer than two sizes have a winner, and for the CPU.

    Args:
        folder: the folder of the results; None if nothing is kept.
        identity: the permanent name of the card; empty if unknown.
    """
    if folder is None or not identity or is_cpu(identity):
        return None
    try:
        entries = History(folder / FOLDER_NAME).contents(_MOST_FILES).entries
    except StudioError:  # the window's history says so
        return None
    kept = [entry.header for entry in entries if _counts(entry.header.result)]
    ours = [one for one in kept if one.card == identity]
    if not ours:
        return None
    newest = ours[0]
    device = newest.result.device
    cpu = reference_of(device, [one.result.device for one in kept])
    theirs = [one for one in kept if one.result.device == cpu]
    results = [one.result for one in reversed([*_alike(ours, newest), *_alike(theirs, newest)])]
    found = find_crossover(ratios_of(_on_one_cpu(results, cpu), device, reference=cpu))
    decided = [one for one in found.ratios if one.sign]
    if len(decided) < 2:
        return None
    crossing = next((one for one in found.crossings if one.device_wins_above), None)
    if crossing is not None:
        return StandardCrossover(
            kind="crosses", low=crossing.low, high=crossing.high, made_at=newest.kept_at
        )
    if found.kind not in (CrossoverKind.ALWAYS, CrossoverKind.NEVER):
        return None  # it only falls behind
    return StandardCrossover(
        kind="always" if found.kind is CrossoverKind.ALWAYS else "never",
        low=decided[0].size,
        high=decided[-1].size,
        made_at=newest.kept_at,
    )


def _counts(result: RunFinished) -> bool:
    is_asked = (result.workload, result.dtype) == (_WORKLOAD, _DTYPE)
    return is_asked and not result.transfers and result.recording is None


def _alike(kept: Sequence[KeptHeader], newest: KeptHeader) -> Iterator[KeptHeader]:
    """Yield the runs of the newest one's device, PyTorch and options."""
    for one in kept:
        ours, theirs = one.result, newest.result
        if (ours.torch_version, ours.options) == (theirs.torch_version, theirs.options):
            yield one


def _on_one_cpu(results: Sequence[RunFinished], cpu: str) -> list[RunFinished]:
    """Return the results, oldest first, without those of a CPU that was in this PC before."""
    names = [one.device_name for one in results if one.device == cpu]
    return [one for one in results if one.device != cpu or one.device_name == names[-1]]
