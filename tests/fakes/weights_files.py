"""Writes files of weights as their formats say, without torch; the data itself is a hole."""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_BITS = {"F32": 32, "F16": 16, "BF16": 16, "U8": 8, "I32": 32, "F4": 4}
# (number, weights in a block, bytes of a block)
GGUF_KINDS = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q6_K": (14, 256, 210)}
ALIGNMENT = 32


def safetensors_fields(tensors: Mapping[str, tuple[str, Sequence[int]]]) -> dict[str, Any]:
    """Return the header of tensors, given as type and shape by name, one behind the other."""
    fields: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    begin = 0
    for name, (kind, shape) in tensors.items():
        end = begin + math.prod(shape) * _BITS[kind] // 8
        fields[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [begin, end]}
        begin = end
    return fields


def write_header(path: Path, header: bytes, data_bytes: int = 0) -> Path:
    """Write a safetensors file with any header and a hole behind it."""
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + data_bytes)
    return path


def write_safetensors(path: Path, tensors: Mapping[str, tuple[str, Sequence[int]]]) -> Path:
    fields = safetensors_fields(tensors)
    ends = [one["data_offsets"][1] for name, one in fields.items() if name != "__metadata__"]
    return write_header(path, json.dumps(fields).encode(), max(ends, default=0))


def gguf_text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def gguf_value(value: object) -> bytes:
    """Return a typed value: a text, a bool, a whole number, a float, or a list of one kind."""
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_text(value)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    assert isinstance(value, list)
    items = [gguf_value(one) for one in value]
    return struct.pack("<I", 9) + items[0][:4] + struct.pack("<Q", len(items)) + b"".join(
        item[4:] for item in items
    )  # fmt: skip


def gguf_info(name: str, shape: Sequence[int], number: int, offset: int) -> bytes:
    sides = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return gguf_text(name) + sides + struct.pack("<IQ", number, offset)


def write_gguf(
    path: Path,
    metadata: Mapping[str, object],
    tensors: Mapping[str, tuple[str, Sequence[int]]],
    *,
    version: int = 3,
    infos: bytes | None = None,
    counts: tuple[int, int] | None = None,
    data_bytes: int | None = None,
) -> Path:
    """Write a GGUF file; ``infos``, ``counts`` and ``data_bytes`` are what a forger may change."""
    described, offset = b"", 0
    for name, (kind, shape) in tensors.items():
        number, block, block_bytes = GGUF_KINDS[kind]
        described += gguf_info(name, shape, number, offset)
        offset += math.prod(shape) // block * block_bytes
        offset = -(-offset // ALIGNMENT) * ALIGNMENT
    keys = b"".join(gguf_text(key) + gguf_value(value) for key, value in metadata.items())
    tensor_count, key_count = counts or (len(tensors), len(metadata))
    header = b"GGUF" + struct.pack("<IQQ", version, tensor_count, key_count)
    header += keys + (described if infos is None else infos)
    begin = -(-len(header) // ALIGNMENT) * ALIGNMENT
    with path.open("wb") as file:
        file.write(header)
        file.truncate(begin + (offset if data_bytes is None else data_bytes))
    return path
