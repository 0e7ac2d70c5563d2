from dataclasses import replace

import pytest

from tests.soft.child import RaisedError
from tests.soft.conftest import MakeChild, MakePc
from tests.softcards.cards import MIB
from tests.softcards.catalogue import GT_1030, MODERN_1996_MIB

CONTEXT = 60 * MIB

ALLOCATOR = "[torch.cuda.memory_allocated(), torch.cuda.memory_reserved()]"

NVML = """
import pynvml
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
plain = pynvml.nvmlDeviceGetMemoryInfo(handle)
split = pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)
"""

FILL = """
kept = []
def fill(number):
    for _ in range(number):
        kept.append(torch.empty(8192, 8192, device="cuda"))
"""


def test_cuda_and_nvml_agree(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(MODERN_1996_MIB))
    one.run("x = torch.empty(300 * MIB, dtype=torch.uint8, device='cuda')")
    free, total = one.run("torch.cuda.mem_get_info()")
    assert total == 1996 * MIB
    assert free == total - CONTEXT - 300 * MIB
    sizes = (
        "[plain.total, plain.free, plain.used, split.total, split.free, split.used, split.reserved]"
    )
    assert one.run(NVML + sizes) == [
        2048 * MIB,
        free,
        2048 * MIB - free,
        2048 * MIB,
        free,
        CONTEXT + 300 * MIB,
        52 * MIB,
    ]


def test_out_of_memory_on_a_gt_1030(soft_pc: MakePc, child: MakeChild) -> None:
    """The sizes of Radosław Śmigielski's "How can I run any code on my GPU, instead on CPU?"."""
    one = child(soft_pc(GT_1030))
    one.run(FILL + "fill(7)")
    with pytest.raises(RaisedError) as raised:
        one.run("fill(1)")
    text = raised.value.text
    assert raised.value.kind == "OutOfMemoryError"
    assert "Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 1.95 GiB of which" in text
    assert "144.00 MiB is free." in text
    assert "this process has 1.81 GiB memory in use." in text
    assert "1.75 GiB is allocated by PyTorch, and 0 bytes is reserved" in text
    assert one.run(ALLOCATOR) == [1792 * MIB, 1792 * MIB]
    stats = one.run("s = torch.cuda.memory_stats(); [s['num_ooms'], s['num_alloc_retries']]")
    assert stats == [1, 1]


def test_the_published_error_of_a_gt_1030(soft_pc: MakePc, child: MakeChild) -> None:
    """The same post's text, number by number.

    Its context and desktop are what the text implies; 8 MiB stay over from a larger block that one
    of the matrices was cut from.
    """
    one = child(soft_pc(replace(GT_1030, context_mib=38, other_mib=4.19)))
    one.run("x = torch.empty(264 * MIB, dtype=torch.uint8, device='cuda'); del x")
    one.run(FILL + "fill(7)")
    with pytest.raises(RaisedError) as raised:
        one.run("fill(1)")
    assert raised.value.text.startswith(
        "CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 1.95 GiB "
        "of which 153.81 MiB is free. Including non-PyTorch memory, this process has 1.79 GiB "
        "memory in use. Of the allocated memory 1.75 GiB is allocated by PyTorch, and 8.00 MiB is "
        "reserved by PyTorch but unallocated."
    )


def test_a_fraction_bounds_the_process(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(MODERN_1996_MIB))
    one.run("torch.cuda.set_per_process_memory_fraction(0.25)\n" + FILL + "fill(1)")
    with pytest.raises(RaisedError) as raised:
        one.run("fill(1)")
    assert raised.value.kind == "OutOfMemoryError"
    assert "499.00 MiB allowed;" in raised.value.text
    one.run("torch.cuda.set_per_process_memory_fraction(1.0); fill(1)")
