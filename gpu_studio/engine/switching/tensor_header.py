"""What a file of ``torch.save`` says it holds, read without loading or running any of it.

Both formats of it: the zip archive, and the one before PyTorch 1.6. No torch here.
"""

from __future__ import annotations

import io
import pickle
import stat
import struct
import zipfile
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from gpu_studio.core.units import format_bytes
from gpu_studio.engine.switching.tensor_archive import LONGEST_PICKLE, ZipReader
from gpu_studio.engine.switching.tensor_pickle import (
    ITEM_BYTES,
    DescribedTensor,
    Describer,
    StorageHeader,
    check_opcodes,
    refuse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

_MOST_VALUES = 200_000
_DEEPEST = 8
# torch.serialization.MAGIC_NUMBER: the first pickle of the format before 1.6.
_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
_SAFE_PROTOCOL = 2  # torch.serialization.DEFAULT_PROTOCOL, all that weights_only reads
_LEGACY_PICKLES = 5  # magic number, version, system, the object, the storages' keys

_OTHER_FORMATS = {
    b"\x89HDF": "an HDF5 file (Keras writes these)",
    b"GGUF": "a GGUF file (llama.cpp reads these)",
    b"\x1f\x8b": "a gzip archive",
    b"%PDF": "a PDF document",
    b"\x93NUMPY": "a NumPy array",
}


class TensorHeader(msgspec.Struct, frozen=True):
    """One tensor as the file describes it; ``bytes`` is what it takes in memory."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int


class FileHeader(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is safe to open, and what it holds; ``left_out`` counts other values."""

    size_bytes: int
    tensors: tuple[TensorHeader, ...]
    left_out: int
    is_zip: bool

    @property
    def tensor_bytes(self) -> int:
        """What all tensors take in memory."""
        return sum(tensor.bytes for tensor in self.tensors)


def read_header(path: Path) -> FileHeader:
    """Return what a file holds.

    Raises:
        StudioError: it is not there, not safe, damaged, or no mapping of names to tensors; the
            sentence says which, and what would help.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            refuse(f"{_shown(path)} is not a file.")
        with path.open("rb") as file:
            return _read(file, status.st_size, _shown(path))
    except FileNotFoundError:
        refuse(f"{_shown(path)} is not there.")
    except OSError as error:
        refuse(f"{_shown(path)} cannot be read: {error.strerror or error}.")


def _shown(path: Path) -> str:
    name = path.name or str(path)
    return "“" + "".join(c if c.isprintable() else "\ufffd" for c in name[:60]) + "”"


def _read(file: BinaryIO, size_bytes: int, shown: str) -> FileHeader:
    head = file.read(16)
    file.seek(0)
    if not head:
        refuse(f"{shown} is empty.")
    if head.startswith(b"PK\x03\x04"):
        reader: ZipReader | _LegacyReader = ZipReader(file, size_bytes, shown)
    elif head.startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")):
        reader = _LegacyReader(file, size_bytes, shown)
    else:
        refuse(_what_else(head, size_bytes, shown))
    try:
        root = reader.root()
        tensors, left_out = _flatten(root, shown)
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError,
            AttributeError, OverflowError, RecursionError, MemoryError, struct.error,
            NotImplementedError, zipfile.BadZipFile) as error:  # fmt: skip
        refuse(f"{shown} is damaged or cut off: its list of tensors cannot be read ({error}).")
    if reader.protocol > _SAFE_PROTOCOL:
        refuse(
            f"{shown} was saved with pickle protocol {reader.protocol}, which PyTorch's safe "
            "reader does not know. Save it again with torch.save's own."
        )
    return FileHeader(
        size_bytes=size_bytes,
        tensors=tuple(tensors),
        left_out=left_out,
        is_zip=isinstance(reader, ZipReader),
    )


def _what_else(head: bytes, size_bytes: int, shown: str) -> str:
    only = "This program opens what torch.save wrote: a mapping of names to tensors."
    for sign, what in _OTHER_FORMATS.items():
        if head.startswith(sign):
            return f"{shown} is {what}. {only}"
    if len(head) > 8 and head[8:9] == b"{":
        (header_bytes,) = struct.unpack("<Q", head[:8])
        what = f"{shown} looks like a safetensors file"
        if header_bytes > size_bytes:
            told = format_bytes(header_bytes)
            return f"{what} whose header would have {told}, more than the whole file. {only}"
        return f"{what}. {only}"
    return f"{shown} is no file of torch.save: it begins with neither of its two formats. {only}"


class _LegacyReader:
    """The format before 1.6: five pickles, then each storage with its length in front."""

    def __init__(self, file: BinaryIO, size_bytes: int, shown: str) -> None:
        self._stream = io.BytesIO(file.read(LONGEST_PICKLE))
        self._size_bytes = size_bytes
        self._shown = shown
        self._declared: dict[str, int] = {}
        self.protocol = 0

    def root(self) -> Any:
        """Return the described object of the file."""
        values = []
        for number in range(_LEGACY_PICKLES):
            start = self._stream.tell()
            self.protocol = max(self.protocol, check_opcodes(self._stream, self._shown))
            self._stream.seek(start)
            values.append(Describer(self._stream, self._storage, self._shown).load())
            if number == 0 and values[0] != _MAGIC_NUMBER:
                refuse(
                    f"{self._shown} is a Python pickle, but none that torch.save wrote. This "
                    "program opens mappings of names to tensors, written by torch.save."
                )
        declared = sum(size + 8 for size in self._declared.values())
        if self._stream.tell() + declared > self._size_bytes:
            refuse(
                f"{self._shown} declares {format_bytes(declared)} of tensors, but has "
                f"{format_bytes(max(0, self._size_bytes - self._stream.tell()))} of them: it is "
                "cut off or forged."
            )
        return values[3]

    def _storage(self, key: str, dtype: str, count: int) -> StorageHeader:
        declared = count * ITEM_BYTES[dtype]
        self._declared[key] = max(self._declared.get(key, 0), declared)
        return StorageHeader(key, dtype, declared)


def _flatten(root: Any, shown: str) -> tuple[list[TensorHeader], int]:
    """Return the tensors of nested mappings with dotted names, and the count of other values."""
    if not isinstance(root, dict):
        what = "one tensor" if isinstance(root, DescribedTensor) else f"a {type(root).__name__}"
        refuse(
            f"{shown} holds {what}, not a mapping of names to tensors, as "
            "torch.save(model.state_dict(), …) writes it."
        )
    tensors: list[TensorHeader] = []
    left_out = 0
    for name, value in _walk(root, "", 0, [0], shown):
        if isinstance(value, DescribedTensor):
            tensors.append(TensorHeader(name, value.shape, value.dtype, value.bytes))
        else:
            left_out += 1
    if not tensors:
        refuse(f"{shown} holds a mapping, but no tensor is in it.")
    twice = [name for name, count in Counter(one.name for one in tensors).items() if count > 1]
    if twice:
        refuse(
            f"{shown} holds several tensors that would go by the name “{twice[0][:60]}” here. Save "
            "them with names that are texts, each with one of its own."
        )
    return tensors, left_out


def _walk(
    mapping: dict[Any, Any], prefix: str, depth: int, seen: list[int], shown: str
) -> Iterator[tuple[str, Any]]:
    if depth > _DEEPEST:
        refuse(f"{shown} nests mappings more than {_DEEPEST} deep.")
    for key, value in mapping.items():
        seen[0] += 1
        if seen[0] > _MOST_VALUES:
            refuse(f"{shown} holds more than {_MOST_VALUES} values, too many for a model.")
        name = f"{prefix}{key}" if isinstance(key, (str, int)) else f"{prefix}?"
        if isinstance(value, dict):
            yield from _walk(value, f"{name}.", depth + 1, seen, shown)
        else:
            yield name, value
