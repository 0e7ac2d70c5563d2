"""Checks a device's answers before they are timed, and tells how long a large call will take."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from gpu_studio.engine.stopwatch import time_once
from gpu_studio.engine.workloads.proof import Verification

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.engine.workloads.case import Case
    from gpu_studio.engine.workloads.workload import Workload

# A large result is only checked where that takes about as long as the rest of the set-up.
_LONGEST_CHECK_S = 1.0


def check_answers(
    workload: Workload, case: Case, check_stop: Callable[[], None]
) -> tuple[Verification, float | None]:
    """Return the check and the expected seconds of a call; None for a small one.

    Args:
        workload: what is checked.
        case: the call that will be timed.
        check_stop: called between the steps; raises to end them.
    """
    small = case.at(min(case.size, workload.small_up_to))
    check = workload.verify(small)
    check_stop()
    if case.size == small.size:
        return check, None
    expected_call_s = _expected_call_s(workload, case, small)
    check_stop()
    if not check.verified:
        return check, expected_call_s
    if expected_call_s > _LONGEST_CHECK_S:
        # Another size may run other code: that the small one is right proves nothing of it.
        finding = f"too long to check at this size; {check.finding}"
        return Verification(None, finding, check.compared), expected_call_s
    large = workload.verify(case)
    if large.verified:
        large = Verification(True, large.finding, check.compared + large.compared)
    return large, expected_call_s


def _expected_call_s(workload: Workload, case: Case, small: Case) -> float:
    with contextlib.closing(workload.prepare(small)) as call:
        time_once(call, small.device)
        small_call_s = time_once(call, small.device)
    large_work, small_work = workload.work(case), workload.work(small)
    return small_call_s * large_work.throughput_work / small_work.throughput_work
