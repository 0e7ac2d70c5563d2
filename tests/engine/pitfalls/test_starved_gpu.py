from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import torch

from gpu_studio.engine.pitfalls.starved_gpu import StarvedGpu

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize("part", ["broken", "fixed"])
def test_every_worker_has_delivered_before_the_clock_is_read(
    part: str, monkeypatch: pytest.MonkeyPatch
):
    # Where workers are not forked, as on Windows, each takes seconds to import PyTorch.
    seen: list[str] = []

    class Loader:
        def __init__(self, _data: object, batch_size: int, num_workers: int) -> None:
            self.workers = num_workers

        def __iter__(self) -> Iterator[torch.Tensor]:
            for number in range(4):  # the workers take turns
                seen.append(f"worker {number % max(self.workers, 1)}")
                yield torch.zeros(2, 3 * 32 * 32)
            seen.append("the workers end")

    def look() -> float:
        seen.append("clock")
        return float(len(seen))

    monkeypatch.setattr("torch.utils.data.DataLoader", Loader)
    monkeypatch.setitem(sys.modules, "time", SimpleNamespace(perf_counter=look))
    exec(StarvedGpu().snippet(part, "cpu"), {"__name__": "__main__"})
    assert seen[-1] == "the workers end"
    before = seen[: seen.index("clock")]
    assert before == (["worker 0", "worker 1"] if part == "fixed" else ["worker 0", "worker 0"])
