"""What the engine of the benchmark's tab answers, and the PC it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gpu_studio.core.messages.run_messages import (
    RunPhaseChanged,
    RunWorkload,
    WorkloadDescription,
    WorkloadOption,
)
from tests.fakes.pc import gt_1030
from tests.fakes.run_answers import batch, call_time_s, finished, samples_of, started
from tests.fakes.scripted_engine import Pause, ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator


with_a_card = pytest.mark.parametrize("inventory", [gt_1030()])


def hold(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
    yield started(request)
    yield RunPhaseChanged(run_id=request.run_id, phase="timing", expected_call_s=1.2)
    yield batch(request, samples_of(request, 8), spent_s=0.5)
    yield Pause()
    yield finished(request, samples_of(request, 8))


def train_step(**changes: Any) -> WorkloadDescription:
    plain = WorkloadDescription(
        name="train_step",
        title="A training step",
        sentence="Forward, loss, backward, optimizer.",
        dtypes=("float32",),
        sizes=(32, 64),
        throughput_unit="samples/s",
        options=(
            WorkloadOption(
                name="amp", title="Mixed precision", sentence="What AMP does.",
                values=("off", "float16", "bfloat16"),
            ),
        ),
        size_title="Rows of a batch",
        size_text="batch of {size}",
        refuses={"cold": "A step writes its weights: there is no cold one."},
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def slow_to_reach(request: RunWorkload) -> float:
    """Return the invented time of a call whose copies take as long as two launches."""
    return call_time_s(request) + (400e-6 if request.transfers else 0.0)


def parts_of(request: RunWorkload) -> dict[str, float]:
    if request.device == "cpu":
        return {"compute": 1e-3}
    return {"copy in": 2e-4, "launch": 1e-5, "compute": 5e-4, "copy out": 9e-5}
