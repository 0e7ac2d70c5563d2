"""Records what a workload asks of a card's allocator, to replay it on another card.

Recording takes time at every allocation, so it is no part of a timed run.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.experiment import check_snapshot_place
from gpu_studio.core.memory.memory_bench import write_snapshot
from gpu_studio.core.messages.memory_messages import MemoryRecorded
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.engine.benchmark.admission import admit, refuse_long_kernel, refuse_too_large
from gpu_studio.engine.device import accelerator_of, prove_kernels, synchronize
from gpu_studio.engine.memory.cuda_memory import CudaMemory
from gpu_studio.engine.workloads.registry import find_workload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event as Flag

    from gpu_studio.core.messages.memory_messages import RecordMemory
    from gpu_studio.engine.workloads.case import Case
    from gpu_studio.engine.workloads.workload import Workload

# The first one has no optimizer state yet, the second makes it, the third is as all others.
_CALLS = 3


def record_memory(request: RecordMemory, stop: Flag) -> MemoryRecorded:
    """Make a workload's operands and a few calls, and write the allocator's history to a file.

    Args:
        request: the workload, its card and the file.
        stop: set by another thread to end it between two calls; the file then has those before.

    Raises:
        StudioError: the request is impossible; the message says why.
    """
    path = Path(request.snapshot_path)
    check_snapshot_place(path)
    workload = find_workload(request.workload)
    case = admit(RunWorkload(run_id="", **request.parameters), workload)
    if not case.is_on_card:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            "A history is recorded by PyTorch's allocator on a card. The CPU has none.",
        )
    if reason := accelerator_of(case.device).lacks("segments"):
        raise StudioError(FailureKind.BAD_REQUEST, reason)
    prove_kernels(case.device)
    refuse_too_large(workload, case)
    refuse_long_kernel(workload, case, None)
    card = CudaMemory(case.device)
    card.prepare()
    card.start_history()
    calls, is_out_of_memory = 0, False
    try:
        for _ in _calls_of(workload, case, stop):
            calls += 1
    except Exception as error:
        if not card.is_out_of_memory(error):
            raise
        is_out_of_memory = True
    finally:
        write_snapshot(card, path)
    return MemoryRecorded(
        **{**request.parameters, "options": dict(case.options)},
        snapshot_path=request.snapshot_path,
        calls=calls,
        is_out_of_memory=is_out_of_memory,
    )


def _calls_of(workload: Workload, case: Case, stop: Flag) -> Iterator[None]:
    """Make the operands and call; yield after each call."""
    with contextlib.closing(workload.prepare(case)) as call:
        for _ in range(_CALLS):
            if stop.is_set():
                return
            call()
            synchronize(case.device)
            if call.elapsed_s() is not None:
                raise StudioError(
                    FailureKind.BAD_REQUEST,
                    f"{workload.description.name} works in processes of its own, and the history "
                    "of this one has nothing of them.",
                )
            yield
