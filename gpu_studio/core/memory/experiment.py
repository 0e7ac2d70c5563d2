"""Runs an experiment of the memory lab on a real or simulated card, and reports how it ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.oom_text import read_oom_text, rounding_bytes
from gpu_studio.core.memory.outcome import (
    explain_outcome,
    has_spilled,
    others_grew_bytes,
    outcome_of,
    segment_bytes,
)
from gpu_studio.core.memory.presets import (
    ALLOCATED,
    FREED,
    FULL,
    HELD,
    START,
    MemoryBench,
    find_preset,
    moments_of,
    snippet_of,
)
from gpu_studio.core.messages.memory_messages import OomFinished, StageBegan
from gpu_studio.core.tensors import LARGEST_SIZE, check_dtype

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from gpu_studio.core.memory.presets import LabCard
    from gpu_studio.core.messages.memory_messages import (
        MemoryRead,
        RunMemoryExperiment,
        SegmentsRead,
    )
    from gpu_studio.core.messages.message import Event


_READ_PERIOD_S = 1 / 60
_SEGMENTS_PERIOD_S = 1 / 10
_LONGEST_PAUSE_S = 0.25
_MOST_TENSORS = 1_000_000
_MOST_BYTES = 1 << 50


def run_experiment(
    request: RunMemoryExperiment, card: LabCard, stop: threading.Event
) -> Iterator[Event]:
    """Yield the events of an experiment; its memory is freed before the last event.

    Args:
        request: the experiment.
        card: the card; nothing else may use its allocator during the experiment.
        stop: set by any thread to end the experiment between two allocations.

    Raises:
        StudioError: it cannot be.
    """
    _check(request)
    yield from _Experiment(request, card, stop).events()


def _check(request: RunMemoryExperiment) -> None:
    plan = find_preset(request.preset).plan or request.plan
    if request.preset == "custom" and plan is None:
        raise StudioError(FailureKind.BAD_REQUEST, "“custom” needs a plan of the tensors to make.")
    if plan is not None:
        check_dtype(plan.dtype)
        _check_range("size", plan.size, 1, LARGEST_SIZE)
        if plan.count is not None:
            _check_range("count", plan.count, 1, _MOST_TENSORS)
    if request.budget_bytes is not None:
        _check_range("budget in bytes", request.budget_bytes, 1, _MOST_BYTES)


def _check_range(name: str, value: int, least: int, largest: int) -> None:
    if not least <= value <= largest:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"The {name}, {value}, is out of range: use a whole number from {least} to {largest}.",
        )


class _Rhythm:
    """Limits how often memory is read: once per period, and for at most a fifth of the time.

    Reading a hundred thousand blocks takes longer than making them.
    """

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._began_s = self._due_s = 0.0

    def is_due(self) -> bool:
        return time.perf_counter() >= self._due_s

    def __enter__(self) -> None:
        self._began_s = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        now_s = time.perf_counter()
        cost_s = now_s - self._began_s
        self._due_s = max(self._began_s + self._period_s, now_s + 4 * cost_s)


class _Experiment:
    """One experiment from its first reading to its end."""

    def __init__(self, request: RunMemoryExperiment, card: LabCard, stop: threading.Event) -> None:
        self._request = request
        self._card = card
        self._stop = stop
        self._reads = _Rhythm(_READ_PERIOD_S)
        self._maps = _Rhythm(_SEGMENTS_PERIOD_S)
        self._start: MemoryRead | None = None
        self._has_spilled = False

    def events(self) -> Iterator[Event]:
        """Yield all events."""
        card, request = self._card, self._request
        card.prepare()
        before = card.read()
        # Older drivers of Intel's cards do not tell what is free: then a budget is of the whole.
        free_bytes = before.total_bytes if before.free_bytes is None else before.free_bytes
        free_bytes = free_bytes or 0
        budget_bytes = request.budget_bytes
        if budget_bytes is None and not request.whole_card:
            budget_bytes = free_bytes * 3 // 4
        room_bytes = free_bytes if budget_bytes is None else min(budget_bytes, free_bytes)
        plan = find_preset(request.preset).plan or request.plan
        bench = MemoryBench(card, room_bytes, plan)
        moments = moments_of(request.preset, bench)
        try:
            card.limit(budget_bytes)
            start = card.read(START, 0)
            self._start = start
            yield start
            yield from self._watched(moments, bench)
            last = bench.failure or card.segments(card.read(HELD, bench.steps))
            if bench.failure is None:
                yield last.read
                yield last
            finished = self._finished(bench, start, last, budget_bytes)
        finally:
            moments.close()
            card.limit(None)
        yield card.read(FREED, bench.steps)
        yield finished

    def _watched(self, moments: Iterator[str | StageBegan], bench: MemoryBench) -> Iterator[Event]:
        """Run an experiment, and leave it suspended so that it keeps its memory."""
        for moment in moments:
            if moment == HELD:
                return
            if isinstance(moment, StageBegan):
                yield moment
                continue
            yield from self._readings(moment, bench)
            # Without an error to end it, it would continue until the PC's memory is full, too.
            if self._stop.is_set() or self._has_spilled:
                return
            if moment == ALLOCATED and self._request.watch_s:
                self._stop.wait(self._pause_s(bench))

    def _readings(self, moment: str, bench: MemoryBench) -> Iterator[Event]:
        """Yield the readings of a moment: all for a rare moment, some for a frequent one."""
        if moment == FULL and bench.failure is not None:
            yield bench.failure.read
            yield bench.failure
            return
        is_rare = moment not in (ALLOCATED, FREED)
        if is_rare or self._request.reads_every_step or self._reads.is_due():
            with self._reads:
                read = self._card.read(moment, bench.steps)
            self._has_spilled = self._start is not None and has_spilled(self._start, read)
            yield read
            if is_rare or self._maps.is_due():
                with self._maps:
                    segments = self._card.segments(read)
                yield segments

    def _pause_s(self, bench: MemoryBench) -> float:
        """Return the pause after a tensor that makes the experiment as long as requested."""
        expected = max(1, bench.room_bytes // max(bench.tensor_bytes, 1))
        pause_s = self._request.watch_s / expected
        return 0.0 if expected > 1000 else min(pause_s, _LONGEST_PAUSE_S)

    def _finished(
        self, bench: MemoryBench, start: MemoryRead, last: SegmentsRead, budget_bytes: int | None
    ) -> OomFinished:
        read, outcome = last.read, "stopped"
        told = read_oom_text(bench.error_text)
        tried_bytes = told.tried_bytes
        if tried_bytes is not None:
            tried_bytes = _exact(tried_bytes, segment_bytes(bench.tensor_bytes))
        holes_bytes = (read.reserved_bytes or 0) - (read.allocated_bytes or 0)
        if not self._stop.is_set():
            outcome = outcome_of(
                start, last, bench.error_text, tensor_bytes=bench.tensor_bytes,
                step_ends=bench.step_ends,
            )  # fmt: skip
        finished = OomFinished(
            device=self._request.device,
            outcome=outcome,
            preset=self._request.preset,
            tensors=bench.tensors,
            tensor_bytes=bench.tensor_bytes,
            steps=bench.steps,
            allocated_bytes=read.allocated_bytes,
            reserved_bytes=read.reserved_bytes,
            tried_bytes=tried_bytes,
            free_bytes=_exact(told.free_bytes, read.free_bytes),
            total_bytes=_exact(told.total_bytes, read.total_bytes),
            limit_bytes=_exact(told.limit_bytes, read.limit_bytes),
            unallocated_bytes=_exact(told.unallocated_bytes, holes_bytes),
            largest_block_bytes=last.largest_block_bytes,
            free_total_bytes=last.free_total_bytes,
            others_grew_bytes=others_grew_bytes(start, read),
            budget_bytes=budget_bytes,
            conf=self._card.conf,
            error_text=bench.error_text,
            snippet=snippet_of(self._request, budget_bytes, bench, self._card.conf),
            modelled=self._card.is_modelled,
        )
        return explain_outcome(finished)


def _exact(told_bytes: int | None, counted_bytes: int | None) -> int | None:
    """Return what an error's text says, to the byte if a counter says the same.

    The text has two decimals. What it leaves out, the counter says.
    """
    if told_bytes is None or counted_bytes is None:
        return counted_bytes if told_bytes is None else told_bytes
    is_same = abs(counted_bytes - told_bytes) <= rounding_bytes(max(told_bytes, counted_bytes))
    return counted_bytes if is_same else told_bytes
