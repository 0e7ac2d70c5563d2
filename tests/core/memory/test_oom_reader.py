from __future__ import annotations

import threading

import pytest

from gpu_studio.core.memory.experiment import run_experiment
from gpu_studio.core.memory.modelled_cards import card_at
from gpu_studio.core.memory.modelled_memory import ModelledMemory
from gpu_studio.core.memory.oom_reader import explain_oom_text
from gpu_studio.core.messages.memory_messages import RunMemoryExperiment
from tests.core.memory.test_oom_text import newer

MIB, GIB = 1 << 20, 1 << 30
OLD = (
    "CUDA out of memory. Tried to allocate {tried} (GPU 0; 1.95 GiB total capacity; 1.00 GiB "
    "already allocated; {free} free; {reserved} reserved in total by PyTorch)"
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (newer(), "card_full"),
        (newer(unallocated="200.00 MiB"), "fragmented"),
        (OLD.format(tried="500.00 MiB", free="100.00 MiB", reserved="1.50 GiB"), "fragmented"),
        (OLD.format(tried="700.00 MiB", free="100.00 MiB", reserved="1.50 GiB"), "card_full"),
        (newer(free="1.00 GiB", allowed="700.00 MiB allowed; "), "over_budget"),
        (newer(allowed="1.90 GiB allowed; "), "card_full"),
        (newer(allocated="700.00 MiB", processes="Process 7 has 1.00 GiB memory in use. "),
         "others"),
        (newer(processes="Process 7 has 1.00 MiB memory in use. "), "card_full"),
        (newer(tried="300.00 GiB"), "too_large"),
        (newer(free="300.00 MiB"), "had_room"),
        (newer(free="256.00 MiB", unallocated="0 bytes"), "card_full"),
        ("CUDA out of memory. Tried to allocate more than 1EB memory.", "too_large"),
        ("CUDA error: out of memory", "unknown"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`",
         "unknown"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "unknown"),
        ('NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":1407',
         "unknown"),
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
         "allocate memory: you tried to allocate 4398046511104 bytes.", "ram"),
        ("CUDA out of memory. Allocation was preemptively rejected because it would exceed "
         "per_process_memory_fraction limit. Requested size: 64.00 MiB", "over_budget"),
    ],
)  # fmt: skip
def test_the_numbers_say_what_it_was(text: str, kind: str):
    assert explain_oom_text(text).kind == kind


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        # 1.46 GiB less 1.25 GiB is 218 MiB: with the holes more than enough.
        ({"tried": "424.00 MiB", "allocated": "48.00 MiB", "unallocated": "1.20 GiB"},
         "fragmented"),
        ({"tried": "256.00 MiB", "allocated": "1.25 GiB", "unallocated": "0 bytes"}, "over_budget"),
        ({"tried": "256.00 MiB", "allocated": "1.25 GiB", "unallocated": "8.00 MiB"},
         "over_budget"),
        # 10 MiB left of the limit, or none: two decimals do not say.
        ({"tried": "2.00 MiB", "allocated": "1.45 GiB", "unallocated": "0.50 MiB"}, "over_budget"),
        # Without the other process it would still be over the limit.
        ({"tried": "800.00 MiB", "allocated": "1.25 GiB",
          "processes": "Process 7 has 1.00 GiB memory in use. "}, "card_full"),
    ],
)  # fmt: skip
def test_a_limit_is_distinguished_from_fragmentation_within_it(parts: dict[str, str], kind: str):
    values = {"free": "716.00 MiB", "allowed": "1.46 GiB allowed; ", "total": "2.00 GiB", **parts}
    assert explain_oom_text(newer(**values)).kind == kind


@pytest.mark.parametrize("preset", ["gt1030", "one_big", "fragmentation", "activations"])
@pytest.mark.parametrize("whole_card", [False, True])
@pytest.mark.parametrize("mib", [1996, 2048, 81920])
def test_the_reader_calls_an_experiments_error_what_the_lab_calls_it(
    preset: str, whole_card: bool, mib: int
):
    request = RunMemoryExperiment(preset=preset, device=f"model:{mib}", whole_card=whole_card)
    card = ModelledMemory(card_at(request.device))
    *_, finished = run_experiment(request, card, threading.Event())
    assert explain_oom_text(finished.error_text).kind == finished.outcome


def test_of_several_errors_the_first_is_the_cause():
    first, second = newer(tried="1.00 GiB"), newer(tried="2.00 MiB", gpu="1")
    text = (
        f"Traceback (most recent call last):\n{first}\n\nDuring handling of the above exception, "
        f"another exception occurred:\n\n{second}\n"
    )
    assert explain_oom_text(text).errors == 2
    assert explain_oom_text(text).numbers.tried_bytes == GIB
    assert explain_oom_text(text).numbers.device_index == 0
    assert "2 errors. This is the first" in explain_oom_text(text).answer.sentence


def test_numbers_around_the_error_are_not_the_errors():
    around = "3.00 GiB free on disk; process 5 has 7.00 GiB memory in use. {} 9.00 GiB allowed"
    found = explain_oom_text(around.format("CUDA error: out of memory\n\nand then"))
    assert found.numbers.free_bytes is None
    assert found.numbers.processes == ()


@pytest.mark.parametrize("text", ["", "Killed", "Segmentation fault", "MemoryError", "x" * 10**6])
def test_another_text_is_not_explained(text: str):
    assert explain_oom_text(text) is None
