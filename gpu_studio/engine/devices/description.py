"""Describe this engine: PyTorch's version, its CUDA build, and the devices that it can use."""

from __future__ import annotations

import os
import sys

import msgspec
import torch

from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.engine.device import (
    accelerator,
    accelerator_state,
    first_card,
    leave_cards_alone,
    torch_cards,
)
from gpu_studio.engine.pitfalls.registry import PITFALLS
from gpu_studio.engine.switcher.placement import MODELS
from gpu_studio.engine.workloads.registry import PICTURES, WORKLOADS

_SNIPPET = """\
import torch

print("PyTorch", torch.__version__)
print("built for CUDA", torch.version.cuda)
print("CUDA is available:", torch.cuda.is_available())
for index in range(torch.cuda.device_count()):
    print(f"cuda:{index} is a {torch.cuda.get_device_name(index)}")
print("CPU instructions:", torch.backends.cpu.get_cpu_capability())
print("CPU threads:", torch.get_num_threads())
"""


def describe_engine(cards_asleep: bool = False) -> EngineDescribed:
    """Return a description of this process; creates no CUDA context.

    Args:
        cards_asleep: whether all cards are asleep and should stay so.
    """
    cards = accelerator()
    is_left_alone = leave_cards_alone(cards_asleep and cards.build is not None)
    state = accelerator_state()
    return EngineDescribed(
        pid=os.getpid(),
        torch_version=str(torch.__version__),
        cuda_build=torch.version.cuda,
        accelerator=cards.kind,
        cuda_available=state.is_available,
        cuda_reason=state.reason,
        start_error=state.error,
        device_count=cards.count() if state.is_available else 0,
        # This also asks whether CUDA is available, and is empty if it is not.
        arch_list=cards.arch_list() if state.is_available else (),
        cpu_capability=torch.backends.cpu.get_cpu_capability(),
        cpu_threads=torch.get_num_threads(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        allocator_configuration=os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
        or os.environ.get("PYTORCH_ALLOC_CONF"),
        python_version=sys.version.split()[0],
        workloads=tuple(
            msgspec.structs.replace(workload.description, skipped=workload.skipped())
            for workload in WORKLOADS
        ),
        pictures=tuple(picture.description for picture in PICTURES),
        models=tuple(model.description for model in MODELS),
        pitfalls=tuple(pitfall.description for pitfall in PITFALLS),
        snippet=_SNIPPET,
        cards=torch_cards(),
        first_card=first_card() if state.is_available else 0,
        cards_asleep=is_left_alone,
        hip_build=torch.version.hip,
        xpu_build=getattr(torch.version, "xpu", None),  # older versions do not have it
    )
