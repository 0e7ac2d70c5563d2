"""The experiment ``activations``: how large a batch may be, with and without the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.memory.memory_bench import ALLOCATED, EMPTIED, FREED, FULL, HELD
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from gpu_studio.core.memory.lab_card import SampleNetwork
    from gpu_studio.core.memory.memory_bench import Bench
    from gpu_studio.core.messages.memory_messages import StageBegan

    Moments = Generator[str | StageBegan, None, None]

_FIRST_BATCH = 64
# Of float32 numbers of the network's width: no GPU's memory holds a larger one.
_LARGEST_BATCH = 1 << 26


def activations(bench: Bench) -> Moments:
    """Double the batch until it breaks, in training and under ``torch.no_grad()``."""
    try:
        network = bench.card.sample_network()
    except RuntimeError as error:
        if not bench.card.is_out_of_memory(error):
            raise
        bench.note_end(error)
        yield FULL
        return
    yield ALLOCATED
    yield from _doubled(bench, network, "training", "with gradients")
    yield from _doubled(bench, network, "no_grad", "under torch.no_grad()")
    yield HELD


def _doubled(bench: Bench, network: SampleNetwork, stage: str, words: str) -> Moments:
    step = network.train if stage == "training" else network.infer
    batch, peak_bytes = _FIRST_BATCH, 0
    yield bench.begin(stage, f"The batch is doubled {words}, from {batch} on.")
    while batch <= _LARGEST_BATCH:
        bench.card.reset_peak()
        bench.steps += 1
        is_through = yield from _one_step(bench, step(batch))
        if not is_through:
            break
        peak_bytes = bench.card.read().peak_allocated_bytes or 0
        batch *= 2
    network.forget()
    bench.card.empty_cache()
    yield EMPTIED
    if batch == _FIRST_BATCH:
        bench.note_stage(stage, f"Not even a batch of {batch} fits {words}.")
        return
    bench.note_stage(
        stage,
        f"The largest batch {words} was {batch // 2}, with {format_bytes(peak_bytes)} at its peak.",
        peak_bytes=peak_bytes,
        batch=batch // 2,
    )


def _one_step(bench: Bench, parts: Iterator[str]) -> Generator[str, None, bool]:
    """Go through one batch; returns whether there was memory for it."""
    try:
        for _ in parts:
            yield ALLOCATED
    except RuntimeError as error:
        if not bench.card.is_out_of_memory(error):
            raise
        bench.note_end(error)
    else:
        yield FREED
        return True
    yield FULL
    return False
