"""The real compiler (NVRTC needs no card), and its code loaded and launched on soft cards."""

from dataclasses import replace

import pytest

from tests.soft.conftest import MakeChild, MakePc
from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060

PRELUDE = """
import torch
from gpu_studio.core.tensors import DTYPES
from gpu_studio.engine.nvrtc import Nvrtc
from gpu_studio.engine.workloads.case import make_case
from gpu_studio.engine.workloads.custom_kernel import CustomKernel
from gpu_studio.engine.workloads.custom_kernel import SOURCE
workload = CustomKernel()
def case(address, size=64, dtype="float32", **options):
    return make_case(workload.description, torch.device(address), size, dtype, options=options)
"""


def test_the_kernel_compiles_for_every_card_that_the_compiler_knows(
    soft_pc: MakePc, child: MakeChild
) -> None:
    one = child(soft_pc(RTX_3060))
    one.run(PRELUDE)
    found = one.run(
        """
        compiler = Nvrtc()
        [[known, compiler.compile(SOURCE, known).image[:4].hex()]
         for known in compiler.capabilities()]
        """
    )
    machine_code = b"\x7fELF".hex()
    assert all(image == machine_code for _, image in found)
    assert {75, 80, 86, 89, 90} <= {known for known, _ in found}


@pytest.mark.cuda12
def test_the_kernel_compiles_for_a_gt_1030(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(GT_1030))
    one.run(PRELUDE)
    assert one.run("workload.skipped()") == ""
    found = one.run(
        "call = workload.prepare(case('cuda:0')); call(); answer = call.findings(); call.close();"
        "answer"
    )
    assert "for sm_61" in found[0]


def test_one_call_is_one_launch_on_its_card(soft_pc: MakePc, child: MakeChild) -> None:
    # Kernels long enough that a busy PC's launches are short beside them.
    pc = soft_pc(GTX_1650, replace(RTX_3060, kernel_ms=5.0))
    one = child(pc, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    one.run(PRELUDE)
    one.run("call = workload.prepare(case('cuda:1', threads='128')); torch.cuda.synchronize(1)")
    before = pc.use_of(one.pid).cards[1].launches
    one.run("[call() for _ in range(5)]; torch.cuda.synchronize(1)")
    first, second = pc.use_of(one.pid).cards
    assert second.launches == before + 5
    assert first.launches == first.contexts == 0
    found = one.run("answer = call.findings(); call.close(); answer")
    assert "for sm_86" in found[0]
    assert "× as long" in found[1]  # fourteen kernels take longer than one
    assert one.run("torch.cuda.current_device()") == 0


@pytest.mark.cuda13  # on soft cards the older PyTorch does not load the compiler by itself
def test_the_snippet_runs_as_it_stands(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    one = child(pc, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    one.run(PRELUDE)
    printed = one.run(
        """
        import contextlib, io
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(workload.snippet(case("cuda:1", 300, threads="512")), {})
        out.getvalue()
        """
    )
    assert "s a call" in printed
    first, second = pc.use_of(one.pid).cards
    assert second.launches >= 11
    assert first.launches == 0
