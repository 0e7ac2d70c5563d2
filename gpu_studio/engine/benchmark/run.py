"""One run of a workload by PyTorch: set-up, verification, then the rounds, and the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from gpu_studio.core.devices.finding import DOUBT, NOT_TESTED, is_tested
from gpu_studio.engine.benchmark.admission import (
    admit,
    check_answers,
    refuse_long_kernel,
    refuse_too_large,
)
from gpu_studio.engine.benchmark.ceilings import ceilings_of, measure_cpu, reached_share
from gpu_studio.engine.benchmark.cold_cache import ColdStopwatch, buffer_bytes
from gpu_studio.engine.benchmark.load import load_of
from gpu_studio.engine.benchmark.naive import explain, time_naively
from gpu_studio.engine.benchmark.rounds import MeasuredRun
from gpu_studio.engine.device import accelerator_of, card_name, prove_kernels, time_once, uuid_of
from gpu_studio.engine.memory.caching_allocator import PeakMemory, read_memory
from gpu_studio.engine.own_code.picture import own_picture
from gpu_studio.engine.own_code.workload import own_workload
from gpu_studio.engine.workloads.case import cpu_threads
from gpu_studio.engine.workloads.registry import find_picture, find_workload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from gpu_studio.core.benchmark.ceilings import Ceilings
    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.message import Event
    from gpu_studio.engine.benchmark.naive_script import NaiveAnswer
    from gpu_studio.engine.stopwatch import Stopwatch
    from gpu_studio.engine.workloads.call import Call
    from gpu_studio.engine.workloads.case import Case
    from gpu_studio.engine.workloads.workload import Workload

_NOTHING_TO_TRANSFER = (
    "The operands are already in the CPU's memory, so there is nothing to transfer: this time is "
    "only the computation."
)


class WorkloadRun(MeasuredRun):
    """One `RunWorkload` by PyTorch; see `rounds.MeasuredRun`."""

    _workload: Workload
    _case: Case
    _memory: PeakMemory
    _threads: int | None = None

    def _steps(self) -> Iterator[Event | None]:
        request, found = self._request, self._found
        if request.code is not None:
            own = own_workload if request.race is None else own_picture
            workload: Workload = own(request.code)
        else:
            find = find_workload if request.race is None else find_picture
            workload = find(request.workload)
        case = admit(request, workload)
        self._workload, self._case, self._description = workload, case, workload.description
        self._is_on_card = case.is_on_card
        found.options = dict(case.options)
        yield self._started(workload.snippet(case))
        yield self._phase("set-up")
        if request.race is not None:
            self._threads = request.race.threads
            yield None  # they count from the next turn on
        prove_kernels(case.device)
        self._identity = uuid_of(case.device) if self._sensor is not None else None
        found.other_load = self._other_load()
        self._check_stop()
        refuse_too_large(workload, case)
        refuse_long_kernel(workload, case, self._described())
        measured = measure_cpu(case, workload.work(case), workload.computes_in(case))
        self._check_stop()
        yield self._phase("verification")
        found.verification, expected_call_s = check_answers(
            workload, case, self._check_stop, request.longest_call_s
        )
        load_of(request.device).end_check()
        self._check_stop()
        # Only now: without the card's peaks, the small call above refuses a kernel of seconds.
        naive: NaiveAnswer | None = None
        if request.naive:
            yield self._phase("naive")
            naive = time_naively(workload.description.name, case, self._stop)
            self._check_stop()
        yield from self._rounds(expected_call_s)
        self._conclude(measured, naive)
        yield self._finished()

    def _conclude(self, measured: Ceilings | None, naive: NaiveAnswer | None) -> None:
        """Record what follows from the samples, and what PyTorch says of itself."""
        found, case, work = self._found, self._case, self._workload.work(self._case)
        assert found.watch is not None
        found.device_name = card_name(case.device) if case.is_on_card else self._cpu_name
        found.throughput_work, found.bytes_per_call = work.throughput_work, work.bytes_moved
        found.computed_in = self._workload.computes_in(case)
        found.cpu_threads, found.torch_version = torch.get_num_threads(), str(torch.__version__)
        if measured is None:
            measured = ceilings_of(case, found.watch.card, found.computed_in)
        found.reached = reached_share(case, work, found.median_s, measured)
        if not found.parts_s and not case.is_on_card:  # no copies, and no driver to ask
            found.parts_s = {"compute": found.median_s}
        if case.transfers and not case.is_on_card:
            found.sentences += (_NOTHING_TO_TRANSFER,)
        if naive is not None and naive.stopwatch is None:
            found.sentences += (f"There is no naive time: {naive.failure.rstrip('.')}.",)
        elif naive is not None and naive.stopwatch is not None:
            found.naive = explain(naive.stopwatch, found.median_s, case)
        if not is_tested(accelerator_of(case.device).maker):
            # A kind of card on which nobody has run this program.
            found.doubts = {**found.doubts, DOUBT: NOT_TESTED}

    def _turn(self) -> AbstractContextManager[object]:
        """Return the threads of a turn: another run may use others in between."""
        return cpu_threads(self._threads)

    def _prepare(self) -> Call:
        return self._workload.prepare(self._case)

    def _time_once(self, call: Call) -> float:
        return time_once(call, self._case.device)

    def _stopwatch(self, call: Call) -> Stopwatch:
        device = self._case.device
        plain = call.timed_by(accelerator_of(device).stopwatch(device))
        if self._case.cache != "cold":
            return plain
        if call.is_made_anew or not self._found.starts:
            self._memory.ignore(buffer_bytes(device))
        return ColdStopwatch(plain, device)

    def _begin_memory(self) -> None:
        self._memory = PeakMemory(self._case.device)

    def _read_memory(self) -> Event | None:
        return read_memory(self._case.device) if self._is_on_card else None

    def _end_round(self, call: Call) -> None:
        if not call.is_elsewhere:
            found = self._found
            peaks = (found.peak_allocated_bytes, self._memory.peak_bytes())
            found.peak_allocated_bytes = max((p for p in peaks if p is not None), default=None)

    def _described(self) -> Device | None:
        """Return the card as its driver describes it; None on the CPU or if unknown."""
        return self._sensor.device(self._identity) if self._sensor and self._identity else None
