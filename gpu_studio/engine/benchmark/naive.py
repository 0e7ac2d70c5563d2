"""The naive stopwatch: the time that a script without warm-up and synchronize would print.

`naive_script` measures it in a new process. This module starts it and explains the result.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.messages.run_messages import NaiveTime, RunParameters
from gpu_studio.core.units import format_duration, format_ratio
from gpu_studio.engine.benchmark.naive_script import NaiveAnswer
from gpu_studio.process.child_process import ChildProcess
from gpu_studio.process.steady_memory import without_steady

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.engine.benchmark.naive_script import NaiveStopwatch
    from gpu_studio.engine.workloads.case import Case

_SCRIPT = "gpu_studio.engine.benchmark.naive_script"
# A smaller difference from the median, as a share of it, is not mentioned.
_WORTH_TELLING = 0.1
_STOP_PERIOD_S = 0.05
_LONGEST_S = 300.0


def time_naively(workload_name: str, case: Case, stop: threading.Event) -> NaiveAnswer:
    """Let a new process set up the work and call it once; return its times.

    Args:
        workload_name: the name of the workload.
        case: the case to call.
        stop: ends the process early.
    """
    asked = RunParameters(
        workload=workload_name,
        device=case.address,
        size=case.size,
        dtype=case.dtype_name,
        options=dict(case.options),
        cache=case.cache,
        transfers=case.transfers,
    )
    try:
        child = ChildProcess(
            _SCRIPT, [msgspec.json.encode(asked).decode()], inherited=without_steady()
        )
    except OSError as error:
        return NaiveAnswer(failure=f"a new process could not start: {error.strerror or error}")
    try:
        with _ended_by(stop, child):
            line = next(child.lines(), b"")
    finally:
        child.end()
    if not line:
        return NaiveAnswer(failure="the new process ended without an answer")
    return msgspec.json.decode(line, type=NaiveAnswer)


@contextlib.contextmanager
def _ended_by(stop: threading.Event, child: ChildProcess) -> Iterator[None]:
    """End a child if the run is stopped, or if it takes too long."""
    over = threading.Event()

    def watch() -> None:
        waited_s = 0.0
        while not over.wait(_STOP_PERIOD_S):
            waited_s += _STOP_PERIOD_S
            if stop.is_set() or waited_s > _LONGEST_S:
                child.kill()
                return

    watcher = threading.Thread(target=watch, name="naive stopwatch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def explain(naive: NaiveStopwatch, median_s: float, case: Case) -> NaiveTime:
    """Return the naive times, with a sentence that explains the difference from the median.

    Args:
        naive: the naive times.
        median_s: the median of the run's samples.
        case: the case that was called.
    """
    ratio = naive.printed_s / median_s
    sentence = f"A careless script, in a new process, prints {format_duration(naive.printed_s)}"
    if abs(ratio - 1) <= _WORTH_TELLING:
        sentence += ", which happens to be right here"
    else:
        sentence += f", {format_ratio(ratio)} the median of {format_duration(median_s)}"
    sentence += f": {', '.join(_reasons(naive, case))}."
    return NaiveTime(printed_s=naive.printed_s, finished_s=naive.finished_s, sentence=sentence)


def _reasons(naive: NaiveStopwatch, case: Case) -> list[str]:
    set_up_s, call_s = naive.made_s - naive.started_s, naive.printed_s - naive.made_s
    reasons = [
        f"{format_duration(set_up_s)} went into preparing the work",
        f"{format_duration(call_s)} into the very first call, without warm-up",
    ]
    if case.is_on_card:
        late_s = naive.finished_s - naive.printed_s
        reasons.insert(0, f"{format_duration(naive.started_s)} went into starting CUDA")
        reasons[-1] += " and without waiting for the card"
        reasons.append(f"which finished {format_duration(late_s)} later")
    return reasons
