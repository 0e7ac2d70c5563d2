"""One run of a workload without PyTorch: set-up and check, then the rounds, and the result.

The rounds are those of every run (`benchmark.rounds`). The result is checked before the first one
and again after each.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_studio.core.benchmark.refusal import options_refusal
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.finding import DOUBT, NOT_TESTED
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.texts import listed
from gpu_studio.core.units import format_duration, format_size
from gpu_studio.engine.benchmark.rounds import MeasuredRun
from gpu_studio.engine.quick.race import find_quick_picture
from gpu_studio.engine.quick.work import QuickCall, core_count, find_quick_work
from gpu_studio.engine.verification import Verification

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from threading import Event as Flag

    from numpy.typing import NDArray

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import RunWorkload
    from gpu_studio.engine.quick.compute import Compute
    from gpu_studio.engine.quick.race import GrowWork
    from gpu_studio.engine.quick.work import QuickTimed, QuickWorkload
    from gpu_studio.engine.stopwatch import Stopwatch
    from gpu_studio.engine.workloads.call import Call

_SMALL_UP_TO = {"copy": 4, "launch": 1}
_USUAL_SMALL = 256
# Half of what Windows waits for a driver, see `benchmark.admission`.
_LONGEST_CALL_S = 1.0
_SOFTWARE = "{name} is software: it computes on the CPU, and says nothing about a card."


class QuickRun(MeasuredRun):
    """One `RunWorkload` without PyTorch; see `rounds.MeasuredRun`.

    Args:
        request: the run to make.
        stop: set by another thread to end the run between two batches.
        open_adapter: returns the opened adapter of an address; raises `StudioError`.
        shared: what all runs have; see `rounds.MeasuredRun`.
    """

    _work: QuickWorkload | GrowWork
    _compute: Compute | None = None

    def __init__(
        self,
        request: RunWorkload,
        stop: Flag,
        open_adapter: Callable[[str], Compute],
        **shared: Any,
    ) -> None:
        super().__init__(request, stop, **shared)
        self._open_adapter = open_adapter
        self._operands: dict[int, list[NDArray[Any]]] = {}
        self._right: NDArray[Any] | None = None

    def events(self) -> Iterator[Event | None]:
        """Yield the run's events; an error of the driver is a sentence."""
        try:
            yield from super().events()
        except Exception as error:
            if self._compute is None:
                raise
            raise self._compute.explained(error) from error

    def _steps(self) -> Iterator[Event | None]:
        request, found = self._request, self._found
        name = request.workload
        self._work = find_quick_work(name) if request.race is None else find_quick_picture(name)
        self._description = self._work.description
        if not is_cpu(request.device):
            self._compute = self._open_adapter(request.device)
            self._is_on_card = not self._compute.adapter.is_software
            self._identity = self._compute.card
        found.options = self._admitted()
        yield self._started()
        yield self._phase("set-up")
        found.other_load = self._other_load()
        self._check_stop()
        expected_s = self._expected_call_s()
        self._refuse_long_call(expected_s)
        yield self._phase("verification", expected_s)
        with contextlib.closing(self._prepare()) as call:
            found.first_call_s = call.time(call, 1)[1]  # with the shader's compilation
            self._check(call)
        self._check_stop()
        yield from self._rounds(expected_s)
        self._conclude()
        yield self._finished()

    def _admitted(self) -> dict[str, str]:
        """Return the options of the request, completed; raise `StudioError` if it cannot run."""
        request, description = self._request, self._description
        dtypes = description.dtypes
        if self._compute is not None:
            dtypes = tuple(one for one in dtypes if one in self._compute.adapter.dtypes)
        if request.dtype not in dtypes:
            where = self._compute.adapter.title if self._compute else "NumPy on the CPU"
            raise StudioError(
                FailureKind.DTYPE_UNSUPPORTED,
                f"{request.workload} does not run in {request.dtype} on {where}: choose "
                f"{listed(dtypes, 'or')}.",
            )
        modes = {
            "a cold cache": request.cache != "hot",
            "copies in each call": request.transfers,
            "a naive stopwatch": request.naive,
        }
        if wanted := [mode for mode, is_wanted in modes.items() if is_wanted]:
            message = f"This is possible only with PyTorch: {listed(wanted)}."
            raise StudioError(FailureKind.BAD_REQUEST, message)
        self._work.check_size(request.size)
        if refusal := options_refusal(description, request.options):
            raise StudioError(FailureKind.BAD_REQUEST, refusal)
        return {one.name: one.values[0] for one in description.options}

    def _prepare(self) -> QuickTimed:
        return self._prepared(self._request.size)

    def _prepared(self, size: int) -> QuickTimed:
        dtype, race = self._request.dtype, self._request.race
        if size not in self._operands:
            self._operands = {size: self._work.operands(size, dtype)}
        operands = self._operands[size]
        if self._compute is not None:
            return self._work.on_adapter(size, dtype, operands, self._compute)
        return self._work.on_cpu(operands, (race.threads if race else None) or core_count())

    def _time_once(self, call: Call) -> float:
        return self._stopwatch(call).time(call.function, 1)[0]

    def _stopwatch(self, call: Call) -> Stopwatch:
        return call  # type: ignore[return-value]  # each is a `QuickTimed`

    def _expected_call_s(self) -> float | None:
        """Return the seconds of a call by those of a small one; None if it is small itself."""
        size, dtype = self._request.size, self._request.dtype
        small = min(size, _SMALL_UP_TO.get(self._request.workload, _USUAL_SMALL))
        if small == size:
            return None
        with contextlib.closing(self._prepared(small)) as call:
            call.time(call, 1)  # compiles the shader
            small_s = min(call.time(call, 1)[1] for _ in range(3))
        work = self._work
        return small_s * work.count(size, dtype).amount / work.count(small, dtype).amount

    def _refuse_long_call(self, expected_s: float | None) -> None:
        request = self._request
        longest_s = request.longest_call_s or math.inf
        if self._compute is not None:
            longest_s = min(longest_s, _LONGEST_CALL_S)
        if expected_s is not None and expected_s > longest_s:
            size = format_size(request.size, self._description.size_text)
            raise StudioError(
                FailureKind.TOO_SLOW,
                f"{request.workload} at {size} would take about {format_duration(expected_s)} a "
                f"call here; at most {format_duration(longest_s)} are allowed. Choose a smaller "
                "size.",
            )

    def _end_round(self, call: Call) -> None:
        if isinstance(call, QuickCall):  # a drawing is at another step for each contestant
            self._check(call)

    def _check(self, call: QuickTimed) -> None:
        """Compare the result; a wrong one stays wrong. Equal bits are as right as before."""
        before, found = self._found.verification, call.result()
        if self._right is None or not np.array_equal(found, self._right):
            checked = call.verified(found)
            if before is None or before.verified:
                self._found.verification = before = checked
            self._right = found.copy() if checked.verified else None
        lost = call.missing()
        if lost and before is not None and before.verified:
            self._found.verification = Verification(False, lost, before.compared)

    def _conclude(self) -> None:
        """Record what follows from the samples, and what measured."""
        request, found, compute = self._request, self._found, self._compute
        counted = self._work.count(request.size, request.dtype)
        found.throughput_work, found.bytes_per_call = counted.amount, counted.bytes_moved
        found.computed_in = "float32" if request.workload == "matmul" else request.dtype
        if compute is None:
            found.device_name, found.cpu_threads = self._cpu_name, core_count()
            found.sentences += ("NumPy computed this on the CPU.",)
            return
        adapter, watch = compute.adapter, found.watch
        assert watch is not None
        found.device_name = adapter.title
        if not adapter.is_software:
            found.doubts = {**found.doubts, DOUBT: NOT_TESTED}
        else:
            found.sentences = (_SOFTWARE.format(name=adapter.name), *found.sentences)
            # These two are told of a card in other words.
            busy, watch.other_processes, found.loaded_s = watch.other_processes, None, None
            if busy:
                found.doubts = {**found.doubts, "busy CPU": "other programs kept the CPU busy"}
        own_s = math.fsum(found.samples_s) * found.calls_per_sample
        found.sentences += (
            f"Timed by {adapter.interface}'s own clock: {format_duration(own_s)}; the wall clock "
            f"says {format_duration(found.spent_s)} with the launches.",
        )
