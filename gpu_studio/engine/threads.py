"""The CPU threads that PyTorch uses in one run."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.failure import FailureKind, StudioError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.engine.workloads.case import Case


def refuse_threads(case: Case) -> None:
    """Raise `StudioError` for a number of threads that this PC or a card does not have."""
    threads = case.race.threads if case.race else None
    if threads is None:
        return
    if case.is_on_card:
        raise StudioError(FailureKind.BAD_REQUEST, "A number of threads is only for the CPU.")
    most = max(os.cpu_count() or 1, torch.get_num_threads())
    if threads > most:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"{threads} threads are more than this CPU runs at once: choose 1 to {most}.",
        )


@contextlib.contextmanager
def cpu_threads(threads: int | None) -> Iterator[None]:
    """Let PyTorch use this many threads meanwhile; None changes nothing."""
    before = torch.get_num_threads()
    if threads is None or threads == before:
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
