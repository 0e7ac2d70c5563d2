from typing import Any

import numpy as np
import pytest
import torch

from gpu_studio.core.failure import StudioError
from gpu_studio.core.tensors import DTYPES, ITEM_BYTES
from gpu_studio.engine.workloads import proof
from gpu_studio.engine.workloads.case import Case
from gpu_studio.engine.workloads.elementwise import Elementwise
from gpu_studio.engine.workloads.matmul import Matmul
from gpu_studio.engine.workloads.proof import rows_to_check, tiled, tiled_rows
from gpu_studio.engine.workloads.registry import WORKLOADS, find_workload

CPU = torch.device("cpu")


def case_of(size: int, dtype: str = "float32", **options: str) -> Case:
    return Case(device=CPU, size=size, dtype=getattr(torch, dtype), options=options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 7, 512, 600])
@pytest.mark.parametrize("workload", [Elementwise(), Matmul()], ids=["elementwise", "matmul"])
def test_a_device_that_computes_right_is_verified(workload: Any, dtype: str, size: int):
    verification = workload.verify(case_of(size, dtype))
    assert verification.verified, verification.sentence
    where = "16 rows of 600 × 600" if size == 600 else f"all of {size} × {size}"
    assert verification.compared == (where,)


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
