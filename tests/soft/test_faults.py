import pytest

from tests.soft.child import NoAnswerError, RaisedError
from tests.soft.conftest import MakeChild, MakePc
from tests.softcards.cards import MIB
from tests.softcards.catalogue import RTX_3060

READY = "x = torch.ones(16, device='cuda'); torch.cuda.synchronize()"


@pytest.mark.parametrize("code", [700, 702, 719])
@pytest.mark.parametrize("late", [False, True], ids=["at once", "when it has run"])
def test_a_sticky_error_ends_the_context(
    code: int, late: bool, soft_pc: MakePc, child: MakeChild
) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    one.run(READY)
    pc.fault("launch", code, after=2, sticky=True, late=late)
    one.run("x.add_(1); x.add_(1); torch.cuda.synchronize()")
    with pytest.raises(RaisedError) as raised:
        one.run("x.add_(1); torch.cuda.synchronize()")
    assert raised.value.kind in ("AcceleratorError", "RuntimeError")
    assert raised.value.text.startswith("CUDA error: ")
    assert raised.value.code in (code, None), "PyTorch before 2.8 keeps no code"
    for call in ("torch.cuda.synchronize()", "torch.cuda.mem_get_info()", "x.cpu()", "x + 1"):
        with pytest.raises(RaisedError, match="CUDA error"):
            one.run(call)
    # The allocator's own books still answer.
    assert one.run("torch.cuda.memory_allocated()") == 512
    pc.clear_faults()
    with pytest.raises(RaisedError, match="CUDA error"):
        one.run("torch.cuda.synchronize()")
    fresh = child(pc)
    assert fresh.run("(torch.ones(2, device='cuda') + 1).shape[0]") == 2


def test_a_lost_card_fails_in_cuda_and_nvml(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    one.run(READY + "\nimport pynvml; pynvml.nvmlInit(); h = pynvml.nvmlDeviceGetHandleByIndex(0)")
    pc.set(0, lost=1)
    with pytest.raises(RaisedError, match="CUDA error"):
        one.run("torch.cuda.synchronize()")
    with pytest.raises(RaisedError, match="GPU is lost"):
        one.run("pynvml.nvmlDeviceGetUtilizationRates(h)")
    with pytest.raises(RaisedError, match="busy or unavailable"):
        child(pc).run("torch.empty(1, device='cuda')")


def test_an_allocation_fails_after_some_have_succeeded(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    pc.fault("cudaMalloc", 2, after=2)
    one.run("kept = [torch.empty(64 * MIB, device='cuda') for _ in range(2)]")
    with pytest.raises(RaisedError, match="OutOfMemoryError"):
        one.run("torch.empty(64 * MIB, device='cuda')")


def test_a_call_that_hangs_is_ended_by_killing_the_process(
    soft_pc: MakePc, child: MakeChild
) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    one.run(READY)
    pc.fault("cudaDeviceSynchronize", hang=True)
    one.ask("torch.cuda.synchronize()")
    with pytest.raises(NoAnswerError):
        one.answer(timeout_s=1)
    one.kill()
    free, total = child(pc).run("torch.cuda.mem_get_info()")
    assert free == total - 60 * MIB
