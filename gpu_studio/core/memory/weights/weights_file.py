"""The network in a file of weights: safetensors or GGUF, in one piece or in several.

Only the headers are read. Nothing of a file decides which other file is opened: the parts of a
split one are next to it and have its name with another number.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.networks import Network, NetworkPart, WeightsFormat
from gpu_studio.core.memory.weights.file_tensor import (
    MOST_PARAMETERS,
    MOST_TENSORS,
    FileTensor,
    quoted,
    refuse,
)
from gpu_studio.core.memory.weights.gguf_header import MAGIC, read_gguf
from gpu_studio.core.memory.weights.model_config import (
    LONGEST_CONFIG_BYTES,
    ModelConfig,
    config_of_gguf,
    read_config,
)
from gpu_studio.core.memory.weights.safetensors_header import (
    looks_like_safetensors,
    read_safetensors,
)
from gpu_studio.core.memory.weights.weight_types import SAFETENSORS_PACKED
from gpu_studio.core.plain_text import file_name, plain_text
from gpu_studio.core.user_file import UnusableFileError, open_user_file, read_own_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

_HEAD_BYTES = 9
_LONGEST_INDEX_BYTES = 64 << 20
_MOST_FILES = 1000
_CONFIG = "config.json"
_Found = TypeVar("_Found")
_NUMBERED = re.compile(r"(.*)-(\d{5})-of-(\d{5})(\.[^.]+)", re.DOTALL)


class _Index(msgspec.Struct, frozen=True):
    """The file ``model.safetensors.index.json``: the file of each tensor."""

    weight_map: dict[str, str]


def read_weights(path: Path, config_path: Path | None = None) -> Network:
    """Return the network in a file, with what is known of its shape.

    Args:
        path: a safetensors or GGUF file, any part of a split one, or the index of one.
        config_path: its ``config.json``; None takes the one next to a safetensors file.

    Raises:
        StudioError: a file cannot be read, is damaged or forged, or lacks a part.
    """
    shown = file_name(path)
    head = _opened(path, lambda file, _size, _shown: file.read(_HEAD_BYTES))
    config = read_config_file(config_path) if config_path is not None else None
    if head.startswith(MAGIC):
        return _gguf(path, shown, config)
    if looks_like_safetensors(head):
        paths, tensors = _parts(path), []
        for part in paths:
            tensors += _opened(part, read_safetensors)
    elif head.lstrip()[:1] == b"{":
        paths, tensors = _indexed(path, shown)
    else:
        refuse(f"{shown} is neither a safetensors nor a GGUF file.")
    beside = path.with_name(_CONFIG)
    if config is None and beside.is_file():
        config = read_config_file(beside)
    return _network(shown, WeightsFormat.SAFETENSORS, len(paths), tensors, config)


def _gguf(path: Path, shown: str, config: ModelConfig | None) -> Network:
    paths, tensors, rows = _parts(path), [], 0
    first = None
    for part in paths:
        header = _opened(part, read_gguf)
        first = first or header
        tensors += header.tensors
    assert first is not None
    split = first.metadata.get("split.count", 1)
    if isinstance(split, int) and split != len(paths) and split > 1:
        refuse(
            f"{shown} is one of {split} parts, but its name does not end in "
            f"-00001-of-{split:05}.gguf, so the others cannot be found."
        )
    if config is None:
        table = next((one for one in tensors if _TABLE.search(one.name)), None)
        width = first.metadata.get(f"{first.metadata.get('general.architecture')}.embedding_length")
        if table is not None and isinstance(width, int) and width > 0:
            rows = table.parameters // width
        config = config_of_gguf(first.metadata, rows, shown)
    return _network(shown, WeightsFormat.GGUF, len(paths), tensors, config)


# ── files ────────────────────────────────────────────────────────────────────────────────────


def _opened(path: Path, read: Callable[[BinaryIO, int, str], _Found]) -> _Found:
    shown = file_name(path)
    try:
        with open_user_file(path) as file:
            return read(file, os.fstat(file.fileno()).st_size, shown)
    except UnusableFileError as error:
        raise _unusable(path, str(error)) from error
    except OSError as error:
        raise _unusable(path, f"it cannot be read ({error.strerror or error})") from error


def _unusable(path: Path, reason: str) -> StudioError:
    return StudioError(FailureKind.BAD_REQUEST, f"Cannot read {plain_text(str(path))}: {reason}.")


def read_config_file(path: Path) -> ModelConfig:
    """Return the shape in a ``config.json``; raises `StudioError`."""
    try:
        return read_config(read_own_file(path, LONGEST_CONFIG_BYTES), file_name(path))
    except UnusableFileError as error:
        raise _unusable(path, str(error)) from error


def _parts(path: Path) -> list[Path]:
    """Return the files of a split file by the name of one of them; else the file itself."""
    match = _NUMBERED.fullmatch(path.name)
    if match is None:
        return [path]
    count = int(match[3])
    if not 1 <= int(match[2]) <= count <= _MOST_FILES:
        refuse(f"{file_name(path)} cannot be part {int(match[2])} of {count}.")
    paths = [path.with_name(f"{match[1]}-{number:05}-of-{match[3]}{match[4]}")
             for number in range(1, count + 1)]  # fmt: skip
    missing = [one for one in paths if not one.is_file()]
    if missing:
        others = f" and {len(missing) - 1} more parts are" if len(missing) > 1 else " is"
        refuse(f"{file_name(path)} has {count} parts: {file_name(missing[0])}{others} missing.")
    return paths


def _indexed(path: Path, shown: str) -> tuple[list[Path], list[FileTensor]]:
    """Return the files that an index names, all next to it, and their tensors."""
    try:
        text = read_own_file(path, _LONGEST_INDEX_BYTES)
        files = msgspec.json.decode(text, type=_Index).weight_map
    except UnusableFileError as error:
        raise _unusable(path, str(error)) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        refuse(f"{shown} is neither a safetensors nor a GGUF file, and no index of one.")
    names = sorted(set(files.values()))
    if not names or len(names) > _MOST_FILES:
        refuse(f"{shown} names {len(names)} files.")
    tensors: list[FileTensor] = []
    for name in names:
        if name in ("", ".", "..") or re.search(r"[/\\:\0]", name):
            refuse(f"{shown} names the file {quoted(name)}, which is not next to it.")
        if not path.with_name(name).is_file():
            refuse(f"{shown} names the file {quoted(name)}, which is missing.")
        found = _opened(path.with_name(name), read_safetensors)
        if {one.name for one in found} != {key for key, value in files.items() if value == name}:
            refuse(f"{shown} and {quoted(name)} name different tensors: one of them is wrong.")
        tensors += found
        if len(tensors) > MOST_TENSORS:
            refuse(f"{shown} has too many tensors.")
    return [path.with_name(name) for name in names], tensors


# ── the network ──────────────────────────────────────────────────────────────────────────────

_LAYER = re.compile(r"(?:^|\.)(?:layers|layer|blocks|block|blk|h)\.(\d{1,6})\.")
_EXPERTS = re.compile(r"\.experts\.|\.ffn_(?:gate|up|down|gate_up)(?:_exps|\.\d+)\.")
_TABLE = re.compile(r"(?:^|\.)(?:embed_tokens|wte|word_embeddings|tok_embeddings|token_embd)\.")
_ROWS = re.compile(
    r"(?:^|\.)(?:embed_tokens_per_layer|per_layer_token_embd|wpe|position_embd|embed_positions)\."
)
_OUTPUT = re.compile(r"(?:^|\.)(?:lm_head|embed_out|output)\.weight$")
_ASIDE = re.compile(
    r"(?:^|\.)(?:vision_tower|vision_model|vision_encoder|visual|multi_modal_projector|"
    r"mm_projector|embed_vision|audio_tower|audio_encoder|embed_audio|mtp)\.|^(?:v|mm|a)\."
)


def _network(
    name: str,
    form: WeightsFormat,
    files: int,
    tensors: Sequence[FileTensor],
    config: ModelConfig | None,
) -> Network:
    if not any(one.parameters for one in tensors):
        refuse(f"{name} has no tensors.")
    total = sum(one.parameters for one in tensors)
    if len(tensors) > MOST_TENSORS or total > MOST_PARAMETERS:
        refuse(f"{name} has too many tensors.")
    if len({one.name for one in tensors}) < len(tensors):
        refuse(f"{name} is damaged or forged: two of its parts have the same tensor.")
    has_output = any(_OUTPUT.search(one.name) for one in tensors)
    layers = config.layers if config is not None else 0
    sides: dict[str, list[FileTensor]] = {"rows": [], "aside": [], "experts": [], "layers": []}
    for one in tensors:
        layer = _LAYER.search(one.name)
        if _ASIDE.search(one.name) or (layer and 0 < layers <= int(layer[1])):
            sides["aside"].append(one)
        elif _ROWS.search(one.name) or (has_output and _TABLE.search(one.name)):
            sides["rows"].append(one)
        elif layer:
            sides["layers"].append(one)
            if _EXPERTS.search(one.name):
                sides["experts"].append(one)
    whole = [one for one in tensors if one.parameters]
    types: dict[str, int] = {}
    for one in whole:
        types[one.type_name] = types.get(one.type_name, 0) + one.size_bytes
    packed_bytes = sum(size for kind, size in types.items() if kind in SAFETENSORS_PACKED)
    return Network(
        name=name,
        tensors=tuple(one.parameters for one in whole),
        sizes_bytes=tuple(one.size_bytes for one in whole),
        format=form,
        files=files,
        types_bytes=types,
        is_packed=form is WeightsFormat.SAFETENSORS and 20 * packed_bytes > sum(types.values()),
        rows=_part(sides["rows"]),
        aside=_part(sides["aside"]),
        experts=_part(sides["experts"]),
        in_layers=_part(sides["layers"]),
        config=config,
    )


def _part(tensors: Iterable[FileTensor]) -> NetworkPart:
    found = list(tensors)
    return NetworkPart(
        parameters=sum(one.parameters for one in found),
        size_bytes=sum(one.size_bytes for one in found),
    )
