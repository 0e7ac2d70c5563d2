from pathlib import Path

import pytest

from gpu_studio.core.memory.replay.history import history_of
from gpu_studio.core.memory.replay.what_if import what_if
from gpu_studio.core.memory.snapshot_file import open_snapshot
from tests.core.memory.replay.test_history import CONFS
from tests.soft.conftest import MakeChild, MakePc
from tests.softcards.cards import MIB
from tests.softcards.catalogue import MODERN_1996_MIB

SEEDS, STEPS = 40, 400


@pytest.mark.parametrize("conf", CONFS)
def test_another_card_fails_at_the_same_call(
    conf: str, soft_pc: MakePc, child: MakeChild, tmp_path: Path
) -> None:
    ends = []
    for number, total_mib in enumerate((1 << 15, 512)):
        pc = soft_pc(MODERN_1996_MIB)
        pc.set(0, total_bytes=total_mib * MIB)
        env = {"PYTORCH_CUDA_ALLOC_CONF": conf} if conf and number else {}
        one = child(pc, TORCH_CPP_LOG_LEVEL="ERROR", **env)
        path = "" if number else str(tmp_path / "history")
        end = one.run(
            "from tests.soft.recorded_history import MIB, fill\n"
            "import torch\n"
            "free_bytes, total_bytes = torch.cuda.mem_get_info()\n"
            f"[total_bytes - free_bytes, fill({path!r}, seeds={SEEDS}, steps={STEPS})]"
        )
        ends.append(end)
    (_, roomy), (other_bytes, small) = ends
    assert not any(failure for _, failure in roomy)
    failures = 0
    for seed, (made, failure) in enumerate(small):
        snapshot = open_snapshot(tmp_path / f"history{seed}")
        history = history_of(snapshot)
        found = what_if(history, card_bytes=512 * MIB, other_bytes=other_bytes, conf=conf)
        assert found.fits == (not failure)
        if failure:
            before = snapshot.history[: found.failed_at]
            assert sum(entry.action == "alloc" for entry in before) == made
            assert found.failure == failure
            failures += 1
    assert 5 < failures < SEEDS
