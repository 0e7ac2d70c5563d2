"""Runs an experiment of the memory lab on a real or simulated card, and reports how it ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

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
from gpu_studio.core.tensors import DTYPES, LARGEST_SIZE

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from gpu_studio.core.memory.presets import LabCard
    from gpu_studio.core.messages.memory_messages import (
        AllocationPlan,
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
_LONGEST_WATCH_S = 600.0


def run_experiment(
    request: RunMemoryExperiment, card: LabCard, stop: threading.Event
) -> Iterator[Event]:
    """Yield the events of an experiment; its memory is freed before the last event.

    Args:
        request: the experiment, checked by `check_experiment`.
        card: the card; nothing else may use its allocator during the experiment.
        stop: set by any thread to end the experiment between two allocations.
    """
    yield from _Experiment(request, card, stop).events()


def check_experiment(request: RunMemoryExperiment) -> None:
    """Raise `StudioError` for an impossible experiment."""
    find_preset(request.preset)
    if request.preset == "custom":
        if request.plan is None:
            raise StudioError(
                FailureKind.BAD_REQUEST, "“custom” needs a plan of the tensors to make."
            )
        _check_plan(request.plan)
    if request.budget_bytes is not None:
        _check_range("budget in bytes", request.budget_bytes, 1, _MOST_BYTES)
        if request.whole_card:
            raise StudioError(
                FailureKind.BAD_REQUEST, "Choose either a budget or the whole card, not both."
            )
    if not 0 <= request.watch_s <= _LONGEST_WATCH_S:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"The watch time {request.watch_s:g} s is out of range: 0 to {_LONGEST_WATCH_S:.0f} s.",
        )


def _check_plan(plan: AllocationPlan) -> None:
    if plan.dtype not in DTYPES:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"“{plan.dtype[:20]}” is not a supported dtype. Choose {', '.join(DTYPES)}.",
        )
    _check_range("size", plan.size, 1, LARGEST_SIZE)
    if plan.count is not None:
        _check_range("count", plan.count, 1, _MOST_TENSORS)


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
        free_bytes = card.read().free_bytes or 0
        budget_bytes = request.budget_bytes
        if budget_bytes is None and not request.whole_card:
            budget_bytes = free_bytes * 3 // 4
        room_bytes = free_bytes if budget_bytes is None else min(budget_bytes, free_bytes)
        bench = MemoryBench(card, room_bytes, request.plan)
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
        finished = OomFinished(
            device=self._request.device,
            outcome=self._outcome(bench, start, last),
            preset=self._request.preset,
            tensors=bench.tensors,
            tensor_bytes=bench.tensor_bytes,
            steps=bench.steps,
            allocated_bytes=last.read.allocated_bytes,
            reserved_bytes=last.read.reserved_bytes,
            largest_block_bytes=last.largest_block_bytes,
            free_total_bytes=last.free_total_bytes,
            others_grew_bytes=others_grew_bytes(start, last.read),
            budget_bytes=budget_bytes,
            conf=self._card.conf,
            error_text=bench.error_text,
            snippet=snippet_of(self._request, budget_bytes, bench.room_bytes, self._card.conf),
            modelled=self._card.is_modelled,
        )
        finished = _with_the_errors_numbers(finished, last.read)
        return explain_outcome(finished)

    def _outcome(self, bench: MemoryBench, start: MemoryRead, last: SegmentsRead) -> str:
        if self._stop.is_set():
            return "stopped"
        return outcome_of(
            start,
            last,
            bench.error_text,
            tensor_bytes=bench.tensor_bytes,
            step_ends=bench.step_ends,
        )


def _with_the_errors_numbers(finished: OomFinished, read: MemoryRead) -> OomFinished:
    """Return an experiment's end with the numbers of its error's text.

    The text has two decimals. If a counter agrees with it, the counter's exact number is used.
    """
    reported = read_oom_text(finished.error_text)
    holes_bytes = None
    if read.reserved_bytes is not None and read.allocated_bytes is not None:
        holes_bytes = read.reserved_bytes - read.allocated_bytes
    return msgspec.structs.replace(
        finished,
        tried_bytes=unrounded(reported.tried_bytes, segment_bytes(finished.tensor_bytes)),
        free_bytes=unrounded(reported.free_bytes, read.free_bytes),
        total_bytes=unrounded(reported.total_bytes, read.total_bytes),
        limit_bytes=unrounded(reported.limit_bytes, read.limit_bytes),
        unallocated_bytes=unrounded(reported.unallocated_bytes, holes_bytes),
        private_pools_bytes=reported.private_pools_bytes,
    )


def unrounded(printed_bytes: int | None, counted_bytes: int | None) -> int | None:
    """Return a counter's exact number if the text has the same number rounded; else the text's."""
    if printed_bytes is None or counted_bytes is None:
        return printed_bytes
    largest_bytes = max(printed_bytes, counted_bytes)
    is_same = abs(counted_bytes - printed_bytes) <= rounding_bytes(largest_bytes)
    return counted_bytes if is_same else printed_bytes
