"""What an engine says of itself and of its workloads."""

from typing import Any

import msgspec

from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.messages.placement_messages import ModelDescription
from gpu_studio.core.messages.run_messages import WorkloadDescription


def elementwise() -> WorkloadDescription:
    return WorkloadDescription(
        name="elementwise",
        title="Elementwise",
        sentence="Ten statements over a square matrix: bound by memory, not by arithmetic.",
        dtypes=("float16", "bfloat16", "float32", "float64"),
        sizes=(256, 512, 1024),
        throughput_unit="B/s",
    )


def matmul() -> WorkloadDescription:
    return WorkloadDescription(
        name="matmul",
        title="Matrix product",
        sentence="One product of two square matrices: bound by arithmetic.",
        dtypes=("float16", "bfloat16", "float32", "float64"),
        sizes=(256, 512, 1024),
        throughput_unit="FLOP/s",
    )


def described(**changes: Any) -> EngineDescribed:
    """Return a scripted engine's description of itself: CPU only by default."""
    plain = EngineDescribed(
        pid=4711,
        torch_version="2.13.0+cpu",
        cuda_reason="This PyTorch was built without CUDA.",
        cpu_capability="AVX2",
        cpu_threads=4,
        python_version="3.11.9",
        workloads=(elementwise(), matmul()),
        models=(ModelDescription(name="linear_10", title="Linear(10, 10)", sentence="One layer."),),
        snippet="import torch\n",
    )
    return msgspec.structs.replace(plain, **changes)


def described_with_cuda(**changes: Any) -> EngineDescribed:
    with_cuda = {
        "torch_version": "2.13.0+cu126", "cuda_build": "12.6", "cuda_available": True,
        "cuda_reason": None, "device_count": 1, "arch_list": ("sm_61", "sm_86"),
    }  # fmt: skip
    return described(**{**with_cuda, **changes})


def described_for(inventory: Inventory) -> EngineDescribed:
    """Return the description of an engine that can use the cards of a PC, if there are any."""
    cards = len(inventory.cards)
    return described_with_cuda(device_count=cards) if cards else described()
