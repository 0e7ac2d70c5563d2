"""A recorded history, and what it would do on another card.

Recorded by the model itself here; by PyTorch in tests/soft/test_memory_replay.py.
"""

import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.allocator.blocks import ModelledOutOfMemory
from gpu_studio.core.memory.allocator.options import parse_configuration
from gpu_studio.core.memory.modelled_cards import ModelledCardChoice
from gpu_studio.core.memory.replay.history import history_of
from gpu_studio.core.memory.replay.what_if import what_if
from gpu_studio.core.memory.snapshot_file import Snapshot, open_snapshot, read_snapshot
from tests.fakes.histories import RecordedMemory

MIB = 1 << 20
AT = 1 << 30
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
        self.memory = RecordedMemory(choice, conf)
        self._chance = random.Random(seed)
        self._held: list[object] = []

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


def recorded(path: Path, conf: str, seed: int, *, before: int = 700) -> Snapshot:
    program = Program(conf, seed=seed)
    program.run(before)
    program.memory.start_history()
    program.run(1200)
    return program.recorded(path)


SHARES = (0.5, 0.7, 0.9, 0.95, 1.0)
# The entries that find no room on a card of these shares of the recorded peak. They come from a
# replay that put every tensor of these histories at its recorded address.
FAILURES: dict[tuple[str, int, int], tuple[int | None, ...]] = {
    (CONFS[0], 2, 0): (586, 1017, 1055, 1060, None),
    (CONFS[0], 2, 700): (0, 17, 41, 41, 997),
    (CONFS[0], 7, 1300): (0, 123, 219, 384, 456),
    (CONFS[1], 2, 0): (750, 1001, 1052, 1057, None),
    (CONFS[2], 2, 0): (806, 1064, 1087, 1087, None),
    (CONFS[2], 7, 1300): (0, 221, 1049, 1057, 1412),
    (CONFS[3], 2, 0): (584, 907, 1051, 1053, 1057),
    (CONFS[3], 7, 1300): (0, 195, 218, 383, 457),
    (CONFS[4], 2, 0): (511, 586, 801, 908, 1003),
    (CONFS[4], 7, 1300): (0, 155, 516, 516, 778),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_smaller_card_fails_at_the_same_call(case: tuple[str, int, int], tmp_path: Path) -> None:
    conf, seed, before = case
    history = history_of(recorded(tmp_path / "history", conf, seed, before=before))
    sizes = [int(history.facts.peak_reserved_bytes * share) for share in SHARES]
    found = [what_if(history, card_bytes=size, conf=conf).failed_at for size in sizes]
    assert tuple(found) == FAILURES[case]


@pytest.mark.parametrize(("conf", "claimed"), [(CONFS[1], ""), ("", CONFS[1]), ("", "")])
def test_whether_segments_expand_is_seen(conf: str, claimed: str, tmp_path: Path) -> None:
    path = tmp_path / "history"
    recorded(path, conf, 2, before=0)
    whole = pickle.loads(path.read_bytes())
    whole["allocator_settings"] = {"PYTORCH_CUDA_ALLOC_CONF": claimed} if claimed else {}
    seen = history_of(read_snapshot(pickle.dumps(whole))).facts.conf
    assert parse_configuration(seen).expandable_segments == bool(conf)


@pytest.mark.parametrize("conf", CONFS[:2])
def test_an_emptied_cache_is_told_from_a_full_card(conf: str, tmp_path: Path) -> None:
    program = Program(conf, total_mib=300)
    program.memory.start_history()
    for _ in range(2):
        program.memory.empty(40 * MIB)
        program.memory.empty_cache()
    held = [program.memory.empty(120 * MIB) for _ in range(2)]
    held.clear()
    held.append(program.memory.empty(200 * MIB))  # gives both back
    found = history_of(program.recorded(tmp_path / "history"))
    assert [call.action for call in found.calls].count("empty_cache") == 2
    held.clear()


def entry(action: str, at: int, size_bytes: int) -> dict[str, Any]:
    return {"action": action, "addr": AT + at, "size": size_bytes, "stream": 0}


def segment(*sizes: int) -> dict[str, Any]:
    """Return a segment of blocks of these sizes, of which the last one alone is free."""
    blocks = [{"size": size, "requested_size": size, "state": "active_allocated"} for size in sizes]
    blocks[-1]["state"] = "inactive"
    plain = {"address": AT, "total_size": sum(sizes), "segment_type": "large"}
    return {**plain, "device": 0, "stream": 0, "blocks": blocks}


def test_tensors_that_overlap_are_refused() -> None:
    trace = [
        *(entry(action, 12 * MIB, 2 * MIB) for action in ("alloc", FREED)),
        entry(FREED, 0, 4 * MIB), entry(FREED, 2 * MIB, 2 * MIB),
    ]  # fmt: skip
    content = pickle.dumps({"segments": [segment(20 * MIB)], "device_traces": [trace]})
    with pytest.raises(StudioError, match="overlap"):
        history_of(read_snapshot(content))


def changed(snapshot: Path, change: Any) -> Snapshot:
    whole = pickle.loads(snapshot.read_bytes())
    change(whole["device_traces"][0])
    return read_snapshot(pickle.dumps(whole))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda trace: trace.clear(), "no history"),
        (lambda trace: trace.append(dict(trace[-1], action="alloc", addr=64)), "contradict"),
        (lambda trace: trace.insert(5, trace[5] | {"action": FREED, "addr": 64}), "outside"),
        (lambda trace: trace.insert(0, dict(trace[0])), "contradict"),
    ],
)  # fmt: skip
def test_what_cannot_have_happened_is_refused(change: Any, word: str, tmp_path: Path) -> None:
    path = tmp_path / "history"
    recorded(path, "", 1, before=0)
    with pytest.raises(StudioError, match=word):
        history_of(changed(path, change))


@pytest.mark.parametrize("conf", CONFS)
def test_another_card_does_what_the_model_does_there(conf: str, tmp_path: Path) -> None:
    roomy = Program("", 1 << 16)
    roomy.memory.start_history()
    roomy.run(600, 26)
    history = history_of(roomy.recorded(tmp_path / "history"))
    failures = 0
    for total_mib in (200, 500, 700, 900, 1500):
        small = Program(conf, total_mib)
        failure = ""
        try:
            small.run(600, 26, survives=False)
        except ModelledOutOfMemory as error:
            failure = str(error)
        found = what_if(history, card_bytes=total_mib * MIB, conf=conf)
        assert found.failure == failure
        stats = small.memory.allocator.stats()
        assert found.peak_reserved_bytes == stats["reserved_bytes.all.peak"]
        assert found.peak_allocated_bytes == stats["allocated_bytes.all.peak"]
        failures += not found.fits
    assert 0 < failures < 5


def test_an_allocation_that_failed_may_fit_elsewhere(tmp_path: Path) -> None:
    program = Program(total_mib=100)
    program.memory.start_history()
    held = [program.memory.empty(60 * MIB)]
    with pytest.raises(ModelledOutOfMemory):
        program.memory.empty(60 * MIB)
    held.append(program.memory.empty(20 * MIB))
    history = history_of(program.recorded(tmp_path / "history"))
    assert history.facts.was_full
    assert what_if(history, card_bytes=100 * MIB).failed_at is not None
    assert what_if(history, card_bytes=140 * MIB).fits
    held.clear()


@pytest.mark.parametrize("conf", CONFS)
def test_the_card_that_is_called_enough_is_enough(conf: str, tmp_path: Path) -> None:
    history = history_of(recorded(tmp_path / "history", "", 3, before=0))
    for card_bytes in (1 << 26, 1 << 36):  # on the first, it fails
        found = what_if(history, card_bytes=card_bytes, other_bytes=3 << 20, conf=conf)
        assert found.fits == (card_bytes == 1 << 36)
        assert found.enough_bytes is not None
        assert what_if(history, card_bytes=found.enough_bytes, other_bytes=3 << 20, conf=conf).fits
