"""The headers of files of weights: safetensors and GGUF. Of the weights themselves nothing is read.

Safetensors is JSON behind its length in 8 bytes, little-endian (huggingface.co/docs/safetensors).
GGUF is typed metadata, then a description of each tensor (docs/gguf.md of ggml). Where a tensor
begins and ends is in both, so its bytes are known in any type, also in one that is newer than this
file. Both are strangers' files: whatever they claim is limited first.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Annotated, BinaryIO, NamedTuple, NoReturn

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.networks import MOST_PARAMETERS
from gpu_studio.core.texts import plain_text
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

MAGIC = b"GGUF"
MOST_TENSORS = 300_000  # the largest published mixtures of experts have half of that
_LENGTH_BYTES, _LONGEST_JSON = 8, 100_000_000
_LONGEST_GGUF = 256 << 20  # a large vocabulary takes 10 MB
_LONGEST_TEXT, _MOST_SIDES, _MOST_ALIGNMENT = 0xFFFF, 8, 1 << 20
_STRING, _ARRAY = 8, 9
_NUMBERS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
    12: "<d",
}  # fmt: skip
_GGUF_TYPES = {0: "F32", 1: "F16", 28: "F64", 30: "BF16"}  # the others are quantized
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class FileTensor(NamedTuple):
    """A tensor: its numbers, its bytes in the file, and its type's name there."""

    name: str
    parameters: int
    size_bytes: int
    type_name: str


class _Described(msgspec.Struct, frozen=True):
    dtype: str
    shape: Annotated[tuple[_Count, ...], msgspec.Meta(max_length=64)]
    data_offsets: tuple[_Count, _Count]


def refuse(sentence: str) -> NoReturn:
    """Refuse a file with a sentence; raises `StudioError`."""
    raise StudioError(FailureKind.BAD_REQUEST, sentence)


def read_safetensors(file: BinaryIO, file_bytes: int, shown: str) -> list[FileTensor]:
    """Return the tensors of a file at its beginning.

    Args:
        file: the file.
        file_bytes: its size.
        shown: its name.

    Raises:
        StudioError: the header is damaged, forged or too large.
    """
    header_bytes = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    if header_bytes > file_bytes - _LENGTH_BYTES:
        refuse(
            f"{shown} is damaged or cut off: its header claims {format_bytes(header_bytes)}, and "
            f"the whole file has {format_bytes(file_bytes)}."
        )
    if header_bytes > _LONGEST_JSON:
        refuse(f"{shown} has a header of {format_bytes(header_bytes)}. The format allows 100 MB.")
    try:
        fields = msgspec.json.decode(file.read(header_bytes), type=dict[str, msgspec.Raw])
        fields.pop("__metadata__", None)
        described = {
            name: msgspec.json.decode(field, type=_Described) for name, field in fields.items()
        }
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        refuse(f"{shown} is damaged or forged: its list of tensors is invalid ({error}).")
    tensors = [
        FileTensor(name, math.prod(one.shape), one.data_offsets[1] - one.data_offsets[0], one.dtype)
        for name, one in described.items()
    ]
    end = max((one.data_offsets[1] for one in described.values()), default=0)
    _check(tensors, end, file_bytes - _LENGTH_BYTES - header_bytes, shown)
    if sum(one.size_bytes for one in tensors) != end:
        refuse(f"{shown} is damaged or forged: its tensors overlap or leave gaps.")
    return tensors


def _check(tensors: Sequence[FileTensor], end: int, room_bytes: int, shown: str) -> None:
    """Refuse sizes that cannot be, and a file that ends before its tensors do."""
    if len(tensors) > MOST_TENSORS:
        refuse(f"{shown} has too many tensors.")
    if end > room_bytes:
        refuse(
            f"{shown} is cut off: its tensors take {format_bytes(end)}, and it has only "
            f"{format_bytes(max(0, room_bytes))} of them. Copy or download it again."
        )
    for one in tensors:
        # Between a bit and eight bytes for each number, complex ones sixteen, and a GGUF's padding.
        if not one.parameters <= min(MOST_PARAMETERS, 8 * max(0, one.size_bytes)):
            name = plain_text(one.name[:60])
            refuse(f"{shown} is damaged or forged: the size of its tensor “{name}” cannot be.")


def read_gguf(
    file: BinaryIO, file_bytes: int, shown: str
) -> tuple[dict[str, str | float], list[FileTensor]]:
    """Return the texts and numbers of a file's metadata, and its tensors; see `read_safetensors`.

    Raises:
        StudioError: the header is damaged, forged, too large, or of another version.
    """
    reader = _GgufReader(file, min(file_bytes, _LONGEST_GGUF), shown)
    reader.take(len(MAGIC))
    version = reader.whole("<I")
    if version not in (2, 3):
        refuse(f"{shown} is a GGUF file of version {version}. Versions 2 and 3 can be read.")
    tensor_count, key_count = reader.whole("<Q"), reader.whole("<Q")
    if max(tensor_count, key_count) > MOST_TENSORS:
        refuse(f"{shown} has too many tensors.")
    metadata: dict[str, str | float] = {}
    for _ in range(key_count):
        key, value = reader.text(), reader.value(reader.whole("<I"))
        if value is not None:
            metadata[key] = value
    found: list[tuple[int, str, int, str]] = []
    for _ in range(tensor_count):
        name, sides = reader.text(), reader.whole("<I")
        if sides > _MOST_SIDES:
            refuse(f"{shown} is damaged or forged: a tensor of it has {sides} sides.")
        parameters = math.prod(reader.whole("<Q") for _ in range(sides))
        kind = _GGUF_TYPES.get(reader.whole("<I"), "quantized")
        found.append((reader.whole("<Q"), name, parameters, kind))
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= _MOST_ALIGNMENT:
        refuse(f"{shown} is damaged or forged: its alignment is {alignment}.")
    room_bytes = file_bytes - -(-reader.position // alignment) * alignment
    found.sort()
    begins = [begin for begin, *_ in found]
    if begins and begins[-1] >= room_bytes:
        _check((), begins[-1], room_bytes, shown)
    ends = [*begins[1:], room_bytes]
    tensors = [
        FileTensor(name, parameters, end - begin, kind)
        for (begin, name, parameters, kind), end in zip(found, ends, strict=False)
    ]
    _check(tensors, 0, room_bytes, shown)
    return metadata, tensors


class _GgufReader:
    """Reads the header in pieces, and never more of it than a header may be long."""

    def __init__(self, file: BinaryIO, most_bytes: int, shown: str) -> None:
        self._file, self._most_bytes, self._shown = file, most_bytes, shown
        self.position = 0

    def take(self, size_bytes: int, *, is_kept: bool = True) -> bytes:
        """Return the next bytes, or pass over them."""
        self.position += size_bytes
        if self.position > self._most_bytes:
            refuse(f"{self._shown} is damaged or cut off: it ends in its header.")
        if is_kept:
            return self._file.read(size_bytes)
        self._file.seek(size_bytes, 1)
        return b""

    def whole(self, form: str) -> int:
        """Return a whole number."""
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def text(self) -> str:
        """Return a name."""
        size_bytes = self.whole("<Q")
        if size_bytes > _LONGEST_TEXT:
            refuse(f"{self._shown} is damaged or forged: it has a name of {size_bytes} bytes.")
        return self.take(size_bytes).decode(errors="replace")

    def value(self, kind: int) -> str | float | None:
        """Return a value of a type; None for a long text and for an array."""
        if kind == _STRING:
            size_bytes = self.whole("<Q")
            text = self.take(size_bytes, is_kept=size_bytes <= _LONGEST_TEXT)
            return text.decode(errors="replace")
        if kind == _ARRAY:
            item, count = self.whole("<I"), self.whole("<Q")
            if item in _NUMBERS:
                self.take(count * struct.calcsize(_NUMBERS[item]), is_kept=False)
                return None
            if item != _STRING:
                refuse(f"{self._shown} is damaged or forged: it has an array of type {item}.")
            for _ in range(count):
                self.take(self.whole("<Q"), is_kept=False)
            return None
        if kind not in _NUMBERS:
            refuse(f"{self._shown} is damaged or forged: it has metadata of type {kind}.")
        form = _NUMBERS[kind]
        value: float = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value
