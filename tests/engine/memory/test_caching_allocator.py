import psutil
import pytest
import torch

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.memory.modelled_memory import budget_fraction
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.messages.memory_messages import (
    EmptyCache,
    MemoryRead,
    ReadMemory,
    RunMemoryExperiment,
)
from gpu_studio.engine.accelerators.cuda import Cuda
from gpu_studio.engine.memory import caching_allocator, cuda_memory
from tests.engine.answers import ask

MIB = 1 << 20


def test_on_the_cpu_it_is_the_engines_process_and_the_pcs_memory():
    block = bytearray(64 * MIB)
    block[::4096] = b"x" * len(block[::4096])
    (read,) = ask(ReadMemory(device="cpu"))
    assert isinstance(read, MemoryRead)
    assert read.total_bytes == psutil.virtual_memory().total
    assert 0 < read.free_bytes < read.total_bytes
    assert read.process_bytes > 64 * MIB
    assert read.allocated_bytes is None
    assert read.reserved_bytes is None
    (later,) = ask(ReadMemory(device="cpu"))
    assert later.taken_at_s >= read.taken_at_s


def test_a_card_that_is_not_in_use_is_not_touched(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda device: pytest.fail("made a context"))
    read = caching_allocator.read_memory(torch.device("cuda", 1))
    assert read.device == "cuda:1"
    numbers = {name: getattr(read, name) for name in MemoryRead.__struct_fields__}
    assert {name for name, value in numbers.items() if value is not None} == {
        "device",
        "taken_at_s",
        "modelled",
    }
    assert not read.modelled


class FakeAllocator:
    """What PyTorch would say of a card."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, share: float | None = 1.0, **stats: int
    ) -> None:
        self.stats = stats
        ask = "get_per_process_memory_fraction"
        if share is None:  # as in 2.6
            monkeypatch.delattr(torch.cuda, ask)
        else:
            monkeypatch.setattr(torch.cuda, ask, lambda device: share)
        monkeypatch.setattr(Cuda, "has_context", lambda _, device: True)
        monkeypatch.setattr(torch.cuda, "memory_stats", self._stats)
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100 * MIB, 2000 * MIB))
        monkeypatch.setattr(torch.cuda, "memory_snapshot", list)

    def _stats(self, device: torch.device) -> dict[str, int]:
        return {f"{name}.all.current": value for name, value in self.stats.items()}


def test_releasable_is_what_is_neither_used_nor_beside_something_used(
    monkeypatch: pytest.MonkeyPatch,
):
    # 1 MiB + 1 byte, then 5 MiB and 9 MiB: as PyTorch's allocator counts them.
    FakeAllocator(
        monkeypatch,
        allocated_bytes=15729152,
        reserved_bytes=20971520 + 100 * MIB,
        active_bytes=15729152,
        inactive_split_bytes=5242368,
    )
    read = caching_allocator.read_memory(torch.device("cuda", 0))
    assert read.releasable_bytes == 100 * MIB
    assert (read.free_bytes, read.total_bytes) == (100 * MIB, 2000 * MIB)
    assert read.allocated_bytes == 15729152


def test_on_the_cpu_there_is_no_cache_to_empty():
    (failed,) = ask(EmptyCache(device="cpu"))
    assert isinstance(failed, RequestFailed)
    assert "no cache to empty" in failed.failure.message


def test_the_experiment_needs_a_card():
    (failed,) = ask(RunMemoryExperiment(preset="gt1030", device="cpu"))
    assert isinstance(failed, RequestFailed)
    assert failed.failure.kind is FailureKind.BAD_REQUEST
    assert "The CPU has none" in failed.failure.message


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError('NVML_SUCCESS == r INTERNAL ASSERT FAILED at "CUDACachingAllocator.cpp":1'),
    ],
)
def test_the_end_of_memory_is_distinguished_from_other_errors(error: RuntimeError):
    card = cuda_memory.CudaMemory(torch.device("cuda", 0))
    assert card.is_out_of_memory(error)
    assert not card.is_out_of_memory(RuntimeError("CUDA error: unspecified launch failure"))


def test_a_pytorch_that_does_not_report_its_limit_has_none(monkeypatch: pytest.MonkeyPatch):
    FakeAllocator(monkeypatch, share=None)
    assert Cuda().limit_share(torch.device("cuda", 0)) == 1.0
    assert caching_allocator.read_memory(torch.device("cuda", 0)).limit_bytes is None


def test_a_limit_is_told_to_the_byte(monkeypatch: pytest.MonkeyPatch):
    share = budget_fraction(1500 * MIB + 1, 2000 * MIB)
    FakeAllocator(monkeypatch, share=share)
    assert caching_allocator.read_memory(torch.device("cuda", 0)).limit_bytes == 1500 * MIB + 1
