"""A recorded history, replayed, and what it would do on another card.

Recorded by the model itself here; by PyTorch in tests/soft/test_memory_replay.py.
"""

from __future__ import annotations

import math
import pickle
import random
from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.allocator.errors import ModelledOutOfMemory
from gpu_studio.core.memory.modelled_cards import ModelledCardChoice
from gpu_studio.core.memory.modelled_memory import ModelledMemory, ModelledTensor
from gpu_studio.core.memory.replay.replay import Replay, replay
from gpu_studio.core.memory.replay.what_if import smallest_card, what_if
from gpu_studio.core.memory.snapshot_file import Snapshot, open_snapshot, read_snapshot
from gpu_studio.core.messages.memory_messages import MOST_BLOCKS

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
FREED = "free_completed"
CONFS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:64",
    "roundup_power2_divisions:4",
    "garbage_collection_threshold:0.6,per_process_memory_fraction:0.8",
)


class Program:
    """Random calls of the allocator of a modeled card, the same ones for the same seed."""

    def __init__(self, conf: str = "", total_mib: int = 1996, *, seed: int = 1) -> None:
        choice = ModelledCardChoice(name="card", total_bytes=total_mib * MIB, context_bytes=0)
        self.memory = ModelledMemory(choice, conf)
        self._chance = random.Random(seed)
        self._held: list[ModelledTensor] = []

    def run(self, steps: int, largest: float = 27.5, *, survives: bool = True) -> None:
        chance, held = self._chance, self._held
        for _ in range(steps):
            luck = chance.random()
            if luck < 0.55 or not held:
                try:
                    held.append(self.memory.empty(int(2 ** chance.uniform(0, largest))))
                except ModelledOutOfMemory:
                    if not survives:
                        raise
                    chance.shuffle(held)
                    del held[: len(held) // 2]
            elif luck < 0.995:
                held.pop(chance.randrange(len(held)))
            else:
                self.memory.empty_cache()

    def recorded(self, path: Path) -> Snapshot:
        self.memory.write_snapshot(path)
        return open_snapshot(path)


def history_of(path: Path, conf: str, seed: int, *, before: int = 700) -> Snapshot:
    program = Program(conf, seed=seed)
    program.run(before)
    program.memory.start_history()
    program.run(1200)
    return program.recorded(path)


@pytest.mark.parametrize("conf", CONFS)
def test_every_address_is_met(conf: str, tmp_path: Path) -> None:
    for seed, before in ((1, 0), (2, 700), (7, 1300)):
        snapshot = history_of(tmp_path / "history", conf, seed, before=before)
        found = replay(snapshot)
        allocations = sum(entry.action == "alloc" for entry in snapshot.history)
        assert found.allocations == allocations > 400
        assert found.addresses_met == allocations, (seed, found.first_miss)
        assert (found.asked_met, found.given_back_met) == (found.asked, found.given_back)
        assert found.is_exact
        assert found.asked > 0


@pytest.mark.parametrize(("conf", "claimed"), [(CONFS[1], ""), ("", CONFS[1]), ("", "")])
def test_whether_segments_expand_is_seen(conf: str, claimed: str, tmp_path: Path) -> None:
    path = tmp_path / "history"
    history_of(path, conf, 2, before=0)
    whole = pickle.loads(path.read_bytes())
    whole["allocator_settings"] = {"PYTORCH_CUDA_ALLOC_CONF": claimed} if claimed else {}
    assert replay(read_snapshot(pickle.dumps(whole))).is_exact


def test_a_snapshot_of_many_blocks_is_replayed(tmp_path: Path) -> None:
    program = Program()
    program.memory.start_history()
    held = [program.memory.empty(512) for _ in range(MOST_BLOCKS + 5000)]
    found = replay(program.recorded(tmp_path / "history"))
    assert found.addresses_met == found.allocations == len(held)


def changed(snapshot: Path, change: Any) -> Snapshot:
    whole = pickle.loads(snapshot.read_bytes())
    change(whole["device_traces"][0])
    return read_snapshot(pickle.dumps(whole))


def test_another_address_is_a_miss(tmp_path: Path) -> None:
    path = tmp_path / "history"
    snapshot = history_of(path, "", 1, before=0)
    found = replay(snapshot)
    freed = {entry.address for entry in snapshot.history if entry.action == "free_completed"}
    number, entry = next(
        (number, entry)
        for number, entry in enumerate(snapshot.history)
        if entry.action == "alloc" and entry.address in freed and entry.size_bytes > MIB
    )

    def move(trace: list[dict[str, Any]]) -> None:
        for other in trace[number:]:
            if other.get("addr") == entry.address:
                other["addr"] += 512
                if other["action"] == "free_completed":
                    break

    moved = replay(changed(path, move))
    assert moved.first_miss == number
    assert moved.addresses_met == found.addresses_met - 1


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda trace: trace.clear(), "no history"),
        (lambda trace: trace.append(dict(trace[-1], action="alloc", addr=64)), "contradict"),
        (lambda trace: trace.insert(5, trace[5] | {"action": FREED, "addr": 64}), "outside"),
        (lambda trace: trace.insert(5, dict(trace[5], time_us=1)), "goes back"),
        (lambda trace: trace.insert(0, dict(trace[0])), "contradict"),
    ],
)  # fmt: skip
def test_what_cannot_have_happened_is_refused(change: Any, word: str, tmp_path: Path) -> None:
    path = tmp_path / "history"
    history_of(path, "", 1, before=0)
    with pytest.raises(StudioError, match=word):
        replay(changed(path, change))


@pytest.mark.parametrize("conf", CONFS)
def test_another_card_does_what_the_model_does_there(conf: str, tmp_path: Path) -> None:
    roomy = Program("", 1 << 16)
    roomy.memory.start_history()
    roomy.run(600, 26)
    replayed = replay(roomy.recorded(tmp_path / "history"))
    failures = 0
    for total_mib in (200, 500, 700, 900, 1500):
        small = Program(conf, total_mib)
        failure = ""
        try:
            small.run(600, 26, survives=False)
        except ModelledOutOfMemory as error:
            failure = str(error)
        found = what_if(replayed, card_bytes=total_mib * MIB, conf=conf)
        assert found.failure == failure
        stats = small.memory.allocator.stats()
        assert found.peak_reserved_bytes == stats["reserved_bytes.all.peak"]
        assert found.peak_allocated_bytes == stats["allocated_bytes.all.peak"]
        failures += not found.fits
    assert 0 < failures < 5


def test_the_smallest_card_is_the_least_of_those_on_which_all_larger_ones_do(
    tmp_path: Path,
) -> None:
    replayed = replay(history_of(tmp_path / "history", "", 3))
    smallest = smallest_card(replayed)
    assert smallest is not None
    assert fits(replayed, smallest)
    assert fits(replayed, smallest + 300 * MIB)
    assert not fits(replayed, smallest - 200 * MIB)
    shared = smallest_card(replayed, other_bytes=1 << 30)
    assert shared == smallest + (1 << 30)


def fits(replayed: Replay, card_bytes: int) -> bool:
    return what_if(replayed, card_bytes=card_bytes).fits


def test_an_allocation_that_failed_may_fit_elsewhere(tmp_path: Path) -> None:
    program = Program(total_mib=100)
    program.memory.start_history()
    held = [program.memory.empty(60 * MIB)]
    with pytest.raises(ModelledOutOfMemory):
        program.memory.empty(60 * MIB)
    held.append(program.memory.empty(20 * MIB))
    replayed = replay(program.recorded(tmp_path / "history"))
    assert replayed.is_exact
    assert what_if(replayed, card_bytes=100 * MIB).failed_at is not None
    assert what_if(replayed, card_bytes=140 * MIB).fits
    held.clear()


def test_a_cache_that_is_emptied_sooner_leaves_room(tmp_path: Path) -> None:
    program = Program(total_mib=300)
    program.memory.start_history()
    held = [program.memory.empty(40 * MIB) for _ in range(3)]
    held.clear()
    held.append(program.memory.empty(120 * MIB))
    snapshot = program.recorded(tmp_path / "history")
    replayed = replay(snapshot)
    last = max(n for n, entry in enumerate(snapshot.history) if entry.action == "alloc")
    assert what_if(replayed).peak_reserved_bytes == 240 * MIB
    assert what_if(replayed, empty_at=[last]).peak_reserved_bytes == 120 * MIB
    held.clear()


def test_the_line_of_code_is_the_programs_own() -> None:
    frames = [
        {"filename": "??", "line": 0, "name": "malloc"},
        {"filename": "/lib/torch/nn/functional.py", "line": 5, "name": "relu"},
        {"filename": "C:\\me\\train.py", "line": 41, "name": "step"},
    ]
    block = {"size": 2 * MIB, "requested_size": 2 * MIB, "state": "active_allocated"}
    segment = {
        "address": 1 << 40, "total_size": 2 * MIB, "segment_type": "large", "blocks": [block],
    }  # fmt: skip
    entry = {"action": "alloc", "addr": 1 << 40, "size": 2 * MIB, "frames": frames}
    content = pickle.dumps({"segments": [segment], "device_traces": [[entry]]})
    assert read_snapshot(content).history[0].line == "train.py:41 in step"


@pytest.mark.parametrize("conf", CONFS)
def test_the_smallest_card_is_that_of_the_whole_grid(conf: str, tmp_path: Path) -> None:
    replayed = replay(history_of(tmp_path / "history", "", 3, before=0))
    found = smallest_card(replayed, conf=conf)
    assert found is not None
    tenth = (1 << 30) / 10
    sizes = [math.ceil(steps * tenth) for steps in range(round(found / tenth) - 1, 40)]
    fitting = [what_if(replayed, card_bytes=size, conf=conf).fits for size in sizes]
    assert fitting == [False] + [True] * (len(sizes) - 1)
