"""The headers of files of weights: safetensors and GGUF. Of the weights themselves nothing is read.

Safetensors is JSON behind its length in 8 bytes, little-endian (huggingface.co/docs/safetensors).
GGUF is typed metadata, then a description of each tensor (docs/gguf.md of ggml). A child process
with limits reads both, as they are strangers' files: anything but `StudioError` that is raised here
means a damaged or forged one.
"""

from __future__ import annotations

import math
import struct
from typing import Annotated, BinaryIO, NamedTuple, NoReturn

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.units import format_bytes

MAGIC = b"GGUF"
_LENGTH_BYTES, _LONGEST_JSON = 8, 100_000_000
_LONGEST_GGUF = 256 << 20  # a large vocabulary takes 10 MB
_STRING, _ARRAY = 8, 9
_NUMBERS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
    12: "<d",
}  # fmt: skip
_GGUF_TYPES = {0: "F32", 1: "F16", 30: "BF16"}  # the others are quantized
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class FileTensor(NamedTuple):
    """A tensor: its numbers, and its type's name in the file."""

    name: str
    parameters: int
    type_name: str


class FileHeader(NamedTuple):
    """What a file says: texts and numbers of its metadata, and all tensors with their bytes."""

    metadata: dict[str, str | float]
    tensors: list[FileTensor]
    size_bytes: int


class _Described(msgspec.Struct, frozen=True):
    dtype: str
    shape: Annotated[tuple[_Count, ...], msgspec.Meta(max_length=64)]
    data_offsets: tuple[_Count, _Count]


def refuse(sentence: str) -> NoReturn:
    """Refuse a file with a sentence; raises `StudioError`."""
    raise StudioError(FailureKind.BAD_REQUEST, sentence)


def read_safetensors(file: BinaryIO, file_bytes: int, shown: str) -> FileHeader:
    """Return what the header of a file says.

    Args:
        file: the file, at its beginning.
        file_bytes: its size.
        shown: its name.

    Raises:
        StudioError: the file is cut off.
        Exception: the header is damaged or forged.
    """
    header_bytes = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    if header_bytes > min(file_bytes, _LONGEST_JSON):
        raise EOFError
    fields = msgspec.json.decode(file.read(header_bytes), type=dict[str, msgspec.Raw])
    fields.pop("__metadata__", None)
    described = {
        name: msgspec.json.decode(field, type=_Described) for name, field in fields.items()
    }
    end = max((one.data_offsets[1] for one in described.values()), default=0)
    _check_end(end, file_bytes - _LENGTH_BYTES - header_bytes, shown)
    tensors = [FileTensor(name, math.prod(one.shape), one.dtype) for name, one in described.items()]
    return FileHeader({}, tensors, end)


def _check_end(end: int, room_bytes: int, shown: str) -> None:
    if end > room_bytes:
        refuse(
            f"{shown} is cut off: its tensors take {format_bytes(end)}, and it has only "
            f"{format_bytes(max(0, room_bytes))} of them. Copy or download it again."
        )


def read_gguf(file: BinaryIO, file_bytes: int, shown: str) -> FileHeader:
    """Return what the header of a file says; see `read_safetensors`."""
    reader = _GgufReader(file, min(file_bytes, _LONGEST_GGUF))
    reader.take(len(MAGIC))
    version = reader.number("<I")
    if version not in (2, 3):
        refuse(f"{shown} is a GGUF file of version {version}. Versions 2 and 3 can be read.")
    tensor_count, key_count = reader.number("<Q"), reader.number("<Q")
    metadata: dict[str, str | float] = {}
    for _ in range(key_count):
        key, value = reader.text(), reader.value(reader.number("<I"))
        if value is not None:
            metadata[key] = value
    tensors, last_begin = [], 0
    for _ in range(tensor_count):
        name, sides = reader.text(), reader.number("<I")
        parameters = math.prod(reader.number("<Q") for _ in range(sides))
        kind = _GGUF_TYPES.get(reader.number("<I"), "quantized")
        tensors.append(FileTensor(name, parameters, kind))
        last_begin = max(last_begin, reader.number("<Q"))
    alignment = int(metadata.get("general.alignment", 32))
    room_bytes = file_bytes - -(-reader.position // alignment) * alignment
    _check_end(last_begin + 1 if tensors else 0, room_bytes, shown)
    return FileHeader(metadata, tensors, room_bytes)


class _GgufReader:
    """Reads the header in pieces, and never more of it than a header may be long."""

    def __init__(self, file: BinaryIO, most_bytes: int) -> None:
        self._file, self._most_bytes, self.position = file, most_bytes, 0

    def take(self, size_bytes: int) -> bytes:
        """Return the next bytes."""
        self.position += size_bytes
        if self.position > self._most_bytes:
            raise EOFError
        return self._file.read(size_bytes)

    def number(self, form: str) -> int:
        """Return a number of a form of `struct`."""
        value: int = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value

    def text(self) -> str:
        """Return a text."""
        return self.take(self.number("<Q")).decode(errors="replace")

    def value(self, kind: int) -> str | float | None:
        """Return a value of a type; None for an array."""
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.number(_NUMBERS[kind])
        item, count = self.number("<I"), self.number("<Q")
        if item != _STRING:
            self.take(count * struct.calcsize(_NUMBERS[item]))
        else:
            for _ in range(count):
                self.text()
        return None
