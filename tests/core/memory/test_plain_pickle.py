"""A corpus of pickles: those that hold plain values are read, hostile ones are refused."""

from __future__ import annotations

import collections
import os
import pickle
import pickletools
import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_studio.core.memory import plain_pickle
from gpu_studio.core.memory.plain_pickle import DEEPEST, UnsafePickleError, load_plain

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    | st.tuples(inner) | st.tuples(inner, inner) | st.tuples(inner, inner, inner, inner),
    max_leaves=30,
)  # fmt: skip


@given(value=plain, protocol=st.integers(2, 5))
@settings(deadline=None)
def test_plain_values_are_read_as_pythons_reader_does(value: object, protocol: int):
    assert load_plain(pickle.dumps(value, protocol)) == value


def test_what_is_shared_stays_shared():
    inner = [1]
    first, second = load_plain(pickle.dumps([inner, inner]))
    assert first is second


class Runs:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch /tmp/gpu-studio-was-here",)


class Builds:
    def __init__(self) -> None:
        self.field = 1


def deep(levels: int, opening: bytes, closing: bytes) -> bytes:
    return b"\x80\x04" + opening * levels + closing * (levels - 1) + b"."


def laughs(levels: int) -> bytes:
    """Return a list of ten lists of ten lists … that are all the same: 10^levels texts."""
    value: list[object] = ["ha"]
    for _ in range(levels):
        value = [value] * 10
    return pickle.dumps(value)


def looped() -> bytes:
    value: list[object] = []
    value.append(value)
    return pickle.dumps(value)


HOSTILE = {
    "a call, by protocol 0": (pickle.dumps(Runs(), 0), "run a program"),
    "a call, by protocol 2": (pickle.dumps(Runs(), 2), "run a program"),
    "a call, by protocol 4": (pickle.dumps(Runs(), 4), "run a program"),
    "a global alone": (b"cos\nsystem\n.", "asks for os.system"),
    "a global by the stack": (
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "asks for os.system",
    ),
    "an instance": (b"(ios\nsystem\n.", "asks for os.system"),
    "an object of a harmless class": (
        pickle.dumps(collections.OrderedDict(a=1)), "asks for collections.OrderedDict",
    ),
    "an object of ours": (pickle.dumps(Builds()), "run a program"),
    "bytes": (pickle.dumps(b"x", 4), "opcode 0x43"),
    "a set": (pickle.dumps({1, 2}, 4), "opcode 0x8f"),
    "a persistent id": (b"Pname\n.", "PERSID"),
    "an extension": (b"\x80\x02\x82\x01.", "EXT1"),
    "a buffer from outside": (b"\x80\x05\x97.", "NEXT_BUFFER"),
    "a bytearray of an exbibyte": (b"\x80\x05\x96" + struct.pack("<Q", 1 << 60) + b".", "0x96"),
    "a text of an exbibyte": (b"\x80\x04\x8d" + struct.pack("<Q", 1 << 60) + b"x.", "ends early"),
    "a text of 4 GiB": (b"\x80\x02X\xff\xff\xff\xffx.", "ends early"),
    "a number of a million digits": (b"L" + b"9" * 1_000_000 + b"L\n.", "opcode 0x4c"),
    "a number of 255 bytes": (b"\x80\x02\x8a\xff" + b"\x7f" * 255 + b".", "64 bits"),
    "a number of 2 GiB": (b"\x80\x02\x8b\xff\xff\xff\x7f.", "opcode 0x8b"),
    "lists in lists": (deep(40_000, b"]", b"a"), "nested more than"),
    "tuples in tuples": (b"\x80\x04)" + b"\x85" * 40_000 + b".", "nested more than"),
    "marks in marks": (b"\x80\x04" + b"(" * 100_000 + b"t" * 100_000 + b".", "nested more than"),
    "a list in itself": (looped(), "contains itself"),
    "a billion laughs": (laughs(100), "nested more than"),
    "a key that is a tuple": (pickle.dumps({(1, 2): 3}), "neither a text nor a number"),
    "nothing": (b"", "ends early"),
    "no stop": (b"\x80\x04K\x01", "ends early"),
    "two values": (b"\x80\x04K\x01K\x02.", "left over"),
    "an empty stack": (b"\x80\x040.", "ends early"),
    "a mark that is not there": (b"\x80\x04t.", "ends early"),
    "a memory that is not there": (b"\x80\x04h\x07.", "ends early"),
    "appending to a number": (b"\x80\x04K\x01K\x02a.", "not a list"),
    "an entry of a list": (b"\x80\x04]K\x01K\x02s.", "not a dictionary"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + b"\0" * 64, "program"),
    "a zip, as torch.save writes": (b"PK\x03\x04" + b"\0" * 64, "program|ends early|plain values"),
    "a page": (b"<!DOCTYPE html><html></html>", "opcode 0x3c"),
    "a newer protocol": (b"\x80\x09N.", "newer than"),
    "a million times nothing": (b"\x80\x04(" + b"N" * 1_000_000 + b"l.", "more values than"),
    "half a million lists": (b"\x80\x04(" + b"]\x94" * 500_000 + b"l.", "waiting"),
    "one value remembered a million times": (
        b"\x80\x04N" + b"\x94" * 1_000_000 + b".", "more values than",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "reason"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_pickles_are_refused_with_the_reason(content: bytes, reason: str):
    tracemalloc.start()
    try:
        with pytest.raises(UnsafePickleError, match=reason) as refused:
            load_plain(content)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 64 << 20
    assert len(str(refused.value)) < 250
    assert not os.path.exists("/tmp/gpu-studio-was-here")


def test_as_deep_as_allowed_is_allowed():
    value: list[object] = []
    for _ in range(DEEPEST - 1):
        value = [value]
    assert load_plain(pickle.dumps(value)) == value
    with pytest.raises(UnsafePickleError, match="nested"):
        load_plain(pickle.dumps([value]))


def test_a_large_place_in_the_memory_costs_nothing():
    assert load_plain(b"\x80\x02K\x07r\xff\xff\xff\x7f.") == 7


def test_values_are_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plain_pickle, "MOST_OBJECTS", 100)
    assert load_plain(pickle.dumps([0] * 99)) == [0] * 99
    with pytest.raises(UnsafePickleError, match="more than 100 values"):
        load_plain(pickle.dumps([0] * 100))


def test_lists_are_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plain_pickle, "MOST_CONTAINERS", 20_000)
    value = [(["text"],)] * 5 + [[f"{number}"] for number in range(19_000)]
    assert load_plain(pickle.dumps(value)) == value
    with pytest.raises(UnsafePickleError, match="more than 20000 lists"):
        load_plain(pickle.dumps([[f"{number}"] for number in range(25_000)]))


def test_a_file_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plain_pickle, "LARGEST_FILE_BYTES", 10)
    with pytest.raises(UnsafePickleError, match="the limit is"):
        load_plain(b"." * 11)


def test_reading_ends_when_it_is_canceled():
    with pytest.raises(UnsafePickleError, match="was stopped"):
        load_plain(pickle.dumps([[0]] * 30_000), is_over=lambda: True)


@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes):
    reason = "."
    try:
        load_plain(content)
    except UnsafePickleError as refused:
        reason = str(refused)
    assert reason.endswith(".")


def test_no_opcode_that_runs_something_is_known():
    """Every opcode of Python that is not of plain values must be missing from the reader."""
    dangerous = {
        "GLOBAL", "STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "REDUCE", "BUILD",
        "PERSID", "BINPERSID", "EXT1", "EXT2", "EXT4", "NEXT_BUFFER", "READONLY_BUFFER",
        "BYTEARRAY8", "BINBYTES8", "DUP",
    }  # fmt: skip
    codes = {opcode.name: ord(opcode.code) for opcode in pickletools.opcodes}
    assert not {codes[name] for name in dangerous} & set(plain_pickle._ACTIONS)
