"""An engine that gets no more memory of the system: its process has a limit."""

import gc
import re
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished, RunWorkload
from gpu_studio.engine.faults import failure_of
from tests.engine.answers import run_request
from tests.engine.engine_child import EngineChild

CPU_OOM = (
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you "
    "tried to allocate 67108864 bytes. Error code 12 (Cannot allocate memory)"
)
ASYNCHRONOUS = (
    "\nCUDA kernel errors might be asynchronously reported at some other API call, so the "
    "stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1"
)
OOM = (
    "CUDA out of memory. Tried to allocate 6.84 GiB. GPU 0 has a total capacity of 6.00 GiB of "
    "which 5.29 GiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes "
    "is reserved by PyTorch but unallocated."
)
NVML_ASSERT = (
    'NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":1407, '
    "please report a bug to PyTorch."
)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (torch.OutOfMemoryError(OOM), FailureKind.OUT_OF_MEMORY, "6.84\u202fGiB more was needed"),
        (RuntimeError(NVML_ASSERT), FailureKind.OUT_OF_MEMORY, "not enough memory"),
        (MemoryError(), FailureKind.OUT_OF_MEMORY, "The PC ran out of memory (RAM)."),
        (
            RuntimeError(CPU_OOM),
            FailureKind.OUT_OF_MEMORY,
            "The PC ran out of memory (RAM): 64\u202fMiB more was needed.",
        ),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"),
            FailureKind.OUT_OF_MEMORY,
            "not enough memory",
        ),
        (
            RuntimeError("CUDA error: no kernel image is available for execution on the device"),
            FailureKind.NO_KERNEL,
            "no code for this card",
        ),
        (
            AssertionError("Torch not compiled with CUDA enabled"),
            FailureKind.NO_CUDA,
            "built without CUDA",
        ),
        (
            RuntimeError("\"addmm_impl_cpu_\" not implemented for 'Half'"),
            FailureKind.DTYPE_UNSUPPORTED,
            "'Half'",
        ),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasGemmEx`"),
            FailureKind.DTYPE_UNSUPPORTED,
            "cublasGemmEx",
        ),
        *(
            (
                RuntimeError(f"cuDNN error: CUDNN_STATUS_{status}"),
                FailureKind.LIBRARY_UNSUPPORTED,
                status,
            )
            for status in ("NOT_INITIALIZED", "ARCH_MISMATCH")
        ),
        (ValueError("odd"), FailureKind.INTERNAL, "ValueError: odd"),
    ],
)
def test_errors_that_the_engine_survives(error: Exception, kind: FailureKind, words: str):
    failure = failure_of(error)
    assert failure.kind is kind
    assert words in failure.message
    assert not failure.fatal
    assert "\n" not in failure.message


@pytest.mark.parametrize(
    "text",
    [
        "CUDA error: an illegal memory access was encountered",
        "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`",
        "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
    ],
)
def test_after_any_other_error_of_a_card_the_engine_is_over(text: str):
    failure = failure_of(RuntimeError(text + ASYNCHRONOUS))
    assert failure.kind is FailureKind.CUDA_ERROR
    assert failure.fatal
    assert text.removeprefix("CUDA error: ") in failure.message
    assert "asynchronously" not in failure.message


def test_an_out_of_memory_sentence_has_the_errors_own_numbers():
    message = failure_of(torch.OutOfMemoryError(OOM)).message
    assert re.findall(r"[\d.]+\u202fGiB", message) == [
        "6.84\u202fGiB",
        "5.29\u202fGiB",
        "6\u202fGiB",
    ]


def test_a_sentence_of_ours_stays_as_it_is():
    failure = failure_of(StudioError(FailureKind.TOO_LARGE, "CUDA error: no, too large."))
    assert (failure.kind, failure.message) == (FailureKind.TOO_LARGE, "CUDA error: no, too large.")


def test_a_failure_keeps_nothing_of_the_error_alive():
    def fail() -> None:
        tensor = torch.ones(3)
        alive.append(weakref.ref(tensor))
        raise RuntimeError("by design")

    alive: list[weakref.ref[torch.Tensor]] = []
    try:
        fail()
    except RuntimeError as error:
        failure = failure_of(error)
    gc.collect()
    assert alive[0]() is None
    assert "in fail" in failure.traceback_text


# The small one is large enough for the buffers of all threads of numpy's OpenBLAS, which ends a
# process that has no room for them. Each of the three tensors of the large one takes 64 MiB.
_SMALL, _LARGE = 512, 4096
_REST_BYTES = 32 << 20


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineChild]:
    child = EngineChild(tmp_path / "log")
    yield child
    child.kill()


def multiply(size: int) -> RunWorkload:
    return run_request(workload="matmul", size=size, budget_s=0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process that runs")
def test_a_run_without_ram_fails_in_words_and_the_engine_stays(engine: EngineChild) -> None:
    assert isinstance(engine.ask(multiply(_SMALL))[-1], RunFinished)
    process = psutil.Process(engine.process.pid)
    limit_bytes = process.memory_info().vms + _REST_BYTES
    _, hard = process.rlimit(psutil.RLIMIT_AS)
    process.rlimit(psutil.RLIMIT_AS, (limit_bytes, hard))
    failed = engine.ask(multiply(_LARGE))[-1]
    assert isinstance(failed, RunFailed)
    assert failed.failure.kind is FailureKind.OUT_OF_MEMORY
    assert failed.failure.message.startswith("The PC ran out of memory (RAM): ")
    assert not failed.failure.fatal
    process.rlimit(psutil.RLIMIT_AS, (hard, hard))
    assert isinstance(engine.ask(multiply(_SMALL))[-1], RunFinished)
