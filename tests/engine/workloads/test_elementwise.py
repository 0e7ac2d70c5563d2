"""The two forms of the ten statements; what both have in common is in `test_workloads`."""

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.engine.workloads.case import Case
from gpu_studio.engine.workloads.elementwise import Elementwise
from tests.engine.answers import ask, run_request

CPU = torch.device("cpu")


class Corrupting(TorchDispatchMode):
    """A device that computes one value wrong: the last of every result of one operation."""

    def __init__(self, operation: str, by: float) -> None:
        super().__init__()
        self._operation = operation
        self._by = by

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        result = function(*arguments, **(named or {}))
        if function.overloadpacket.__name__ == self._operation and result.is_floating_point():
            result.view(-1)[-1] += self._by
        return result


def case_of(form: str, size: int = 24, dtype: str = "float32") -> Case:
    return Case(device=CPU, size=size, dtype=getattr(torch, dtype), options={"form": form})


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("form", "operation"),
    [("statements", "add"), ("statements", "sub"), ("fused", "add_"), ("fused", "addcmul_")],
)
def test_one_wrong_value_of_an_operation_is_found(form: str, dtype: str, operation: str):
    # Seen from 100 eps on: the bound of the rounding is 20 eps.
    by = 100 * torch.finfo(getattr(torch, dtype)).eps
    with Corrupting(operation, by=by):
        assert not Elementwise().verify(case_of(form, 24, dtype)).verified


@pytest.mark.parametrize(("form", "operations"), [("statements", 14), ("fused", 6)])
def test_a_run_says_how_many_operations_it_took(form: str, operations: int):
    result = ask(run_request(options={"form": form}))[-1]
    assert isinstance(result, RunFinished)
    assert result.options == {"form": form}
    finding, moved = result.details.findings
    assert finding.startswith(f"One call runs {operations} operations")
    assert "all operations of a call move " in moved
