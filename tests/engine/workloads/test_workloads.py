from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gpu_studio.core.failure import StudioError
from gpu_studio.core.tensors import DTYPES, ITEM_BYTES
from gpu_studio.engine.workloads import proof
from gpu_studio.engine.workloads.case import Case
from gpu_studio.engine.workloads.elementwise import Elementwise, crunch_the_numbers
from gpu_studio.engine.workloads.matmul import Matmul
from gpu_studio.engine.workloads.proof import rows_to_check, tiled, tiled_rows
from gpu_studio.engine.workloads.registry import WORKLOADS, find_workload

CPU = torch.device("cpu")


def case_of(size: int, dtype: str = "float32", **options: str) -> Case:
    return Case(device=CPU, size=size, dtype=getattr(torch, dtype), options=options)


class Accounting(TorchDispatchMode):
    """Counts what PyTorch really does: operations, bytes, and the matrices alive at once."""

    def __init__(self, operands: int, size: int) -> None:
        super().__init__()
        self._size = size
        self._alive: list[weakref.ref[torch.Tensor]] = []
        self._operands = operands
        self.operations = 0
        self.bytes_moved = 0
        self.most_alive = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        result = function(*arguments, **(named or {}))
        matrices = [part for part in arguments if isinstance(part, torch.Tensor) and part.dim()]
        self.operations += 1
        self.bytes_moved += sum(part.nbytes for part in [*matrices, result])
        self._alive.append(weakref.ref(result))
        alive = (one for reference in self._alive if (one := reference()) is not None)
        # What was computed in place is no matrix of its own.
        storages = {one.untyped_storage().data_ptr() for one in alive}
        self.most_alive = max(self.most_alive, self._operands + len(storages))
        return result


def test_one_call_of_elementwise_is_the_posts_ten_statements():
    import ast
    import inspect

    (function,) = ast.parse(inspect.getsource(crunch_the_numbers)).body
    assert sum(isinstance(line, ast.Assign) for line in function.body) == 10


def test_needed_memory_is_of_all_matrices_at_once():
    assert Elementwise().work(case_of(1024, "float16")).memory_bytes == 11 * 1024 * 1024 * 2
    assert Matmul().work(case_of(1024, "float64")).memory_bytes == 3 * 1024 * 1024 * 8


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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 7, 512, 600])
@pytest.mark.parametrize("workload", [Elementwise(), Matmul()], ids=["elementwise", "matmul"])
def test_a_device_that_computes_right_is_verified(workload: Any, dtype: str, size: int):
    verification = workload.verify(case_of(size, dtype))
    assert verification.verified, verification.sentence
    where = "16 rows of 600 × 600" if size == 600 else f"all of {size} × {size}"
    assert verification.compared == (where,)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [3, 600])
def test_one_wrong_value_of_a_product_is_found(dtype: str, size: int):
    with Corrupting("mm", by=1.0):
        verification = Matmul().verify(case_of(size, dtype))
    assert not verification.verified
    assert verification.finding.startswith("1 of ")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [3, 600])
@pytest.mark.parametrize("operation", ["add", "mul", "sub"])
def test_one_wrong_value_of_an_elementwise_operation_is_found(
    dtype: str, size: int, operation: str
):
    # Seen from 100 eps on: the bound of the rounding is 20 eps.
    with Corrupting(operation, by=100 * torch.finfo(getattr(torch, dtype)).eps):
        verification = Elementwise().verify(case_of(size, dtype))
    assert not verification.verified


@pytest.mark.parametrize(("workload", "operation"), [(Elementwise(), "add"), (Matmul(), "mm")])
def test_not_a_number_is_wrong(workload: Any, operation: str):
    with Corrupting(operation, by=float("nan")):
        assert not workload.verify(case_of(8)).verified


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("side", "copies"), [(1, 1), (300, 1), (512, 2), (512, 32), (512, 128)])
def test_no_partial_sum_of_whole_numbers_leaves_the_exact_range(dtype: str, side: int, copies: int):
    from gpu_studio.engine.workloads.proof import EXACT_UP_TO, whole_number_factors

    exact_up_to = EXACT_UP_TO[getattr(torch, dtype)]
    a, b = whole_number_factors(side, side, side, exact_up_to, computed_in=dtype, copies=copies)
    # The largest that any selection of terms of a sum can reach, in any order.
    assert int((a.abs() @ b.abs()).max()) * copies <= exact_up_to
    assert int(a.abs().sum()) > 0
    assert int(b.abs().sum()) > 0
    if side > 1:
        assert bool((a != 0).any(dim=0).all()) or copies > 2  # every column is used


@pytest.mark.parametrize("dtype", DTYPES)
def test_whole_numbers_up_to_the_limit_are_exact(dtype: str):
    from gpu_studio.engine.workloads.proof import EXACT_UP_TO

    limit = EXACT_UP_TO[getattr(torch, dtype)]
    numbers = torch.tensor([limit, limit - 1, -limit], dtype=torch.int64)
    assert torch.equal(numbers.to(getattr(torch, dtype)).to(torch.int64), numbers)
    beyond = torch.tensor([limit + 1])
    assert not torch.equal(beyond.to(getattr(torch, dtype)).to(torch.int64), beyond)


def test_tiles_repeat_and_rows_of_them_are_those_of_the_whole():
    block = torch.arange(9.0).view(3, 3)
    whole = tiled(block, 7, CPU)
    assert whole.shape == (7, 7)
    assert torch.equal(whole[3:6, 3:6], block)
    assert torch.equal(whole[6, :], whole[0, :])
    rows = np.array([0, 4, 6])
    assert np.array_equal(tiled_rows(block.numpy(), 7, rows), whole.numpy()[rows])


@pytest.mark.parametrize("size", [513, 1000, 1 << 20])
def test_rows_of_a_large_result_include_both_ends(size: int):
    rows = rows_to_check(size)
    assert len(rows) == 16
    assert (rows[0], rows[-1]) == (0, size - 1)


def test_fetched_rows_are_those_of_the_result():
    result = torch.arange(600.0).view(600, 1).expand(600, 600)
    rows = rows_to_check(600)
    assert np.array_equal(proof.fetch_rows(result, rows)[:, 5], rows)


def test_workloads_are_found_by_name():
    for workload in WORKLOADS:
        assert find_workload(workload.description.name) is workload
        assert set(workload.description.dtypes) <= set(ITEM_BYTES)
    with pytest.raises(StudioError, match="elementwise, matmul"):
        find_workload("x" * 1000)


def test_the_post_is_named_where_its_statements_are_quoted():
    assert "Radosław Śmigielski" in Elementwise.description.source
