import signal
from dataclasses import replace

import pytest

from tests.soft.child import ChildEndedError, NoAnswerError, RaisedError
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


def test_a_late_error_comes_only_once_its_kernel_has_run(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(replace(RTX_3060, kernel_ms=300))
    one = child(pc)
    one.run("x = torch.empty(16, device='cuda'); torch.cuda.synchronize()")
    pc.fault("launch", 700, late=True)
    one.run("x.add_(1); y = torch.empty(4 * MIB, device='cuda')")
    with pytest.raises(RaisedError, match="an illegal memory access was encountered"):
        one.run("torch.cuda.synchronize()")


def test_an_error_in_the_device_guard_aborts_the_process(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060, RTX_3060)
    one = child(pc)
    one.run(READY)
    pc.fault("launch", 719, sticky=True, set_device=True)
    one.ask("x.add_(1)")
    with pytest.raises(ChildEndedError) as ended:
        one.answer()
    assert ended.value.returncode == -signal.SIGABRT


def test_a_broken_card_leaves_the_other(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060, RTX_3060)
    one = child(pc)
    one.run("x, y = (torch.ones(16, device=f'cuda:{i}') for i in (0, 1))")
    pc.fault("launch", 719, card=0, sticky=True)
    with pytest.raises(RaisedError, match="unspecified launch failure"):
        one.run("x.add_(1)")
    one.run("with torch.cuda.device(1):\n    y.add_(1); torch.cuda.synchronize()")


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
