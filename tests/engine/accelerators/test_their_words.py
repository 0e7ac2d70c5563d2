"""What AMD's and Intel's parts of PyTorch say, as far as it can be known without a card."""

import ast
import contextlib
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import gpu_studio
from gpu_studio.core.failure import FailureKind
from gpu_studio.engine.accelerators import rocm, xpu
from gpu_studio.engine.faults import failure_of


@pytest.mark.parametrize(
    ("uuid", "chip", "slot"),
    [
        ("8680a556-0500-0000-0300-000000000000", 0x56A5, "00000000:03:00.0"),
        # From torch-xpu-ops, issues 3583 and 3891: the second has no meaning.
        ("8680d50b-2f00-0000-2c00-000000000001", 0x0BD5, "00000000:2C:00.0"),
        ("d47ef340-79ec-b1ea-0000-000000000001", 0x0BD5, None),
        ("8680a556-0500-0000-0300-000000000000", 0x56A6, None),
        (bytes.fromhex("8680a556050000000300000000000000"), 0x56A5, "00000000:03:00.0"),
        (tuple(bytes.fromhex("8680a556050000000300000000000000")), 0x56A5, "00000000:03:00.0"),
        (None, 0x56A5, None),
        ("short", 0x56A5, None),
    ],
)
def test_the_slot_of_an_intel_card_is_in_its_uuid(uuid, chip, slot):
    assert xpu.slot_of(SimpleNamespace(uuid=uuid, device_id=chip)) == slot


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("HIP out of memory. Tried to allocate 20.00 MiB.", FailureKind.OUT_OF_MEMORY),
        ("XPU out of memory. Tried to allocate 20.00 MiB.", FailureKind.OUT_OF_MEMORY),
        ("level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
         FailureKind.OUT_OF_MEMORY),
        ("HIP error: invalid device function\nHIP kernel errors might be", FailureKind.NO_KERNEL),
        ("HIP error: no kernel image is available for execution", FailureKind.NO_KERNEL),
        ("No kernel named _ZTS was found", FailureKind.NO_KERNEL),
        ("Required aspect fp64 is not supported on the device", FailureKind.DTYPE_UNSUPPORTED),
        ("MIOpen Error: no device code", FailureKind.LIBRARY_UNSUPPORTED),
        ("rocBLAS error: Cannot read TensileLibrary.dat", FailureKind.LIBRARY_UNSUPPORTED),
        ("HIP error: an illegal memory access was encountered", FailureKind.CUDA_ERROR),
        ("level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)",
         FailureKind.CUDA_ERROR),
    ],
)  # fmt: skip
def test_an_error_is_known_by_its_text(text, kind):
    failure = failure_of(RuntimeError(text))
    assert failure.kind is kind
    assert "HIP error" not in failure.message


def test_what_keeps_rocm_from_starting_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(rocm.operating_system, "system", lambda: "Linux")
    kfd = tmp_path / "kfd"
    none = rocm.explain_unavailable("No HIP GPUs are available", {}, kfd)
    assert f"There is no {kfd}" in none
    kfd.touch()
    monkeypatch.setattr(rocm.os, "access", lambda *_: False)
    assert f"You may not open {kfd}" in rocm.explain_unavailable("No HIP GPUs", {}, kfd)
    monkeypatch.setattr(rocm.os, "access", lambda *_: True)
    hidden = rocm.explain_unavailable("No HIP GPUs", {"HIP_VISIBLE_DEVICES": "7"}, kfd)
    assert hidden == "HIP_VISIBLE_DEVICES is “7”, and PyTorch for ROCm sees no card."
    assert "no AMD card" in rocm.explain_unavailable("No HIP GPUs are available", {}, kfd)


@pytest.mark.parametrize(
    ("chip", "cycles"), [("gfx1100", 1.05e6), ("gfx1201", 3.675e7), ("gfx1032", 3.675e7)]
)
def test_a_card_idles_as_long_as_it_is_asked_to(monkeypatch, chip, cycles):
    """RDNA 3 counts 100 MHz: the cycles of a fast clock would be a second and more."""
    asked = []
    monkeypatch.setattr(torch.cuda, "_sleep", asked.append, raising=False)
    monkeypatch.setattr(torch.cuda, "device", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda _: SimpleNamespace(gcnArchName=f"{chip}:xnack-")
    )
    device = torch.device("cuda", 0)
    rocm.Rocm().idle(device, 0.01)
    assert asked == [int(cycles)]
    asked.clear()
    rocm.Rocm().idle(device, 10.0)
    assert asked[0] <= 0.51 * 3.5e9


PACKAGE = Path(gpu_studio.__file__).parent
MAY_NAME_CUDA = {
    "engine/accelerators/cuda.py",
    "engine/accelerators/rocm.py",
    # Kernels that NVIDIA's own compiler makes and its driver loads.
    "engine/nvrtc.py",
    "engine/workloads/custom_kernel.py",
    # A user's own code names torch.cuda and meets the device being timed.
    "engine/own_code/stand_in.py",
    # What these pitfalls show is torch.cuda itself.
    "engine/pitfalls/real_errors.py",
    "engine/pitfalls/new_processes.py",
}
# These compare the name of a build, and a word that a person types or has in code.
MAY_COMPARE = {
    "cli/argument_types.py",
    "core/builds/words.py",
    "core/devices/card_findings.py",
    "engine/own_code/rewriting.py",
}


def nodes(*words):
    """Yield the nodes of the files that have one of the words, each with the file's name."""
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if any(word in source for word in words):
            for node in ast.walk(ast.parse(source)):
                yield path.relative_to(PACKAGE).as_posix(), node


def test_torch_cuda_is_named_in_one_file_and_where_it_is_the_subject():
    named = {
        name
        for name, node in nodes("cuda")
        if isinstance(node, ast.Attribute)
        and node.attr == "cuda"
        and ast.unparse(node) == "torch.cuda"
    }
    assert named == MAY_NAME_CUDA


def test_a_device_is_asked_and_not_compared():
    compared = {
        name
        for name, node in nodes('"cpu"', '"cuda"', "'cpu'", "'cuda'")
        if isinstance(node, ast.Compare)
        and isinstance(node.ops[0], (ast.Eq, ast.NotEq))
        and any(
            isinstance(side, ast.Constant) and side.value in ("cpu", "cuda")
            for side in (node.left, *node.comparators)
        )
    }
    assert compared <= MAY_COMPARE
