"""The header of a safetensors file: JSON behind its length in 8 bytes, little-endian.

The format and its limits are those of huggingface.co/docs/safetensors and of the library's own
checks (safetensors/src/tensor.rs): at most 100 MB of JSON; the tensors fill the rest of the file
without gaps and without an overlap.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NoReturn

import msgspec

from gpu_studio.core.memory.weights.file_tensor import (
    MOST_PARAMETERS,
    MOST_TENSORS,
    FileTensor,
    Place,
    check_places,
    quoted,
    refuse,
)
from gpu_studio.core.memory.weights.weight_types import SAFETENSORS_BITS
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

_LENGTH_BYTES = 8
_LONGEST_HEADER = 100_000_000
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class _Tensor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    dtype: str
    shape: Annotated[tuple[_Count, ...], msgspec.Meta(max_length=64)]
    data_offsets: tuple[_Count, _Count]


def looks_like_safetensors(head: bytes) -> bool:
    """Return whether a file that begins with these 9 bytes may be a safetensors file."""
    return head[_LENGTH_BYTES : _LENGTH_BYTES + 1] == b"{"


def read_safetensors(file: BinaryIO, file_bytes: int, shown: str) -> list[FileTensor]:
    """Return the tensors of a file at its beginning; only the header is read.

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
    if header_bytes > _LONGEST_HEADER:
        refuse(f"{shown} has a header of {format_bytes(header_bytes)}. The format allows 100 MB.")
    fields = _decoded(file.read(header_bytes), shown)
    fields.pop("__metadata__", None)
    if len(fields) > MOST_TENSORS:
        refuse(f"{shown} has too many tensors.")
    try:
        tensors = msgspec.convert(fields, dict[str, _Tensor])
    except msgspec.ValidationError as error:
        refuse(f"{shown} is damaged or forged: its list of tensors is invalid ({error}).")
    places = (Place(*one.data_offsets, name) for name, one in tensors.items())
    found = list(_sized(tensors, shown))
    check_places(places, file_bytes - _LENGTH_BYTES - header_bytes, shown, has_gaps=False)
    return found


def _sized(tensors: dict[str, _Tensor], shown: str) -> Iterator[FileTensor]:
    for name, one in tensors.items():
        bits = SAFETENSORS_BITS.get(one.dtype)
        if bits is None:
            refuse(f"{shown} has a tensor of the unknown type {quoted(one.dtype)}.")
        count = math.prod(one.shape)
        if count > MOST_PARAMETERS:
            refuse(f"{shown} is damaged or forged: its tensor {quoted(name)} is too large.")
        size_bytes = -(-count * bits // 8)
        begin, end = one.data_offsets
        if end - begin != size_bytes:
            refuse(
                f"{shown} is damaged or forged: its tensor {quoted(name)} of {one.dtype} does not "
                "fill its place."
            )
        yield FileTensor(name, count, size_bytes, one.dtype)


def _decoded(text: bytes, shown: str) -> dict[str, Any]:
    def refuse_constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a number")

    try:
        fields = json.loads(text, object_pairs_hook=_unique, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        refuse(f"{shown} is not a safetensors file, or is damaged: {reason[:100]}.")
    if not isinstance(fields, dict):
        refuse(f"{shown} is not a safetensors file: its header is not a list of tensors.")
    return fields


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's fields; Python's parser would silently take the last of two names."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the name {quoted(twice)} is there twice")
    return fields
