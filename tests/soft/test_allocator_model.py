"""The allocator's model and PyTorch's allocator do the same, call by call and to the byte.

Every run makes the same random calls of both: 4,000 of them here, and a million with
``ALLOCATOR_STEPS=1000000`` in the environment.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.softcards.cards import MIB
from tests.softcards.catalogue import MODERN_1996_MIB

if TYPE_CHECKING:
    from tests.soft.conftest import MakeChild, MakePc

STEPS = int(os.environ.get("ALLOCATOR_STEPS", "4000"))
TIMEOUT_S = 60 + STEPS // 500


@dataclass(frozen=True)
class Run:
    """What the two are told, and a counter beside those of a full card that must have moved."""

    conf: str = ""
    fraction: float = 1.0
    moved: str = "inactive_split.all.allocated"
    total_mib: int = 1996

    def __str__(self) -> str:
        return f"{self.conf or 'no option'}, fraction {self.fraction}, {self.total_mib} MiB"


RUNS = [
    Run(),
    Run(total_mib=96),
    Run(fraction=0.6),
    Run("per_process_memory_fraction:0.4"),
    Run("max_split_size_mb:64", moved="oversize_segments.freed"),
    Run("max_split_size_mb:20,max_non_split_rounding_mb:40", moved="oversize_segments.freed"),
    Run("roundup_power2_divisions:4"),
    Run("roundup_power2_divisions:[64:2,256:8,>:1]"),
    Run("garbage_collection_threshold:0.6", 0.8),
    Run("garbage_collection_threshold:0.3,max_split_size_mb:128", 0.9),
    Run("large_segment_size_mb:64"),
    Run("large_segment_size_mb:11"),
    Run("expandable_segments:True", moved="num_device_free"),
    Run("expandable_segments:True", total_mib=256, moved="num_device_free"),
    Run("expandable_segments:True,large_segment_size_mb:32", 0.7, moved="num_device_free"),
    Run(
        "expandable_segments:True,max_split_size_mb:64,roundup_power2_divisions:8",
        moved="oversize_allocations.freed",
    ),
    Run("throw_on_cudamalloc_oom:True", moved="num_oom_rejections"),
    Run(
        "throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.5,"
        "garbage_collection_threshold:0.5",
        0.6,
        moved="num_oom_rejections",
    ),
]


@pytest.mark.timeout(TIMEOUT_S + 30)
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_the_model_is_pytorchs_allocator(run: Run, soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(MODERN_1996_MIB)
    pc.set(0, total_bytes=run.total_mib * MIB)
    env = {"PYTORCH_CUDA_ALLOC_CONF": run.conf} if run.conf else {}
    one = child(pc, TORCH_CPP_LOG_LEVEL="ERROR", **env)
    stats = one.run(
        "from tests.soft.allocator_lockstep import run\n"
        f"run({run.conf!r}, {run.fraction}, seed=7, steps={STEPS})",
        timeout_s=TIMEOUT_S,
    )
    told = ("num_ooms", "num_alloc_retries", "num_device_alloc", "num_device_free")
    for counter in (*told, run.moved):
        assert stats[counter] > 0, counter


# So small that the error's text tells the limit to the byte: 249.5, 748.5, 209.3 and 627.9.
FRACTIONS = (2.0**-23, 3 * 2.0**-23, 1e-7, 3e-7)


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_a_limit_is_the_nearest_byte(fraction: float, soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(MODERN_1996_MIB), TORCH_CPP_LOG_LEVEL="ERROR")
    one.run(
        "from tests.soft.allocator_lockstep import Lockstep\n"
        f"both = Lockstep('', {fraction})\n"
        "both.malloc(1)\n"
        "both.compare_all()"
    )


CONFS = [
    "max_split_size_mb:-1,garbage_collection_threshold:.5x,pinned_num_register_threads:8",
    "roundup_power2_divisions:[2:4,64:0,>:16],pinned_max_cached_size_mb:64",
    "roundup_power2_divisions:8,large_segment_size_mb:30,release_lock_on_cudamalloc:True",
    "expandable_segments:True,pinned_max_round_threshold_mb:4,pinned_use_cuda_host_register:False",
]


@pytest.mark.parametrize("conf", CONFS)
def test_options_mean_what_pytorch_says(conf: str, soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(MODERN_1996_MIB), PYTORCH_CUDA_ALLOC_CONF=conf)
    real, model = one.run(
        "from gpu_studio.core.allocator import AllocatorModel\n"
        f"settings = AllocatorModel(1 << 31, conf={conf!r}).snapshot()['allocator_settings']\n"
        "torch.empty(1, device='cuda')\n"
        "[torch.cuda.memory._snapshot()['allocator_settings'], settings]"
    )
    assert model == real
