"""The user's own file: good ones are read as PyTorch reads them, bad ones are refused, unrun."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.protocol import (
    FileInspected,
    InspectFile,
    PlaceFinished,
    PlaceModel,
    PlaceRow,
    RequestFailed,
)
from gpu_studio.engine.dispatch import Dispatcher
from gpu_studio.engine.placed import PlacedFile
from gpu_studio.engine.tensor_file import open_tensors
from gpu_studio.engine.tensor_header import read_header
from tests.engine.answers import ask, only

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEN_GB = 10 << 30
WITNESS = "GPU_STUDIO_TEST_WITNESS"


class Evil:
    """Runs code when a careless reader opens it."""

    def __reduce__(self) -> Any:
        return exec, (f"import os; os.environ[{WITNESS!r}] = 'ran'",)


def state_dict() -> dict[str, torch.Tensor]:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    return net.state_dict()


def saved(value: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream, **options)
    return stream.getvalue()


LEGACY = {"_use_new_zipfile_serialization": False}
GOOD: dict[str, Callable[[], bytes]] = {
    "state dict": lambda: saved(state_dict()),
    "state dict, old format": lambda: saved(state_dict(), **LEGACY),
    "checkpoint": lambda: saved({"model": state_dict(), "epoch": 3, "note": ["a"]}),
    "many types": lambda: saved(
        {
            "parameter": torch.nn.Parameter(torch.ones(3)),
            "bfloat16": torch.ones(3, dtype=torch.bfloat16),
            "view": torch.arange(12.0).reshape(3, 4)[:, 1:3],
            "scalar": torch.tensor(3),
            "empty": torch.ones(0, 4),
            "uint16": torch.ones(3, dtype=torch.uint16),
            "float8": torch.ones(3).to(torch.float8_e4m3fn),
            "complex": torch.ones(3, dtype=torch.complex64),
        }
    ),
    "tied": lambda: saved(dict.fromkeys(("encoder", "decoder"), torch.ones(4, 4))),
}


def rezipped(change: Callable[[str, bytes], bytes | None]) -> bytes:
    """Return a good file whose records were changed; None leaves one out."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(saved(state_dict()))) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as target,
    ):
        for record in source.infolist():
            changed = change(record.filename, source.read(record))
            if changed is not None:
                target.writestr(record.filename, changed)
    return out.getvalue()


def with_pickle(raw: bytes) -> bytes:
    return rezipped(lambda name, old: raw if name.endswith("data.pkl") else old)


def forged_length() -> bytes:
    """A tensor whose storage is declared to have 10 GB, in a file of some kilobytes."""
    good = saved({"w": torch.ones(77)})
    with zipfile.ZipFile(io.BytesIO(good)) as source:
        raw = source.read("archive/data.pkl")
    assert b"K\x4dtq" in raw  # BININT1 77, TUPLE: the storage's length
    raw = raw.replace(b"K\x4dtq", b"\x8a\x08" + struct.pack("<q", TEN_GB // 4) + b"tq")
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(good)) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as target,
    ):
        for record in source.infolist():
            target.writestr(
                record.filename,
                raw if record.filename.endswith("data.pkl") else source.read(record),
            )
    return out.getvalue()


def beyond_its_storage() -> bytes:
    """Six numbers from the seventh of ten on."""
    with zipfile.ZipFile(io.BytesIO(saved({"w": torch.arange(10.0)[4:]}))) as source:
        raw = source.read("archive/data.pkl")
    assert b"QK\x04K\x06\x85" in raw  # the storage, the offset 4, the shape (6,)
    raw = raw.replace(b"QK\x04K\x06\x85", b"QK\x07K\x06\x85")
    stored = torch.arange(10.0).numpy().tobytes()
    return rezipped(
        lambda name, old: raw if name.endswith("data.pkl")
        else stored if name.endswith("data/0") else old
    )  # fmt: skip


def packed() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("archive/data.pkl", b"\x80\x02}.")
        target.writestr("archive/data/0", bytes(50 << 20))
    return out.getvalue()


def forged_record() -> bytes:
    """A zip archive whose list says that a record has 10 GB."""
    raw = bytearray(saved({"w": torch.ones(1000)}))
    at = raw.rindex(b"PK\x01\x02", 0, raw.rindex(b"data/0"))
    for offset in (20, 24):  # packed and unpacked size in the central directory
        raw[at + offset : at + offset + 4] = struct.pack("<I", 4_000_000_000)
    return bytes(raw)


def overlapping_stride() -> bytes:
    """One number that is said to be 40 GB of them, by a stride of zero."""
    return saved({"w": torch.ones(1).expand(TEN_GB)})


def deep(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"w": torch.ones(1)}
    for _ in range(levels):
        inner = {"x": inner}
    return inner


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "is empty"),
    "truncated": (lambda: saved(state_dict())[:900], "cut off"),
    "truncated, old format": (lambda: saved(state_dict(), **LEGACY)[:-40], "cut off or forged"),
    "truncated in the list": (lambda: saved(state_dict(), **LEGACY)[:300], "damaged or cut off"),
    "a record is missing": (
        lambda: rezipped(lambda name, raw: None if name.endswith("data/0") else raw),
        "has nothing of it",
    ),
    "a record is short": (
        lambda: rezipped(lambda name, raw: raw[:-4] if name.endswith("data/0") else raw),
        "cut off or forged",
    ),
    "text": (lambda: b"weights: 1, 2, 3\n" * 10, "no file of torch.save"),
    "HDF5": (lambda: b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
    "safetensors, 10 GB header": (
        lambda: struct.pack("<Q", TEN_GB) + b'{"w":{}}', "10\u202fGiB, more than the whole file",
    ),
    "another zip archive": (
        lambda: rezipped(lambda name, raw: None if name.endswith("data.pkl") else raw),
        "not one that torch.save wrote",
    ),
    "packed": (packed, "packed zip archive"),
    "a record of 10 GB": (forged_record, "but the file has"),
    "a storage of 10 GB": (forged_length, "declares 10\u202fGiB"),
    "a stride of zero": (overlapping_stride, "repeats the same numbers"),
    "a tensor beyond its storage": (beyond_its_storage, "damaged or cut off"),
    "a text of 10 GB": (
        lambda: with_pickle(b"\x80\x02\x8d" + struct.pack("<Q", TEN_GB) + b"x."),
        "damaged or cut off",
    ),
    "a memo of 10 GB": (
        lambda: with_pickle(b"\x80\x02}r" + struct.pack("<I", 0x7FFFFFFF) + b"."),
        "remembered as number 2147483647",
    ),
    "bytes of 10 GB": (
        lambda: with_pickle(b"\x80\x02\x8e" + struct.pack("<Q", TEN_GB) + b"x."),
        "damaged or cut off",
    ),
    "code": (lambda: saved({"w": torch.ones(3), "x": Evil()}), "exec. It was not opened"),
    "code, old format": (lambda: saved({"x": Evil()}, **LEGACY), "exec. It was not opened"),
    "code, plain pickle": (lambda: pickle.dumps(Evil()), "exec. It was not opened"),
    "code, plain pickle 2": (lambda: pickle.dumps(Evil(), 2), "exec. It was not opened"),
    "code in an old opcode": (
        lambda: with_pickle(b"\x80\x02(S'x'\nios\nsystem\n."), "uses INST",
    ),
    "code made of parts": (
        lambda: with_pickle(b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R."),
        "would call posix.system",
    ),
    "a whole model": (lambda: saved(torch.nn.Linear(2, 2)), "model.state_dict()"),
    "a sparse tensor": (
        lambda: saved({"a": torch.eye(3).to_sparse()}),
        "holds a tensor of a kind that is not opened here (_rebuild_sparse_tensor)",
    ),
    "an expanded tensor": (
        lambda: saved({"a": torch.ones(1).expand(5)}), "repeats the same numbers, as expand() does",
    ),
    "a list": (lambda: saved([torch.ones(2)]), "holds a list"),
    "one tensor": (lambda: saved(torch.ones(2)), "holds one tensor"),
    "no tensor": (lambda: saved({"epoch": 3}), "no tensor is in it"),
    "nested": (lambda: saved(deep(40)), "nests mappings"),
    "itself inside": (
        lambda: with_pickle(b"\x80\x02}q\x00X\x01\x00\x00\x00xh\x00s."), "nests mappings",
    ),
    "a newer pickle": (lambda: saved(state_dict(), pickle_protocol=4), "pickle protocol 4"),
    "a pickle that is none": (lambda: with_pickle(b"\x80\x02q"), "damaged or cut off"),
}  # fmt: skip


def refusal(path: Path) -> str:
    (failed,) = ask(InspectFile(path=str(path)))
    assert isinstance(failed, RequestFailed), failed
    assert failed.failure.kind is FailureKind.FILE_REFUSED
    assert not failed.failure.traceback_text
    return failed.failure.message


@pytest.mark.parametrize("name", GOOD)
def test_a_good_file_is_described_as_pytorch_reads_it(name: str, tmp_path: Path):
    path = tmp_path / "good.pt"
    path.write_bytes(GOOD[name]())
    (told,) = ask(InspectFile(path=str(path)))
    assert isinstance(told, FileInspected)
    assert told.size_bytes == path.stat().st_size
    tensors = open_tensors(str(path))
    assert told.tensors == len(tensors)
    assert told.tensor_bytes == sum(tensor.nbytes for tensor in tensors.values())
    assert told.left_out == (2 if name == "checkpoint" else 0)
    assert told.is_mapped is ("old" not in name)


@pytest.mark.parametrize("name", GOOD)
def test_a_file_is_placed_bit_for_bit(name: str, tmp_path: Path):
    path = tmp_path / "good.pt"
    path.write_bytes(GOOD[name]())
    dispatcher = Dispatcher()
    events = ask(PlaceModel(path=str(path), device="cpu"), dispatcher)
    finished = events[-1]
    assert isinstance(finished, PlaceFinished)
    assert (finished.proof, finished.same_output, finished.tolerance) == ("values", True, 0.0)
    assert finished.model == "good.pt"
    assert [row.name for row in only(PlaceRow, events)] == list(open_tensors(str(path)))
    half = ask(PlaceModel(path=str(path), device="cpu", dtype="float16"), dispatcher)[-1]
    assert half.same_output is True
    assert half.largest_difference <= half.tolerance


def test_a_value_that_half_cannot_hold_is_told(tmp_path: Path):
    path = tmp_path / "large.pt"
    path.write_bytes(saved({"w": torch.tensor([1e6, 1.0])}))
    finished = ask(PlaceModel(path=str(path), device="cpu", dtype="float16"))[-1]
    assert finished.same_output is False


def test_a_changed_bit_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "good.pt"
    path.write_bytes(saved({"w": torch.ones(100), "n": torch.tensor([float("nan")])}))
    assert ask(PlaceModel(path=str(path), device="cpu"))[-1].same_output is True

    def spoiling(thing: PlacedFile, device: torch.device, dtype: torch.dtype | None) -> None:
        changed = thing._tensors["w"].clone()
        changed[7] = torch.nextafter(changed[7], torch.tensor(2.0))
        thing._tensors["w"] = changed

    monkeypatch.setattr(PlacedFile, "move", spoiling)
    assert ask(PlaceModel(path=str(path), device="cpu"))[-1].same_output is False


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_the_reason_and_nothing_runs(name: str, tmp_path: Path):
    os.environ.pop(WITNESS, None)
    make, words = BAD[name]
    path = tmp_path / "bad.pt"
    path.write_bytes(make())
    assert words in refusal(path)
    (failed,) = ask(PlaceModel(path=str(path), device="cpu"))
    assert words in failed.failure.message
    assert WITNESS not in os.environ


@pytest.mark.parametrize("name", ["code", "code, plain pickle"])
def test_the_evil_files_of_this_corpus_do_run_in_a_careless_reader(name: str, tmp_path: Path):
    """Else the tests above would prove nothing."""
    os.environ.pop(WITNESS, None)
    if name == "code":
        torch.load(io.BytesIO(BAD[name][0]()), weights_only=False)
    else:
        pickle.loads(BAD[name][0]())
    assert os.environ.pop(WITNESS) == "ran"


def test_what_is_no_file(tmp_path: Path):
    assert "is not there" in refusal(tmp_path / "nothing.pt")
    assert "is not a file" in refusal(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.pt")
        assert "is not a file" in refusal(tmp_path / "pipe.pt")


def test_a_name_from_outside_is_shown_in_one_line(tmp_path: Path):
    path = tmp_path / ("bad\nname" + "x" * 100 + ".pt")
    path.write_bytes(b"")
    assert refusal(path).count("\n") == 0
    assert len(refusal(path)) < 100


def test_pytorch_has_the_last_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "good.pt"
    path.write_bytes(saved(state_dict()))
    asked: list[dict[str, Any]] = []

    def refusing(*_: Any, **options: Any) -> None:
        asked.append(options)
        raise pickle.UnpicklingError("Weights only load failed. … weights_only to False")

    monkeypatch.setattr(torch, "load", refusing)
    with pytest.raises(StudioError, match="refused by PyTorch's safe reader") as caught:
        open_tensors(str(path))
    assert asked == [{"map_location": "cpu", "weights_only": True, "mmap": True}]
    assert "False" not in str(caught.value)  # no advice to run the code


def test_tensors_that_are_not_those_of_the_header_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "good.pt"
    path.write_bytes(saved({"w": torch.ones(3)}))
    monkeypatch.setattr(torch, "load", lambda *_, **__: {"w": torch.ones(4)})
    with pytest.raises(StudioError, match="do not agree"):
        open_tensors(str(path))


_ZIP, _OLD = saved(state_dict()), saved(state_dict(), **LEGACY)


@hypothesis.given(
    good=st.sampled_from([_ZIP, _OLD]),
    changes=st.lists(
        st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=8
    ),
    cut=st.integers(0, 1 << 16),
)
@hypothesis.settings(
    max_examples=300, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
def test_no_damage_is_more_than_a_refusal(
    tmp_path: Path, good: bytes, changes: list[tuple[int, int]], cut: int
):
    raw = bytearray(good[: max(1, cut % (2 * len(good)))])
    for place, value in changes:
        raw[place % len(raw)] = value
    path = tmp_path / "damaged.pt"
    path.write_bytes(raw)
    try:
        declared = read_header(path).tensor_bytes
    except StudioError:
        return
    assert declared <= len(raw)
