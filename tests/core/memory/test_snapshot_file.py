import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory import snapshot_file
from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.memory.snapshot_file import UnsafePickleError, open_snapshot, read_snapshot

MIB = 1 << 20


def used_model(conf: str = "") -> AllocatorModel:
    model = AllocatorModel(1996 * MIB, conf=conf)
    chance = random.Random(7)
    blocks = [model.allocate(chance.randrange(1, 30 * MIB)) for _ in range(60)]
    for block in chance.sample(blocks, 30):
        model.free(block)
    return model


@pytest.mark.parametrize("conf", ["", "expandable_segments:True", "max_split_size_mb:32"])
def test_the_models_snapshot_opens_with_its_numbers(conf: str, tmp_path: Path):
    model = used_model(conf)
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(model.snapshot()))
    snapshot = open_snapshot(path)
    stats = model.stats()
    assert snapshot.reserved_bytes == stats["reserved_bytes.all.current"]
    assert snapshot.allocated_bytes == stats["allocated_bytes.all.current"]
    assert snapshot.conf == conf
    columns = snapshot.segments
    assert sum(columns.sizes) == snapshot.reserved_bytes == sum(columns.block_sizes)
    assert columns.block_states.count("0") == stats["allocation.all.current"]
    assert any(columns.is_expandable) == ("expandable" in conf)


def block(address: int = 0, size: Any = MIB, state: Any = "inactive", **more: Any) -> Any:
    return {"address": address, "size": size, "state": state, "requested_size": 1, **more}


def segment(*blocks: Any, **more: Any) -> dict[str, Any]:
    return {
        "device": 0, "address": 0, "total_size": MIB, "segment_type": "large", "stream": 0,
        "blocks": list(blocks) or [block()], **more,
    }  # fmt: skip


def whole(*segments: Any, **more: Any) -> dict[str, Any]:
    return {"segments": list(segments) or [segment()], "device_traces": [[]], **more}


shared = [block(address=i, size=1) for i in range(1000)]
CORPUS: dict[str, tuple[Any, str]] = {
    "a list": ([], "no segments"),
    "no segments": ({}, "no segments"),
    "a segment without blocks": (whole({"address": 1}), "has no blocks"),
    "a segment of no kind": (whole(segment(segment_type="huge")), "unknown pool"),
    "a block that is a number": (whole(segment(7)), "no fields"),
    "a block in no state": (whole(segment(block(state="free"))), "unknown state"),
    "a size that is true": (whole(segment(block(size=True))), "“size” is not a size"),
    "a size of nothing": (whole(segment(block(size=0))), "not contiguous"),
    "an address elsewhere": (whole(segment(block(address=5))), "not contiguous"),
    "blocks that do not fill": (whole(segment(total_size=2 * MIB)), "do not fill"),
    "a history that is a text": (whole(device_traces=["alloc"]), "history is not a list"),
    "an entry without a size": (
        whole(device_traces=[[{"action": "alloc", "addr": 1}]]), "“size” is not a size",
    ),
    "a time that is a text": (
        whole(device_traces=[[{"action": "a", "addr": 1, "size": 1, "time_us": "now"}]]),
        "“time_us” is not a size",
    ),
    "the same million blocks again and again": (
        whole(*[segment(*shared, total_size=1000)] * 1001), "more than 1000000 blocks",
    ),
    "too many segments": (whole(*[7] * 200_001), "more than 200000 segments"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "reason"), CORPUS.values(), ids=CORPUS.keys())
def test_what_is_no_snapshot_is_refused_with_the_reason(value: Any, reason: str, tmp_path: Path):
    path = tmp_path / "hostile.pickle"
    path.write_bytes(pickle.dumps(value))
    with pytest.raises(StudioError, match=reason) as refused:
        open_snapshot(path)
    assert str(refused.value).startswith("Cannot open “hostile.pickle”. ")


class Runs:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch /tmp/gpu-studio-was-here",)


# Every opcode that looks up a name, calls something or builds an object.
PROGRAMS: dict[str, tuple[bytes, str]] = {
    "a call": (pickle.dumps(Runs()), r"asks for posix\.system|asks for nt\.system"),
    "a call of protocol 0": (b"cos\nsystem\n(S'true'\ntR.", r"asks for os\.system"),
    "an instance of protocol 0": (b"(ios\nsystem\n.", r"asks for os\.system"),
    "a text that is called": (b"\x80\x04X\x02\0\0\0os)R.", "damaged"),
    "an object from outside": (b"\x80\x02K\x01Q.", "outside of the file"),
    "nothing": (b"", "ends early"),
    "a memory that is not there": (b"\x80\x04h\x07.", "ends early"),
    "a page": (b"<!DOCTYPE html><html></html>", "damaged"),
}


@pytest.mark.parametrize(("content", "reason"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_nothing_of_a_file_is_run(content: bytes, reason: str):
    with pytest.raises(UnsafePickleError, match=reason) as refused:
        read_snapshot(content)
    assert len(str(refused.value)) < 250
    assert not os.path.exists("/tmp/gpu-studio-was-here")


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: {**whole, "external_annotations": {"deep": [[[]]]}, "unheard_of": 1},
        lambda whole: {**whole, "allocator_settings": 7},
        lambda whole: {**whole, "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": 7}},
        lambda whole: {key: value for key, value in whole.items() if key == "segments"},
        lambda whole: {**whole, "device_traces": None},
        lambda whole: {**whole, "segments": [{**whole["segments"][0], "segment_pool_id": "x"}]},
    ],
)  # fmt: skip
def test_what_is_not_needed_may_be_anything(damage: Callable[[Any], Any]):
    assert read_snapshot(pickle.dumps(damage(whole()))).reserved_bytes == MIB


def test_an_older_pytorchs_blocks_have_no_addresses():
    old = {"size": MIB, "state": "active_pending_free"}
    snapshot = read_snapshot(pickle.dumps(whole(segment(old))))
    assert snapshot.segments.block_states == "1"
    assert (snapshot.reserved_bytes, snapshot.allocated_bytes) == (MIB, 0)


def test_one_card_of_several_is_shown():
    two = whole(segment(device=1), segment(device=3, address=0))
    assert read_snapshot(pickle.dumps(two)).device_index == 1
    assert read_snapshot(pickle.dumps(two), 3).device_index == 3
    assert read_snapshot(pickle.dumps(two), 2).reserved_bytes == 0


def test_a_file_that_is_not_there_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(StudioError, match="Cannot read"):
        open_snapshot(tmp_path / "none")
    with pytest.raises(StudioError, match="Cannot read"):
        open_snapshot(tmp_path)
    path = tmp_path / "large"
    path.write_bytes(b"." * 100)
    monkeypatch.setattr(snapshot_file, "LARGEST_FILE_BYTES", 99)
    with pytest.raises(StudioError, match="is larger than"):
        open_snapshot(path)


def test_any_damage_to_a_file_is_refused_or_read():
    content = bytearray(pickle.dumps(used_model().snapshot()))
    chance = random.Random(3)
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 5, 50))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            snapshot = read_snapshot(bytes(damaged))
        except UnsafePickleError:
            continue
        assert snapshot.reserved_bytes == sum(snapshot.segments.sizes)


def test_a_history_is_counted(monkeypatch: pytest.MonkeyPatch):
    entry = {"action": "alloc", "addr": 1, "size": 1}
    content = pickle.dumps(whole(device_traces=[[entry] * 10]))
    monkeypatch.setattr(snapshot_file, "MOST_ENTRIES", 10)
    assert len(read_snapshot(content).history) == 10
    monkeypatch.setattr(snapshot_file, "MOST_ENTRIES", 9)
    with pytest.raises(UnsafePickleError, match="more than 9 entries"):
        read_snapshot(content)
