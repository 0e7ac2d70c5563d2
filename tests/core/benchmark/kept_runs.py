"""Finished runs as files, made for the tests of what keeps and reads them."""

from typing import Any

import msgspec

from gpu_studio.core.benchmark.kept_run import KeptRun, kept_of
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.messages.run_messages import RunWorkload
from tests.fakes.run_answers import changed, run_events

KEPT_AT = "2026-03-01T12:23:47.000+00:00"


def finished_run(size: int = 64, device: str = "cpu", **request: Any) -> Run:
    asked = {"run_id": "run-1", "workload": "matmul", "dtype": "float32", **request}
    run = Run(RunWorkload(size=size, device=device, **asked))
    for event in run_events(run.request):
        run.apply(event)
    return run


def kept_run(kept_at: str = KEPT_AT, **changes: Any) -> KeptRun:
    kept = kept_of(finished_run(), kept_at)
    return msgspec.structs.replace(kept, result=changed(kept.result, **changes))
