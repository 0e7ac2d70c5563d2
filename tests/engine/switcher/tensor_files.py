"""Files of tensors: good ones, and a corpus of bad ones with the words of their refusal."""

import argparse
import io
import pickle
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

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
            "conjugate": torch.full((3,), 1 + 2j).conj(),
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


def entry_of_a_tensor() -> bytes:
    """A list that sets an entry of a tensor, which PyTorch's own reader did before torch 2.10."""
    with zipfile.ZipFile(io.BytesIO(saved({"w": torch.ones(3)}))) as source:
        raw = source.read("archive/data.pkl")
    at = raw.rindex(b"R") + 1  # the tensor is made
    raw = raw[:at] + b"K\x00K\x01s" + raw[at:]
    return rezipped(lambda name, old: raw if name.endswith("data.pkl") else old)


def attribute_of_a_class() -> bytes:
    """A list that sets an attribute of a class: every file that is read later would see it."""
    state = b"N}X\x06\x00\x00\x00spoiltK\x01s\x86"  # (None, {"spoilt": 1})
    return with_pickle(b"\x80\x02}X\x01\x00\x00\x00wccollections\nOrderedDict\n" + state + b"bs.")


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


def copied(copies: int) -> bytes:
    """Copies of one mapping of a thousand entries, eight bytes for each."""
    entries = b"".join(b"M%sN" % struct.pack("<H", number) for number in range(1000))
    again = b"h\x01h\x00\x85R" * copies
    return with_pickle(
        b"\x80\x02]q\x02(}q\x00(" + entries + b"uccollections\nOrderedDict\nq\x01" + again + b"e."
    )


def packed() -> bytes:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(saved(state_dict()))) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            target.writestr(name, source.read(name))
    return out.getvalue()


def _deep() -> dict[str, Any]:
    inner: dict[str, Any] = {"w": torch.ones(1)}
    for _ in range(40):
        inner = {"x": inner}
    return inner


_BY_TORCH = "refused by PyTorch's safe reader"
BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "is empty"),
    "text": (lambda: b"weights: 1, 2, 3\n" * 10, "not a torch.save file"),
    "HDF5": (lambda: b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
    "safetensors": (lambda: struct.pack("<Q", TEN_GB) + b'{"w":{}}', "safetensors"),
    "code": (lambda: saved({"w": torch.ones(3), "x": Evil()}), "asks for builtins.exec"),
    "code, old format": (lambda: saved({"x": Evil()}, **LEGACY), _BY_TORCH),
    "code, plain pickle": (lambda: pickle.dumps(Evil()), "not one that torch.save wrote"),
    "code in an old opcode": (lambda: with_pickle(b"\x80\x02(S'x'\nios\nsystem\n."), _BY_TORCH),
    "code made of parts": (
        lambda: with_pickle(b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R."), _BY_TORCH,
    ),
    "a whole model": (lambda: saved(torch.nn.Linear(2, 2)), "model.state_dict()"),
    "a class": (
        lambda: saved({"w": torch.ones(1), "args": argparse.Namespace(lr=0.1)}),
        "asks for the class argparse.Namespace",
    ),
    "a NumPy array": (lambda: saved({"w": torch.ones(1), "n": np.ones(4)}), "asks for numpy"),
    "an entry of a tensor": (entry_of_a_tensor, _BY_TORCH),
    "an attribute of a class": (attribute_of_a_class, _BY_TORCH),
    "truncated": (lambda: saved(state_dict())[:900], _BY_TORCH),
    "truncated, old format": (lambda: saved(state_dict(), **LEGACY)[:-40], _BY_TORCH),
    "a record is missing": (
        lambda: rezipped(lambda name, raw: None if name.endswith("data/0") else raw), _BY_TORCH,
    ),
    "a record is short": (
        lambda: rezipped(lambda name, raw: raw[:-4] if name.endswith("data/0") else raw),
        "cut off or forged",
    ),
    "another zip archive": (
        lambda: rezipped(lambda name, raw: None if name.endswith("data.pkl") else raw), _BY_TORCH,
    ),
    "packed": (packed, "compressed zip archive"),
    "a record of 10 GB": (forged_record, _BY_TORCH),
    "a storage of 10 GB": (forged_length, "cut off or forged"),
    "a stride of zero": (overlapping_stride, "repeats the same numbers"),
    "a tensor beyond its storage": (beyond_its_storage, _BY_TORCH),
    "bytes of 10 GB": (
        lambda: with_pickle(b"\x80\x02\x8e" + struct.pack("<Q", TEN_GB) + b"x."), _BY_TORCH,
    ),
    "a memo of 10 GB": (
        lambda: with_pickle(b"\x80\x02}r" + struct.pack("<I", 0x7FFFFFFF) + b"."), "has no tensors",
    ),
    "a sparse tensor": (
        lambda: saved({"a": torch.eye(3).to_sparse()}), "sparse, quantized or meta",
    ),
    "a meta tensor": (
        lambda: saved({"a": torch.ones(3, device="meta")}), "sparse, quantized or meta",
    ),
    "a list": (lambda: saved([torch.ones(2)]), "holds a list"),
    "one tensor": (lambda: saved(torch.ones(2)), "holds one tensor"),
    "no tensor": (lambda: saved({"epoch": 3}), "it has no tensors"),
    "nested": (lambda: saved(_deep()), "nests mappings"),
    "itself inside": (
        lambda: with_pickle(b"\x80\x02}q\x00X\x01\x00\x00\x00xh\x00s."), "nests mappings",
    ),
    "two tensors of one name": (
        lambda: saved({"a.b": torch.ones(1), "a": {"b": torch.ones(2)}}), "with the same name",
    ),
    "names that are no texts": (
        lambda: saved({(1, 2): torch.ones(1), None: torch.ones(2)}), "with the same name",
    ),
    "a newer pickle": (lambda: saved(state_dict(), pickle_protocol=4), _BY_TORCH),
}  # fmt: skip
