"""The engine's child process on soft cards: what it answers, and what it did to the cards.

Kernels of soft cards compute nothing, so proofs of results are false here, and runs end all the
same.
"""

from typing import Any

import pytest

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.memory_messages import EmptyCache, MemoryRead, ReadMemory
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.placement_messages import PlaceModel
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    SamplesMeasured,
)
from gpu_studio.core.protocol import encode
from gpu_studio.engine.serve import EXIT_FATAL
from tests.engine.answers import only, run_request
from tests.engine.engine_child import EngineChild
from tests.patience import until
from tests.soft.conftest import MakePc, StartEngine
from tests.softcards.cards import MIB, Card, SoftPc
from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060


def run_on(device: str, **changes: Any) -> Any:
    return run_request(device=device, **{"size": 512, "budget_s": 0.2, **changes})


def contexts(pc: SoftPc, one: EngineChild) -> list[int]:
    """Return how many contexts the engine has on each card, in bus order."""
    for process in pc.processes():
        if process.pid == one.process.pid:
            return [use.contexts for use in process.cards]
    return [0] * len(pc.cards)


def test_describing_and_reading_make_no_context(soft_pc: MakePc, engine: StartEngine) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    one = engine(pc)
    (described,) = one.ask(DescribeEngine())
    assert described.cuda_available
    assert described.cuda_reason is None
    assert described.device_count == 2
    assert "sm_75" in described.arch_list
    (read,) = one.ask(ReadMemory(device="cuda:1"))
    assert read.allocated_bytes is None
    assert read.total_bytes is None
    (emptied,) = one.ask(EmptyCache(device="cuda:1"))
    assert (emptied.before.releasable_bytes, emptied.freed_bytes) == (None, 0)
    assert contexts(pc, one) == [0, 0]


def test_a_run_uses_its_card_alone(soft_pc: MakePc, engine: StartEngine) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    one = engine(pc)
    events = one.ask(run_on("cuda:1"))
    result = events[-1]
    assert isinstance(result, RunFinished)
    assert result.device_name == "NVIDIA GeForce RTX 3060"
    first, second = pc.use_of(one.process.pid).cards
    assert first.launches == 0
    assert first.contexts == 0
    assert second.launches > result.samples * result.calls_per_sample * 14
    (read, *_) = only(MemoryRead, events)
    assert read.device == "cuda:1"
    # Three operands and nothing else is left between batches.
    assert read.allocated_bytes == 3 * 512 * 512 * 4
    assert read.total_bytes == RTX_3060.mib * MIB
    (after,) = one.ask(ReadMemory(device="cuda:1"))
    assert after.allocated_bytes == 0


@pytest.mark.alone  # A busy neighbor slows the launches until the card waits for them.
@pytest.mark.parametrize("kernel_ms", [0.02, 0.2, 3.0])
def test_a_call_takes_its_kernels_time(
    soft_pc: MakePc, engine: StartEngine, kernel_ms: float
) -> None:
    """Launches return at once: without waiting for the card a call would take microseconds."""
    pc = soft_pc(Card("NVIDIA GeForce GTX 1650", "7.5", mib=3903, sms=14, kernel_ms=kernel_ms))
    events = engine(pc).ask(run_on("cuda:0"))
    result = events[-1]
    assert isinstance(result, RunFinished)
    call_s = 14 * kernel_ms * 1e-3  # elementwise is 14 kernels
    assert result.median_s >= 0.99 * call_s
    # A slow PC may launch later than the card computes, but the shortest call's sample has seven.
    fastest_s = min(min(line.samples_s) for line in only(SamplesMeasured, events))
    assert 0.99 * call_s <= fastest_s < 3 * call_s
    assert result.median_s * result.calls_per_sample >= 1.9e-3
    assert result.times.first_call_s >= call_s


@pytest.mark.cuda13
def test_a_card_without_code_in_this_build_is_named(soft_pc: MakePc, engine: StartEngine) -> None:
    one = engine(soft_pc(GT_1030))
    for request in (
        run_on("cuda:0"),
        run_on("cuda:0", workload="matmul"),
        PlaceModel(model="mlp", device="cuda:0"),
    ):
        failure = one.ask(request)[-1].failure
        assert failure.kind is FailureKind.NO_KERNEL
        assert "Install the cu126 build" in failure.message
        assert "GT 1030 (compute capability 6.1)" in failure.message
        assert "sm_75" in failure.message
        assert not failure.fatal


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (100, "sees no card"),
        (999, "unknown error"),
        (803, "different versions"),
        (35, "too old for this PyTorch"),
    ],
)
def test_a_driver_that_does_not_start_is_explained(
    soft_pc: MakePc, engine: StartEngine, code: int, words: str
) -> None:
    pc = soft_pc(GTX_1650)
    pc.fault("cudaGetDeviceCount", code)
    one = engine(pc)
    (described,) = one.ask(DescribeEngine())
    assert not described.cuda_available
    assert words in described.cuda_reason
    failed = one.ask(run_on("cuda:0"))[-1]
    assert failed.failure.kind is FailureKind.NO_CUDA


def test_a_run_out_of_memory_is_told_where_pytorch_asserts_that_nvml_answers(
    soft_pc: MakePc, engine: StartEngine
) -> None:
    """Up to 2.13 PyTorch raises a failed assertion instead, of no class that says memory."""
    pc = soft_pc(GTX_1650)
    pc.fault("cudaMalloc", 2)
    pc.fault("nvmlDeviceGetComputeRunningProcesses*", 3)
    one = engine(pc)
    failure = one.ask(run_on("cuda:0"))[-1].failure
    assert failure.kind is FailureKind.OUT_OF_MEMORY
    assert failure.message.startswith("There was not enough memory")
    assert not failure.fatal
    assert "INTERNAL ASSERT FAILED" in one.log.read_text()


def test_a_launch_without_memory_fails_its_run_and_not_the_engine(
    soft_pc: MakePc, engine: StartEngine
) -> None:
    pc = soft_pc(GTX_1650)
    pc.fault("launch", 2)
    one = engine(pc)
    failure = one.ask(run_on("cuda:0"))[-1].failure
    assert failure.kind is FailureKind.OUT_OF_MEMORY
    assert failure.message.startswith("There was not enough memory")
    pc.clear_faults()
    assert isinstance(one.ask(run_on("cuda:0"))[-1], RunFinished)


@pytest.mark.parametrize("code", [700, 702, 716, 719, 999])
def test_an_error_that_lasts_ends_the_engine_after_its_answer(
    soft_pc: MakePc, engine: StartEngine, code: int
) -> None:
    pc = soft_pc(GTX_1650)
    one = engine(pc)

    def break_the_card(event: Event) -> None:
        if isinstance(event, SamplesMeasured):
            pc.clear_faults()
            pc.fault("launch", code, sticky=True)

    events = one.ask(run_on("cuda:0", budget_s=3600.0), break_the_card)
    assert isinstance(events[-1], RunFailed)
    assert events[-1].failure.kind is FailureKind.CUDA_ERROR
    assert events[-1].failure.fatal
    assert only(SamplesMeasured, events)  # those before the error were sent
    assert one.wait() == EXIT_FATAL


def test_a_kernel_that_never_ends_does_not_keep_the_engine(
    soft_pc: MakePc, engine: StartEngine
) -> None:
    pc = soft_pc(GTX_1650)
    one = engine(pc)
    pc.fault("launch", hang=True, after=2000)
    one.send(encode(run_on("cuda:0", budget_s=3600.0)))
    while not (isinstance(event := one.receive(), RunPhaseChanged) and event.phase == "warm-up"):
        pass
    until(lambda: pc.use_of(one.process.pid).cards[0].launches >= 2000)
    assert one.end() == 0
