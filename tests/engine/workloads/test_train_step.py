import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from gpu_studio.engine.workloads import train_step
from gpu_studio.engine.workloads.case import Case, make_case
from gpu_studio.engine.workloads.train_step import TrainStep

CPU = torch.device("cpu")
WORKLOAD = TrainStep()
AMPS = [("off", "default"), ("on", "default"), ("on", "float16")]


def case_of(size: int = 16, **options: str) -> Case:
    return make_case(WORKLOAD.description, CPU, size, options=options)


@contextlib.contextmanager
def call_of(**options: str) -> Iterator[Any]:
    with contextlib.closing(WORKLOAD.prepare(case_of(**options))) as call:
        yield call


@pytest.mark.parametrize(("amp", "amp_dtype"), AMPS)
@pytest.mark.parametrize("size", [1, 33])
def test_a_device_that_learns_right_is_verified(amp: str, amp_dtype: str, size: int):
    check = WORKLOAD.verify(case_of(size, amp=amp, amp_dtype=amp_dtype))
    assert check.verified, check.sentence


@pytest.mark.parametrize(("amp", "amp_dtype"), AMPS)
def test_the_loss_goes_down_from_the_same_start(
    amp: str, amp_dtype: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(train_step, "_LONGEST_CURVE_S", 30.0)
    monkeypatch.setattr(train_step, "_CURVE_STEPS", 12)
    with call_of(amp=amp, amp_dtype=amp_dtype) as call:
        for _ in range(5):
            call()
        losses = call.curves()["loss"]
        found = call.findings()
    assert len(losses) == 12
    assert losses[0] == pytest.approx(2.3, abs=0.2)  # of ten classes: ln 10
    assert losses[-1] < losses[0] / 2
    assert f"{losses[-1]:.3g}" in found[0]
    assert len(found) == (1 if amp == "off" else 2)
    if amp == "on":
        kind = "bfloat16" if amp_dtype == "default" else amp_dtype
        assert f"multiplied in {kind}" in found[1]
        # what GradScaler begins with; bfloat16 has the range of float32 and needs none
        assert ("65536" in found[1]) == (kind == "float16")
        assert ("Only float16 needs GradScaler" in found[1]) == (kind == "bfloat16")


@pytest.mark.parametrize(("amp", "amp_dtype"), AMPS)
def test_its_snippet_runs_as_it_stands(
    amp: str, amp_dtype: str, capsys: pytest.CaptureFixture[str]
):
    lines = WORKLOAD.snippet(case_of(8, amp=amp, amp_dtype=amp_dtype))
    assert f'amp = 8, "cpu", {amp == "on"}' in lines
    exec(compile(lines, "snippet", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out.splitlines()
    assert float(printed[0].removesuffix(" s a call")) > 0
    first, last = printed[1].removeprefix("loss ").split(" -> ")
    assert float(last) < float(first)
