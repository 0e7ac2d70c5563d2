"""The allocator's model and PyTorch's allocator do the same, call by call and to the byte.

Every run makes the same random calls of both: 2,000 here, of which what PyTorch did must also be
what is on record (ALLOCATOR_RECORD=1 in the environment rewrites the record); a million with
ALLOCATOR_STEPS=1000000.
"""

import json
import os

import pytest

from tests.core.memory.allocator.allocator_trace import (
    EDGES,
    RECORD,
    SETTINGS,
    STEPS,
    Edge,
    Setting,
)
from tests.soft.conftest import MakeChild, MakePc
from tests.softcards.cards import MIB
from tests.softcards.catalogue import MODERN_1996_MIB

steps = int(os.environ.get("ALLOCATOR_STEPS", STEPS))
TIMEOUT_S = 300 + steps // 100
FULL_CARD = ("num_ooms", "num_alloc_retries", "num_device_alloc", "num_device_free")


@pytest.mark.timeout(TIMEOUT_S + 30)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_model_is_pytorchs_allocator(
    setting: Setting, soft_pc: MakePc, child: MakeChild
) -> None:
    pc = soft_pc(MODERN_1996_MIB)
    pc.set(0, total_bytes=setting.total_mib * MIB)
    env = {"PYTORCH_CUDA_ALLOC_CONF": setting.conf} if setting.conf else {}
    one = child(pc, TORCH_CPP_LOG_LEVEL="ERROR", **env)
    output = one.run(
        "from tests.soft.allocator_lockstep import Setting, run\n"
        f"dict(run({setting!r}, {steps}), version=torch.__version__)",
        timeout_s=TIMEOUT_S,
    )
    stats = output["stats"]
    is_expandable = "expandable" in setting.conf
    assert stats["segment.all.allocated"] == 0 if is_expandable else stats[setting.moved] > 0
    assert all(stats[counter] > 0 for counter in FULL_CARD)
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if os.environ.get("ALLOCATOR_RECORD"):
        del output["stats"]
        record[str(setting)] = output
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    elif steps == STEPS:
        assert output["digests"] == record[str(setting)]["digests"]


# So small that the error's text tells the limit to the byte: 249.5, 748.5, 209.3 and 627.9.
FRACTIONS = (2.0**-23, 3 * 2.0**-23, 1e-7, 3e-7)


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_a_limit_is_the_nearest_byte(fraction: float, soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(MODERN_1996_MIB), TORCH_CPP_LOG_LEVEL="ERROR")
    error = one.run(
        "from tests.soft.allocator_lockstep import Lockstep\n"
        f"Lockstep(fraction={fraction}).malloc(1)"
    )
    assert "allowed" in error


@pytest.mark.parametrize("edge", EDGES, ids=str)
def test_the_edges_of_rules_are_pytorchs(edge: Edge, soft_pc: MakePc, child: MakeChild) -> None:
    env = {"PYTORCH_CUDA_ALLOC_CONF": edge.conf} if edge.conf else {}
    one = child(soft_pc(MODERN_1996_MIB), TORCH_CPP_LOG_LEVEL="ERROR", **env)
    reserved_mib = one.run(
        "from tests.soft.allocator_lockstep import Edge, Lockstep, reserved_at\n"
        f"edge = {edge!r}\n"
        "reserved_at(Lockstep(edge.conf, edge.fraction), edge)"
    )
    assert tuple(reserved_mib) == edge.reserved_mib


CONFS = [
    "max_split_size_mb:64,garbage_collection_threshold:0.5,pinned_num_register_threads:8",
    "roundup_power2_divisions:[2:4,64:0,>:16],pinned_max_cached_size_mb:64",
    "roundup_power2_divisions:8,large_segment_size_mb:30,release_lock_on_cudamalloc:True",
    "expandable_segments:True,pinned_max_round_threshold_mb:4,pinned_use_cuda_host_register:False",
]


@pytest.mark.parametrize("conf", CONFS)
def test_options_mean_what_pytorch_says(conf: str, soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(MODERN_1996_MIB), PYTORCH_CUDA_ALLOC_CONF=conf)
    one.run(
        "from tests.soft.allocator_lockstep import Lockstep\n"
        f"both = Lockstep({conf!r})\n"
        "both.malloc(1)\n"
        "both.snapshot()\n"
        "None"
    )


def test_what_pytorch_refuses_is_refused(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(MODERN_1996_MIB), TORCH_CPP_LOG_LEVEL="ERROR")
    accepted, refused = one.run(
        "from tests.soft.allocator_lockstep import compare_options\n"
        "compare_options(seed=1, texts=5000)"
    )
    assert accepted > 100
    assert refused > 3000
