"""The two forms of the ten statements; what both have in common is in `test_workloads`."""

from __future__ import annotations

import pytest
import torch

from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.core.tensors import DTYPES
from gpu_studio.engine.workloads.case import Case
from gpu_studio.engine.workloads.elementwise import FORMS, Elementwise
from tests.engine.answers import ask, run_request
from tests.engine.workloads.test_workloads import Accounting, Corrupting

CPU = torch.device("cpu")


def case_of(form: str, size: int = 24, dtype: str = "float32") -> Case:
    return Case(device=CPU, size=size, dtype=getattr(torch, dtype), options={"form": form})


@pytest.mark.parametrize("form", FORMS)
def test_each_form_counts_what_pytorch_does(form: str):
    case = case_of(form)
    operands = Elementwise().operands(case)
    with Accounting(operands=3, size=24) as counted:
        Elementwise().compute(case)(*operands)
    work = Elementwise().work(case)
    assert counted.operations == FORMS[form].passes
    assert counted.bytes_moved == work.bytes_moved == work.throughput_work
    assert form != "statements" or work.operations == counted.operations * 24 * 24
    assert counted.most_alive * 24 * 24 * 4 == work.memory_bytes


def test_the_fused_form_moves_less_than_half():
    statements, fused = (Elementwise().work(case_of(form)) for form in ("statements", "fused"))
    assert fused.bytes_moved < statements.bytes_moved / 2
    assert fused.memory_bytes < statements.memory_bytes / 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 7, 600])
def test_the_fused_form_is_verified_against_the_same_result(dtype: str, size: int):
    verification = Elementwise().verify(case_of("fused", size, dtype))
    assert verification.verified, verification.sentence


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operation", ["add", "add_", "mul", "addcmul_"])
def test_one_wrong_value_of_the_fused_form_is_found(dtype: str, operation: str):
    by = 100 * torch.finfo(getattr(torch, dtype)).eps
    with Corrupting(operation, by=by):
        assert not Elementwise().verify(case_of("fused", 24, dtype)).verified


@pytest.mark.parametrize(("form", "operations"), [("statements", 14), ("fused", 6)])
def test_a_run_says_how_many_operations_it_took(form: str, operations: int):
    result = ask(run_request(options={"form": form}))[-1]
    assert isinstance(result, RunFinished)
    assert result.options == {"form": form}
    finding, moved = result.details.findings
    assert finding.startswith(f"One call runs {operations} operations")
    assert "all operations of a call move " in moved
