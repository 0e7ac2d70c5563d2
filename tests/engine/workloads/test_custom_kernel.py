"""The kernel's text, without a card: its arithmetic compiled for the CPU, and what is asked."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine import nvrtc
from gpu_studio.engine.workloads.custom_kernel import _ALLOWED, SOURCE, CustomKernel, _compared
from gpu_studio.engine.workloads.elementwise import crunch_the_numbers

# What CUDA C has and C++ has not; a "launch" is a loop over the elements.
_ON_THE_CPU = """
#include <cstring>
#define __global__
#define __device__ static
static struct {{ long long x; }} blockIdx, blockDim = {{1}}, threadIdx;
static float __uint_as_float(unsigned x) {{ float y; memcpy(&y, &x, 4); return y; }}
static unsigned __float_as_uint(float x) {{ unsigned y; memcpy(&y, &x, 4); return y; }}
{source}
extern "C" void launch(float* a, float* b, float* c, float* y, long long n,
                       long long threads) {{
    for (blockIdx.x = 0; blockIdx.x < threads; blockIdx.x++) my_kernel(a, b, c, y, n);
}}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_kernels_arithmetic_is_that_of_the_ten_statements(tmp_path: Path):
    text, library = tmp_path / "kernel.cpp", tmp_path / "kernel.so"
    text.write_text(_ON_THE_CPU.format(source=SOURCE))
    subprocess.run(["g++", "-w", "-O1", "-shared", "-fPIC", text, "-o", library], check=True)
    operands = [torch.rand(1000) for _ in range(3)]
    result = torch.full((1001,), -7.0)
    addresses = [ctypes.c_void_p(one.data_ptr()) for one in (*operands, result)]
    # More threads than elements, as in the last block of a launch.
    ctypes.CDLL(str(library)).launch(*addresses, ctypes.c_longlong(1000), ctypes.c_longlong(1024))
    expected = crunch_the_numbers(*(one.double() for one in operands))
    difference = float((result[:1000].double() - expected).abs().max())
    assert difference <= _ALLOWED
    assert result[1000] == -7.0, "a thread beyond the last element wrote"


@pytest.mark.parametrize(
    ("rounds_s", "words"),
    [
        ([(1.0, 3.0)] * 9, "3.0 × as long (95 % interval 3.0 × to 3.0 ×)"),
        ([(1.0, 2.0), (2.0, 8.0), *[(1.0, 3.0)] * 7], "3.0 × as long (95 % interval 2.6 × to"),
        ([(1.0, 1.03)] * 9, "too close to call"),
        ([(1.0, 0.7), (1.0, 0.8), *[(1.0, 3.0)] * 7], "too close to call"),
        ([(1.0, 0.5)] * 9, "0.50 × as long (95 % interval 0.50 × to 0.50 ×)"),
    ],
)
def test_its_lead_over_pytorch_is_reported_with_its_interval(
    rounds_s: list[tuple[float, float]], words: str
):
    sentence = _compared(rounds_s).replace("\u202f", " ")
    assert words in sentence
    assert ("as long" in sentence) is ("too close" not in words)


def test_a_pc_without_a_card_is_told_what_would_make_it_run():
    if torch.cuda.is_available():
        assert CustomKernel().skipped() == ""
        return
    assert "NVIDIA card" in CustomKernel().skipped()
    assert "CUDA build of PyTorch" in CustomKernel().skipped()


@pytest.mark.parametrize(
    ("capability", "wanted"),
    [
        (75, ("CUBIN", "sm_75")),
        (88, ("CUBIN", "sm_86")),  # runs the machine code of its own major version
        (90, ("CUBIN", "sm_90")),
        (120, ("PTX", "compute_90")),  # the driver translates for what is newer
    ],
)
def test_a_card_gets_code_that_it_can_run(capability: int, wanted: tuple[str, str]):
    assert nvrtc.target([75, 80, 86, 90], capability, "NVRTC") == wanted


def test_a_card_older_than_the_compiler_is_told_so():
    with pytest.raises(StudioError, match=r"7\.5 and higher; this card has 6\.1") as raised:
        nvrtc.target([75, 80], 61, "NVRTC 13.0")
    assert raised.value.kind is FailureKind.NO_KERNEL


def test_an_error_of_the_compiler_is_one_sentence():
    log = 'kernel.cu(3): error: identifier "zz" is undefined\n   x = zz;\n       ^\n'
    sentence = nvrtc.explain("NVRTC 13.0", log, "NVRTC_ERROR_COMPILATION")
    assert 'line 3: identifier "zz" is undefined' in sentence
    assert "\n" not in sentence
    assert "NVRTC_ERROR_INVALID_OPTION" in nvrtc.explain("N", "", "NVRTC_ERROR_INVALID_OPTION")


def test_a_pytorch_without_cuda_brings_no_compiler(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    assert "built without CUDA" in nvrtc.why_no_compiler()
    monkeypatch.setattr(torch.version, "cuda", "99.0")
    assert "libnvrtc.so.99" in nvrtc.why_no_compiler() or "nvrtc64_990" in nvrtc.why_no_compiler()
