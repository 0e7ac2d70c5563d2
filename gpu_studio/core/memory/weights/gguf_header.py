"""The header of a GGUF file: typed metadata, then a description of each tensor.

The format is docs/gguf.md of ggml; what llama.cpp's reader refuses is refused here, too.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from gpu_studio.core.memory.weights.file_tensor import (
    MOST_PARAMETERS,
    MOST_TENSORS,
    FileTensor,
    Place,
    check_places,
    quoted,
    refuse,
)
from gpu_studio.core.memory.weights.weight_types import GGUF_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"GGUF"
_LONGEST_HEADER = 256 << 20  # a large vocabulary takes 10 MB
_LONGEST_KEY = 0xFFFF
_LONGEST_NAME = 256  # llama.cpp allows 64 bytes, and has allowed more
_MOST_SIDES = 8  # four today; the format may allow more
_MOST_KEYS = 100_000
_DEEPEST = 4
_KEPT_ITEMS = 4096  # of an array: one for each layer; a vocabulary is passed over
_LONGEST_KEPT_TEXT = 1024
_MOST_ALIGNMENT = 1 << 20
_USUAL_ALIGNMENT = 32
_STRING, _ARRAY = 8, 9
_NUMBERS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
    12: "<d",
}  # fmt: skip
_LEAST_BYTES = {number: struct.calcsize(form) for number, form in _NUMBERS.items()} | {
    _STRING: 8,
    _ARRAY: 12,
}

Value = str | int | float | bool | tuple[object, ...]


class GgufHeader(NamedTuple):
    """What a file says of itself.

    Attributes:
        metadata: texts, numbers and short arrays by their keys; long arrays are left out.
        tensors: in the file's order.
    """

    metadata: dict[str, Value]
    tensors: list[FileTensor]


def read_gguf(file: BinaryIO, file_bytes: int, shown: str) -> GgufHeader:
    """Return the header of a file at its beginning; see `read_safetensors`.

    Raises:
        StudioError: the header is damaged, forged, too large, or of another version.
    """
    reader = _Reader(file, min(file_bytes, _LONGEST_HEADER), file_bytes, shown)
    reader.skip(len(MAGIC))
    version = reader.number("<I")
    if version & 0xFFFF == 0:
        refuse(f"{shown} is a GGUF file for big-endian computers.")
    if version not in (2, 3):
        refuse(f"{shown} is a GGUF file of version {version}. Versions 2 and 3 can be read.")
    tensor_count, key_count = reader.number("<Q"), reader.number("<Q")
    if tensor_count > MOST_TENSORS:
        refuse(f"{shown} has too many tensors.")
    if key_count > _MOST_KEYS:
        refuse(f"{shown} is damaged or forged: it claims {key_count} entries of metadata.")
    metadata: dict[str, Value] = {}
    keys: set[str] = set()
    for _ in range(key_count):
        key = reader.text(_LONGEST_KEY)
        if key in keys:
            refuse(f"{shown} is damaged or forged: it has the entry {quoted(key)} twice.")
        keys.add(key)
        value = reader.value(reader.number("<I"), 0)
        if value is not None:
            metadata[key] = value
    alignment = _alignment(metadata, shown)
    tensors, places = _tensors(reader, tensor_count, alignment, shown)
    begin = -(-reader.position // alignment) * alignment
    check_places(places, file_bytes - begin, shown, has_gaps=True)
    return GgufHeader(metadata, tensors)


def _alignment(metadata: dict[str, Value], shown: str) -> int:
    alignment = metadata.get("general.alignment", _USUAL_ALIGNMENT)
    if (
        not isinstance(alignment, int)
        or not 0 < alignment <= _MOST_ALIGNMENT
        or alignment & (alignment - 1)
    ):
        refuse(f"{shown} is damaged or forged: its alignment is {alignment}.")
    return alignment


def _tensors(
    reader: _Reader, count: int, alignment: int, shown: str
) -> tuple[list[FileTensor], list[Place]]:
    tensors: list[FileTensor] = []
    places: list[Place] = []
    names: set[str] = set()
    for _ in range(count):
        name = reader.text(_LONGEST_NAME)
        if name in names:
            refuse(f"{shown} is damaged or forged: it has the tensor {quoted(name)} twice.")
        names.add(name)
        sides = reader.number("<I")
        if sides > _MOST_SIDES:
            refuse(f"{shown} is damaged or forged: its tensor {quoted(name)} has {sides} sides.")
        shape = [reader.number("<Q") for _ in range(sides)]
        number, offset = reader.number("<I"), reader.number("<Q")
        kind = GGUF_TYPES.get(number)
        if kind is None:
            refuse(f"{shown} has a tensor of type {number}, which is not known here.")
        parameters = 1
        for side in shape:
            parameters *= side
        if parameters > MOST_PARAMETERS:
            refuse(f"{shown} is damaged or forged: its tensor {quoted(name)} is too large.")
        if (shape[0] if shape else 1) % kind.block:
            refuse(
                f"{shown} is damaged or forged: the rows of its tensor {quoted(name)} are not "
                f"a multiple of {kind.block}, as {kind.name} needs."
            )
        if offset % alignment:
            refuse(
                f"{shown} is damaged or forged: its tensor {quoted(name)} begins at {offset}, "
                f"which is not a multiple of {alignment}."
            )
        size_bytes = kind.size_bytes(parameters)
        tensors.append(FileTensor(name, parameters, size_bytes, kind.name))
        places.append(Place(offset, offset + size_bytes, name))
    return tensors, places


class _Reader:
    """Reads the header in pieces, and never more of it than a header may be long."""

    def __init__(self, file: BinaryIO, most_bytes: int, file_bytes: int, shown: str) -> None:
        self._file, self._most_bytes, self._shown = file, most_bytes, shown
        self._file_bytes = file_bytes
        self.position = 0

    def skip(self, size_bytes: int) -> None:
        """Pass over some bytes."""
        self._claim(size_bytes)
        self._file.seek(size_bytes, 1)

    def number(self, form: str) -> int:
        """Return a whole number."""
        return int(struct.unpack(form, self._read(struct.calcsize(form)))[0])

    def text(self, longest: int) -> str:
        """Return a text of at most so many bytes."""
        size_bytes = self.number("<Q")
        if size_bytes > longest:
            refuse(f"{self._shown} is damaged or forged: it has a name of {size_bytes} bytes.")
        return self._read(size_bytes).decode(errors="replace")

    def value(self, number: int, depth: int) -> Value | None:
        """Return a value of a type; None if it is too long to be of use."""
        if number == _STRING:
            size_bytes = self.number("<Q")
            if size_bytes > _LONGEST_KEPT_TEXT:
                self.skip(size_bytes)
                return None
            return self._read(size_bytes).decode(errors="replace")
        if number == _ARRAY:
            return self._array(depth)
        form = _NUMBERS.get(number)
        if form is None:
            refuse(f"{self._shown} is damaged or forged: it has metadata of type {number}.")
        value: int | float | bool = struct.unpack(form, self._read(_LEAST_BYTES[number]))[0]
        return value

    def _array(self, depth: int) -> tuple[object, ...] | None:
        number, count = self.number("<I"), self.number("<Q")
        if depth >= _DEEPEST:
            refuse(f"{self._shown} is damaged or forged: its metadata is nested too deeply.")
        if number not in _LEAST_BYTES:
            refuse(f"{self._shown} is damaged or forged: it has metadata of type {number}.")
        self._require(count * _LEAST_BYTES[number])
        if number in _NUMBERS and count > _KEPT_ITEMS:
            self.skip(count * _LEAST_BYTES[number])
            return None
        kept = tuple(self._items(number, count, depth + 1))
        return kept if count <= _KEPT_ITEMS else None

    def _items(self, number: int, count: int, depth: int) -> Iterator[object]:
        for index in range(count):
            value = self.value(number, depth)
            if index < _KEPT_ITEMS:
                yield value

    def _read(self, size_bytes: int) -> bytes:
        self._claim(size_bytes)
        return self._file.read(size_bytes)

    def _claim(self, size_bytes: int) -> None:
        self._require(size_bytes)
        self.position += size_bytes

    def _require(self, size_bytes: int) -> None:
        if self.position + size_bytes <= self._most_bytes:
            return
        if self.position + size_bytes <= self._file_bytes:
            refuse(f"{self._shown} has a header of more than 256 MiB, too long for a model.")
        refuse(f"{self._shown} is damaged or cut off: it ends in its header.")
