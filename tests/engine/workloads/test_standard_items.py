import pytest
import torch

from gpu_studio.core.benchmark.standard import STANDARD_1, StandardItem
from gpu_studio.engine.workloads.case import make_case
from gpu_studio.engine.workloads.registry import find_workload

_CARD_BYTES = 2 << 30
_DESKTOP_BYTES = 1 << 30


@pytest.mark.parametrize("item", STANDARD_1, ids=lambda item: item.key)
def test_an_item_is_as_much_work_as_its_standard_says_and_fits_a_card_of_2_gib(
    item: StandardItem,
) -> None:
    workload = find_workload(item.workload)
    case = make_case(
        workload.description, torch.device("cpu"), item.size, item.dtype, options=item.options
    )
    assert dict(case.options) == item.options
    assert workload.description.throughput_unit == item.unit
    assert workload.work(case).throughput_work == item.work
    assert workload.work(case).memory_bytes <= _CARD_BYTES - _DESKTOP_BYTES
