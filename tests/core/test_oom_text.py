from __future__ import annotations

import pytest

from gpu_studio.core.oom_text import OomNumbers, is_out_of_memory, read_oom_text

MIB, GIB = 1 << 20, 1 << 30


def text_of_2_0(allowed: str = "") -> str:
    return (
        "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 1.95 GiB total capacity; "
        f"1.75 GiB already allocated; 3.81 MiB free; {allowed}1.76 GiB reserved in total by "
        "PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to "
        "avoid fragmentation."
    )


def text_since_2_1(
    capacity: str = "capacity", process: str = "", allowed: str = "", private: str = ""
) -> str:
    return (
        f"CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total {capacity} of "
        f"1.95 GiB of which 153.81 MiB is free. {process}{allowed}Of the allocated memory "
        f"1.75 GiB is allocated by PyTorch, {private}and 8.00 MiB is reserved by PyTorch but "
        "unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
    )


SINCE_2_1 = OomNumbers(
    tried_bytes=256 * MIB,
    total_bytes=round(1.95 * GIB),
    free_bytes=round(153.81 * MIB),
    allocated_bytes=round(1.75 * GIB),
    unallocated_bytes=8 * MIB,
)


def test_the_form_of_2_0():
    numbers = read_oom_text(text_of_2_0())
    assert numbers == OomNumbers(
        tried_bytes=20 * MIB,
        total_bytes=round(1.95 * GIB),
        free_bytes=round(3.81 * MIB),
        allocated_bytes=round(1.75 * GIB),
    )
    assert read_oom_text(text_of_2_0("512.00 MiB allowed; ")).limit_bytes == 512 * MIB


@pytest.mark.parametrize(
    "parts",
    [
        {"capacity": "capacty"},  # as 2.1 wrote it
        {},
        {"process": "Including non-PyTorch memory, this process has 1.79 GiB memory in use. "},
        {"process": "Process 123 has 1.50 GiB memory in use. " * 3},
        {"private": "with 64.00 MiB allocated in private pools (e.g., CUDA Graphs), "},
    ],
)
def test_the_forms_since_2_1(parts: dict[str, str]):
    assert read_oom_text(text_since_2_1(**parts)) == SINCE_2_1


def test_the_limit_is_there_only_where_one_is_set():
    assert read_oom_text(text_since_2_1()).limit_bytes is None
    assert read_oom_text(text_since_2_1(allowed="1.50 GiB allowed; ")).limit_bytes == 1.5 * GIB


@pytest.mark.parametrize(
    ("written", "size_bytes"),
    [("512 bytes", 512), ("2.00 KiB", 2048), ("2.50 MiB", 2621440), ("6.84 GiB", 7344394076)],
)
def test_every_unit(written: str, size_bytes: int):
    text = f"CUDA out of memory. Tried to allocate {written}. GPU 0 has"
    assert read_oom_text(text).tried_bytes == size_bytes


def test_a_size_the_driver_does_not_know_is_not_taken_for_one():
    text = text_since_2_1().replace("153.81 MiB is free", "17179869184.00 GiB is free")
    assert read_oom_text(text).free_bytes is None


def test_what_is_preemptively_rejected_has_its_request():
    text = (
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
        "per_process_memory_fraction limit. Requested size: 64.00 MiB"
    )
    assert read_oom_text(text) == OomNumbers(tried_bytes=64 * MIB)


def test_more_than_an_exbibyte_has_no_number():
    text = "CUDA out of memory. Tried to allocate more than 1EB memory."
    assert is_out_of_memory(text)
    assert read_oom_text(text) == OomNumbers()


def test_the_cpus_form():
    text = (
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 4398046511104 bytes. Error code 12 (Cannot allocate memory)"
    )
    assert is_out_of_memory(text)
    assert read_oom_text(text) == OomNumbers(tried_bytes=4398046511104)


@pytest.mark.parametrize(
    "text",
    [
        text_of_2_0(),
        text_since_2_1(),
        "CUDA error: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        'NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":1407',
        "DefaultCPUAllocator: not enough memory: you tried to allocate 5 bytes.",
    ],
)
def test_what_means_that_memory_ended(text: str):
    assert is_out_of_memory(text)


@pytest.mark.parametrize(
    "text", ["", "CUDA error: an illegal memory access was encountered", "NVML_SUCCESS == r"]
)
def test_what_does_not(text: str):
    assert not is_out_of_memory(text)
    assert read_oom_text(text) == OomNumbers()
