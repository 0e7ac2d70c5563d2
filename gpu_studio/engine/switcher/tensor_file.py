"""The user's own file of tensors: its list is read first, then it is opened with ``weights_only``.

The list is read without making a tensor, from both formats of ``torch.save``: the zip archive, and
the format before PyTorch 1.6. The tensors are then made by PyTorch's safe reader alone. It cannot
be asked first, because before torch 2.10 a file can corrupt memory through it (CVE-2026-24747): it
sets entries of any object, and trusts the length that a storage claims. `tensor_pickle` refuses the
first, and a storage must be as long as it claims here. Reading the list first also names the reason
of a refusal.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import struct
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import psutil
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.placement_messages import FileInspected
from gpu_studio.core.plain_text import file_name
from gpu_studio.core.units import format_bytes
from gpu_studio.core.user_file import UnusableFileError, open_user_file
from gpu_studio.engine.switcher.tensor_pickle import (
    ITEM_BYTES,
    DescribedTensor,
    Describer,
    StorageHeader,
    refuse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_log = logging.getLogger(__name__)
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
_ONLY = "This program opens torch.save files that map names to tensors."
LONGEST_PICKLE = 64 << 20
_MOST_RECORDS = 1_000_000
_LIST_END = b"PK\x05\x06"  # of the record behind the list of parts (4.3.16)
_MOST_LIST_END_BYTES = 22 + 0xFFFF  # with the longest comment
_LOCAL_HEADER_BYTES = 30  # in front of each part, without its name (APPNOTE.TXT of PKWARE, 4.3.7)


def inspect_file(path: str) -> FileInspected:
    """Return a file's description of itself; raises `StudioError` if it is refused."""
    header = read_header(Path(path))
    return FileInspected(
        path=path,
        size_bytes=header.size_bytes,
        tensors=len(header.tensors),
        tensor_bytes=header.tensor_bytes,
        left_out=header.left_out,
        is_mapped=header.is_zip,
        snippet=f"{snippet_to_open(path)}\n{_LIST}",
    )


def snippet_to_open(path: str) -> str:
    """Return lines that open a file as `open_tensors` does, into a dictionary ``tensors``."""
    return _OPEN.format(path=path)


def open_tensors(path: str) -> dict[str, torch.Tensor]:
    """Return a file's tensors on the CPU by their dotted names, in the file's order.

    Those of a zip archive stay in the file until they are read (``mmap``), but on Windows: there a
    mapped file cannot be written, and your training could not save its next checkpoint.

    Raises:
        StudioError: the file is refused, or does not fit into the PC's memory.
    """
    header = read_header(Path(path))
    needed = 0 if header.is_zip else header.tensor_bytes
    available = psutil.virtual_memory().available
    if needed > available:
        raise StudioError(
            FailureKind.TOO_LARGE,
            f"The file's tensors need {format_bytes(needed)}, but only {format_bytes(available)} "
            "of the PC's memory is free.",
        )
    try:
        mmap = header.is_zip and sys.platform != "win32"
        root = torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except Exception as error:  # of many classes, by PyTorch's version and the file's fault
        _log.warning("%s was refused: %s", path, error)
        refuse(
            f"“{Path(path).name[:60]}” was refused by PyTorch's safe reader (weights_only) and "
            "was not opened."
        )
    tensors = dict(_tensors(root, ""))
    _compare(tensors, header)
    return tensors


def _tensors(mapping: Any, prefix: str) -> Iterator[tuple[str, torch.Tensor]]:
    for key, value in mapping.items():
        name = f"{prefix}{key}" if isinstance(key, (str, int)) else f"{prefix}?"
        if isinstance(value, torch.Tensor):
            yield name, value.detach()
        elif isinstance(value, dict):
            yield from _tensors(value, f"{name}.")


def _compare(tensors: dict[str, torch.Tensor], header: FileHeader) -> None:
    """Refuse a file that PyTorch reads differently from its header."""
    announced = {tensor.name: (tensor.shape, tensor.dtype) for tensor in header.tensors}
    found = {
        name: (tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        for name, tensor in tensors.items()
    }
    if announced != found:
        refuse("The file is damaged: its list of tensors and its tensors do not agree.")


_OPEN = """\
import torch


def tensors_of(mapping, prefix=""):
    for name, value in mapping.items():
        if isinstance(value, torch.Tensor):
            yield f"{{prefix}}{{name}}", value
        elif isinstance(value, dict):
            yield from tensors_of(value, f"{{prefix}}{{name}}.")


path = {path!r}
file = torch.load(path, map_location="cpu", weights_only=True)  # runs no code of the file
tensors = dict(tensors_of(file))
"""
_LIST = """\
for name, tensor in tensors.items():
    print(name, tuple(tensor.shape), tensor.dtype)
print(len(tensors), "tensors of", sum(one.nbytes for one in tensors.values()), "bytes")
"""


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
        """Memory of all tensors, in bytes."""
        return sum(tensor.bytes for tensor in self.tensors)


def read_header(path: Path) -> FileHeader:
    """Return the contents of a file.

    Raises:
        StudioError: it does not exist, is unsafe, damaged, or not a mapping of names to tensors.
            The sentence names the reason and the next step.
    """
    try:
        with open_user_file(path) as file:
            return _read(file, os.fstat(file.fileno()).st_size, _shown(path))
    except UnusableFileError as error:
        refuse(f"{_shown(path)} cannot be opened: {error}.")
    except OSError as error:
        refuse(f"{_shown(path)} cannot be read: {error.strerror or error}.")


def _shown(path: Path) -> str:
    return f"“{file_name(path)[:60]}”"


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
        refuse(
            f"{shown} is damaged or cut off: its list of tensors cannot be read "
            f"({str(error) or 'it ends early'})."
        )
    if reader.protocol > _SAFE_PROTOCOL:
        refuse(
            f"{shown} was saved with pickle protocol {reader.protocol}, which PyTorch's safe "
            "reader does not support. Save it again without torch.save's pickle_protocol."
        )
    return FileHeader(
        size_bytes=size_bytes,
        tensors=tuple(tensors),
        left_out=left_out,
        is_zip=isinstance(reader, ZipReader),
    )


def _what_else(head: bytes, size_bytes: int, shown: str) -> str:
    for sign, what in _OTHER_FORMATS.items():
        if head.startswith(sign):
            return f"{shown} is {what}. {_ONLY}"
    if len(head) > 8 and head[8:9] == b"{":
        (header_bytes,) = struct.unpack("<Q", head[:8])
        what = f"{shown} looks like a safetensors file"
        if header_bytes > size_bytes:
            claimed = format_bytes(header_bytes)
            return f"{what} whose header claims {claimed}, more than the whole file. {_ONLY}"
        return f"{what}. {_ONLY}"
    return f"{shown} is not a torch.save file: it begins with neither of its two formats. {_ONLY}"


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
            describer = Describer(self._stream, self._storage, self._shown)
            values.append(describer.load())
            self.protocol = max(self.protocol, describer.proto)
            if number == 0 and values[0] != _MAGIC_NUMBER:
                refuse(
                    f"{self._shown} is a Python pickle, but not one that torch.save wrote. {_ONLY}"
                )
        declared = sum(size + 8 for size in self._declared.values())
        if self._stream.tell() + declared > self._size_bytes:
            refuse(
                f"{self._shown} declares {format_bytes(declared)} of tensors, but has only "
                f"{format_bytes(max(0, self._size_bytes - self._stream.tell()))}: it is cut off or "
                "forged."
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
            f"{shown} holds {what}, not a mapping of names to tensors. Save one with "
            "torch.save(model.state_dict(), …)."
        )
    tensors: list[TensorHeader] = []
    left_out = 0
    for name, value in _walk(root, "", 0, [0], shown):
        if isinstance(value, DescribedTensor):
            tensors.append(TensorHeader(name, value.shape, value.dtype, value.bytes))
        else:
            left_out += 1
    if not tensors:
        refuse(f"{shown} holds a mapping, but it has no tensors.")
    twice = [name for name, count in Counter(one.name for one in tensors).items() if count > 1]
    if twice:
        refuse(
            f"{shown} holds several tensors with the name “{twice[0][:60]}”. Give each tensor its "
            "own name, as a text, and save them again."
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


def _ends_in_list(file: BinaryIO, size_bytes: int) -> bool:
    """Return whether an archive that cannot be read has the end of a list all the same."""
    file.seek(max(size_bytes - _MOST_LIST_END_BYTES, 0))
    return _LIST_END in file.read(_MOST_LIST_END_BYTES)


class ZipReader:
    """The format since 1.6: a zip archive of data.pkl and a record a storage, uncompressed."""

    def __init__(self, file: BinaryIO, size_bytes: int, shown: str) -> None:
        self._size_bytes = size_bytes
        self._shown = shown
        self.protocol = 0
        try:
            self._archive = zipfile.ZipFile(file)
            listed = self._archive.infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error):
            if _ends_in_list(file, size_bytes):
                refuse(
                    f"{shown} is damaged or forged: the list at its end does not point to its "
                    "parts."
                )
            refuse(f"{shown} is cut off: the list at its end is missing. Copy it again.")
        if len(listed) > _MOST_RECORDS:
            refuse(f"{shown} has {len(listed)} records, too many for a model.")
        self._records = {record.filename: record for record in listed}
        self._prefix = self._check_records()
        self._check_order(listed)

    def root(self) -> Any:
        """Return the described object of the file."""
        stream = io.BytesIO(self._archive.read(f"{self._prefix}data.pkl"))
        describer = Describer(stream, self._storage, self._shown)
        root = describer.load()
        self.protocol = describer.proto
        return root

    def _check_order(self, listed: list[zipfile.ZipInfo]) -> None:
        """Refuse a list that two readers could read differently."""
        names: set[str] = set()
        end = 0
        for record in sorted(listed, key=lambda one: one.header_offset):
            if record.filename in names:
                refuse(f"{self._shown} has two parts named {record.filename[-40:]}: it is forged.")
            begin, is_first = record.header_offset, not names
            end_before, end = end, begin + _LOCAL_HEADER_BYTES + record.compress_size
            if begin < end_before or (is_first and begin) or end > self._size_bytes:
                refuse(
                    f"{self._shown} is damaged or forged: its part {record.filename[-40:]} does "
                    "not begin where it should."
                )
            names.add(record.filename)

    def _check_records(self) -> str:
        """Return the common prefix of all names, after checking that every part is harmless."""
        self._refuse_programs()
        stored_bytes = 0
        for name, record in self._records.items():
            if record.compress_type != zipfile.ZIP_STORED or record.flag_bits & 1:
                refuse(f"{self._shown} is a compressed zip archive. torch.save does not compress.")
            stored_bytes += record.file_size
            if stored_bytes > self._size_bytes:
                refuse(
                    f"{self._shown} claims {format_bytes(stored_bytes)} up to its part "
                    f"{name[-40:]}, but the file has {format_bytes(self._size_bytes)}."
                )
        pickles = [name for name in self._records if name.rsplit("/", 1)[-1] == "data.pkl"]
        if len(pickles) != 1:
            refuse(f"{self._shown} is a zip archive, but not one that torch.save wrote.")
        if self._records[pickles[0]].file_size > LONGEST_PICKLE:
            refuse(f"{self._shown} has a list of tensors of more than 64 MiB.")
        return pickles[0].removesuffix("data.pkl")

    def _refuse_programs(self) -> None:
        """Refuse TorchScript, some of whose parts are packed."""
        for name in self._records:
            _, _, inner = name.partition("/")
            if inner.startswith("code/") or inner == "constants.pkl":
                refuse(
                    f"{self._shown} has code in it: it is a TorchScript program. Save only the "
                    "tensors, with torch.save(model.state_dict(), …)."
                )

    def _storage(self, key: str, dtype: str, count: int) -> StorageHeader:
        record = self._records.get(f"{self._prefix}data/{key}")
        declared = count * ITEM_BYTES[dtype]
        if record is None or record.file_size < declared:
            there = format_bytes(record.file_size) if record else "nothing"
            refuse(
                f"{self._shown} declares {format_bytes(declared)} for one tensor but has {there} "
                "of it: it is cut off or forged."
            )
        return StorageHeader(key, dtype, declared)
