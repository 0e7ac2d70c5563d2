import pytest
import torch

from gpu_studio.core.tensors import DTYPES
from gpu_studio.engine.workloads.case import Case, make_case
from gpu_studio.engine.workloads.linear import Linear, LinearLayer, TinyLinear
from gpu_studio.engine.workloads.proof import EXACT_UP_TO, whole_number_factors

CPU = torch.device("cpu")


def case_of(workload: LinearLayer, size: int, dtype: str = "float32", **options: str) -> Case:
    return make_case(workload.description, CPU, size, dtype, options=options)


def test_the_layers_are_those_of_their_sources():
    assert Linear().features(case_of(Linear(), 1)) == (1000, 500)
    assert TinyLinear().features(case_of(TinyLinear(), 1)) == (10, 10)
    assert TinyLinear().features(case_of(TinyLinear(), 1, outputs="1")) == (10, 1)
    assert 1000 in Linear.description.sizes


def test_the_work_of_a_layer_is_counted():
    work = TinyLinear().work(case_of(TinyLinear(), 7, "float16", outputs="1"))
    multiplications, additions = 7 * 10, 7 * (9 + 1)
    assert work.operations == work.throughput_work == multiplications + additions
    assert work.bytes_moved == work.memory_bytes == (7 * 10 + 10 + 1 + 7) * 2


def test_a_call_is_the_layer_and_records_nothing_for_gradients():
    call = Linear().prepare(case_of(Linear(), 3))
    result = call.function()
    assert result.shape == (3, 500)
    assert not result.requires_grad


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 5, 512, 700])
@pytest.mark.parametrize("workload", [TinyLinear(), Linear()], ids=["tiny_linear", "linear"])
def test_a_device_that_computes_right_is_verified(workload: LinearLayer, dtype: str, size: int):
    verification = workload.verify(case_of(workload, size, dtype))
    assert verification.verified, verification.sentence
    wanted = {1: "all of 1 row", 700: "16 of 700 rows"}.get(size, f"all of {size} rows")
    assert verification.compared == (wanted,)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("inner", "columns"), [(10, 1), (10, 10), (1000, 500)])
def test_sums_of_whole_numbers_with_a_bias_stay_in_the_exact_range(
    dtype: str, inner: int, columns: int
):
    exact_up_to = EXACT_UP_TO[getattr(torch, dtype)]
    rows, weights = whole_number_factors(512, inner, columns, exact_up_to - 3, computed_in=dtype)
    assert rows.shape == (512, inner)
    assert weights.shape == (inner, columns)
    assert int((rows.abs() @ weights.abs()).max()) + 3 <= exact_up_to
    assert bool((rows != 0).any(dim=0).all())  # every input is used
    assert bool((weights != 0).any(dim=0).all())
