from __future__ import annotations

import pytest

from gpu_studio.core.memory.oom_reader import explain_oom_text
from tests.core.memory.test_oom_text import TEXTS, newer

MIB, GIB = 1 << 20, 1 << 30
OLD = (
    "CUDA out of memory. Tried to allocate {tried} (GPU 0; 1.95 GiB total capacity; 1.00 GiB "
    "already allocated; {free} free; {reserved} reserved in total by PyTorch)"
)


@pytest.mark.parametrize("text", [text for text, _ in TEXTS.values()], ids=TEXTS.keys())
def test_every_text_is_explained_with_its_own_numbers(text: str):
    found = explain_oom_text(text)
    assert found is not None
    assert found.errors == 1
    assert found.headline.endswith(".")
    assert found.meaning.endswith(".")
    assert 2 <= len(found.first_steps) == len(set(found.first_steps))
    if found.tank is not None:
        assert sum(part.size_bytes for part in found.tank.parts) == found.numbers.total_bytes


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (newer(), "card_full"),
        (newer(unallocated="200.00 MiB"), "fragmented"),
        (OLD.format(tried="500.00 MiB", free="100.00 MiB", reserved="1.50 GiB"), "fragmented"),
        (OLD.format(tried="700.00 MiB", free="100.00 MiB", reserved="1.50 GiB"), "card_full"),
        (newer(free="1.00 GiB", allowed="700.00 MiB allowed; "), "over_budget"),
        (newer(allowed="1.90 GiB allowed; "), "card_full"),
        (newer(processes="Process 7 has 1.00 GiB memory in use. "), "others"),
        (newer(processes="Process 7 has 1.00 MiB memory in use. "), "card_full"),
        (newer(tried="300.00 GiB"), "too_large"),
        (newer(free="300.00 MiB"), "raced"),
        ("CUDA out of memory. Tried to allocate more than 1EB memory.", "too_large"),
        ("CUDA error: out of memory", "unknown"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`",
         "library"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "library"),
        ('NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":1407',
         "nvml"),
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
         "allocate memory: you tried to allocate 4398046511104 bytes.", "cpu"),
        ("CUDA out of memory. Allocation was preemptively rejected because it would exceed "
         "per_process_memory_fraction limit. Requested size: 64.00 MiB", "over_budget"),
    ],
)  # fmt: skip
def test_the_numbers_say_what_it_was(text: str, kind: str):
    assert explain_oom_text(text).kind == kind


def test_of_several_errors_the_first_is_the_cause_and_the_last_can_be_had():
    first, second = newer(tried="1.00 GiB"), newer(tried="2.00 MiB", gpu="1")
    text = (
        f"Traceback (most recent call last):\n{first}\n\nDuring handling of the above exception, "
        f"another exception occurred:\n\n{second}\n"
    )
    assert explain_oom_text(text).errors == 2
    assert explain_oom_text(text).numbers.tried_bytes == GIB
    assert explain_oom_text(text).numbers.device_index == 0
    assert explain_oom_text(text, last=True).numbers.tried_bytes == 2 * MIB
    assert explain_oom_text(text, last=True).numbers.device_index == 1


def test_numbers_around_the_error_are_not_the_errors():
    around = "3.00 GiB free on disk; process 5 has 7.00 GiB memory in use. {} 9.00 GiB allowed"
    found = explain_oom_text(around.format("CUDA error: out of memory\n\nand then"))
    assert found.numbers.free_bytes is None
    assert found.numbers.processes == ()


@pytest.mark.parametrize("text", ["", "Killed", "Segmentation fault", "MemoryError", "x" * 10**6])
def test_another_text_is_not_explained(text: str):
    assert explain_oom_text(text) is None
