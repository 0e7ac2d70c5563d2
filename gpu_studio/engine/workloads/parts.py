"""The time breakdown of one call on a card: copy in, launch, compute, copy out."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.device_name import CPU
from gpu_studio.engine.device import accelerator_of, free_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PARTS = ("copy in", "launch", "compute", "copy out")
_MOST_CALLS = 9
_BUDGET_S = 0.3
# A longer call is not repeated to find the launch's share.
_LONG_CALL_S = 0.1
# The operands' share of the CPU's free memory: the result has to fit as well.
_LARGEST_SHARE = 0.25


def card_parts_s(
    device: torch.device,
    operands: Sequence[torch.Tensor],
    compute: Callable[..., torch.Tensor],
) -> dict[str, float]:
    """Return the seconds of a call's parts, which add up to the whole call with its copies.

    Empty if CPU memory is too small for the operands, or if the card cannot be made to wait.

    Each part is the median of a few calls. CUDA events measure the card's own time, around kernels
    that queued up while the card waited, so that no launch falls between them. The extra time of a
    single call is the cost of launching it. A long call is made once: its time beyond the launch
    counts as the card's.

    Args:
        device: a card.
        operands: tensors on the card; they are copied in place from pageable CPU memory.
        compute: the function of the operands; returns the result.
    """
    if accelerator_of(device).lacks("head start"):
        return {}
    needed_bytes = sum(operand.nbytes for operand in operands)
    if needed_bytes > _LARGEST_SHARE * free_bytes(torch.device(CPU)):
        return {}
    hosts = [operand.cpu() for operand in operands]
    rounds: list[tuple[float, float, float, float]] = []
    started_s = time.perf_counter()
    while len(rounds) < _MOST_CALLS and time.perf_counter() - started_s < _BUDGET_S:
        rounds.append(_one_round(device, operands, hosts, compute))
    copy_in_s, call_s, compute_s, copy_out_s = (median(part) for part in zip(*rounds, strict=True))
    # These come from two clocks: a call that is almost all compute may measure slightly shorter.
    compute_s = min(compute_s, call_s)
    seconds = (copy_in_s, call_s - compute_s, compute_s, copy_out_s)
    return dict(zip(PARTS, seconds, strict=True))


def _one_round(
    device: torch.device,
    operands: Sequence[torch.Tensor],
    hosts: Sequence[torch.Tensor],
    compute: Callable[..., torch.Tensor],
) -> tuple[float, float, float, float]:
    wait = accelerator_of(device).synchronize
    wait(device)
    start_s = time.perf_counter()
    for operand, host in zip(operands, hosts, strict=True):
        operand.copy_(host)
    wait(device)
    copied_in_s = time.perf_counter()
    result = compute(*operands)
    launched_s = time.perf_counter()
    wait(device)
    computed_s = time.perf_counter()
    result.cpu()
    copied_out_s = time.perf_counter()
    del result
    launch_s, call_s = launched_s - copied_in_s, computed_s - copied_in_s
    compute_s = call_s - launch_s
    if call_s < _LONG_CALL_S:
        compute_s = _queued_s(device, operands, compute, launch_s)
    return (
        copied_in_s - start_s,
        call_s,
        compute_s,
        copied_out_s - computed_s,
    )


def _queued_s(
    device: torch.device,
    operands: Sequence[torch.Tensor],
    compute: Callable[..., torch.Tensor],
    launch_s: float,
) -> float:
    """Return the card's own seconds for a call that was launched while the card was waiting."""
    card = accelerator_of(device)
    stopwatch = card.stopwatch(device)
    card.idle(device, 2 * launch_s)
    return stopwatch.time(lambda: compute(*operands), 1)[0]
