"""The network in a file of weights: safetensors or GGUF, in one piece or in several.

Nothing of a file decides which other file is opened: the parts of a split one are next to it and
have its name with another number. Only headers are read. Safetensors is JSON behind its length in
8 bytes, little-endian (huggingface.co/docs/safetensors). GGUF is typed metadata, then a description
of each tensor (docs/gguf.md of ggml). A header may be a stranger's and take all time and memory, so
a child process reads it (`answer`); what is raised while it is read means a damaged one.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple, NoReturn, TypeVar

import msgspec

from gpu_studio.core.child_question import Limits, ask_child
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.networks import MOST_PARAMETERS, CacheGroup, ModelConfig, Network
from gpu_studio.core.texts import file_name, plain_text
from gpu_studio.core.units import counted, format_bytes
from gpu_studio.core.user_file import UnusableFileError, open_user_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpu_studio.core.child_question import ChildCaller


_MODULE = "gpu_studio.core.memory.weights_file"
_LIMITS = Limits(longest_s=60.0, memory_bytes=2 << 30, answer_bytes=1 << 20)
_HEAD_BYTES, _LONGEST_CONFIG_BYTES, _MOST_FILES = 9, 4 << 20, 1000
MAGIC = b"GGUF"
_LENGTH_BYTES, _LONGEST_JSON = 8, 100_000_000
_LONGEST_GGUF = 256 << 20  # a large vocabulary takes 10 MB
_STRING, _ARRAY, _MOST_LAYERS = 8, 9, 1000
_NUMBERS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
    12: "<d",
}  # fmt: skip
_GGUF_TYPES = {0: "F32", 1: "F16", 30: "BF16"}  # the others are quantized
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
_POINTER = b"version h"  # of Git LFS
_POINTED_SIZE = re.compile(rb"^size (\d{1,18})\s*$", re.MULTILINE)
_LONGEST_POINTER, _LONGEST_INDEX = 1024, 64 << 20
_INDEX = ".index.json"
_NUMBERED = re.compile(r"(.*)-(\d{5})-of-(\d{5})(\.[^.]+)", re.DOTALL)
_OUTPUT = re.compile(r"(?:^|\.)(?:lm_head|embed_out|output|output_layer)\.weight$")
_EXPERTS = re.compile(r"\.experts\.|\.ffn_\w+_exps\.")
# Types of which one number may hold several weights, as GPTQ, AWQ and bitsandbytes pack them.
_PACKED = {"BOOL", "U8", "I8", "I16", "U16", "I32", "U32", "I64", "U64"}
_OWN_TYPES = {"F16": "16-bit", "BF16": "16-bit", "F32": "float32"}
_MOSTLY = 0.9
_DAMAGED = (
    ArithmeticError, EOFError, LookupError, TypeError, ValueError, RecursionError, struct.error,
    msgspec.MsgspecError,
)  # fmt: skip
_Found = TypeVar("_Found")


def read_weights(path: Path) -> Network:
    """Return the network in a file, with what is known of its shape.

    Args:
        path: a safetensors or GGUF file, or any part of a split one. The ``config.json`` next to a
            safetensors file is read as well.

    Raises:
        StudioError: a file cannot be read, is damaged or forged, or lacks a part.
    """
    if path.name.endswith(_INDEX):
        return _of_index(path)
    shown = file_name(path)
    parts = [_opened(part, _read_part) for part in _parts(path)]
    if pointers := [part for part in parts if part.is_pointer]:
        return _pointed(path, parts, len(pointers))
    is_gguf = _opened(path, lambda file, *_: file.read(len(MAGIC))) == MAGIC
    config = config_of_gguf(parts[0].metadata) if is_gguf else _config_beside(path)
    return _network(shown, parts, config, is_gguf=is_gguf)


def _read_part(file: BinaryIO, file_bytes: int, shown: str) -> FileHeader:
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    if head == _POINTER and (size := _POINTED_SIZE.search(file.read(_LONGEST_POINTER))):
        return FileHeader({}, [], int(size[1]), is_pointer=True)
    if head.startswith(MAGIC):
        return read_gguf(file, file_bytes, shown)
    if head[8:] != b"{":  # behind its length
        refuse(f"{shown} is neither a safetensors nor a GGUF file.")
    return read_safetensors(file, file_bytes, shown)


def _config_beside(path: Path) -> ModelConfig | None:
    beside = path.with_name("config.json")
    if not beside.is_file():
        return None
    return _opened(beside, lambda file, *_: read_config(file.read(_LONGEST_CONFIG_BYTES)))


def _pointed(path: Path, parts: list[FileHeader], pointers: int) -> Network:
    """Return what a pointer of Git LFS says of the file that it stands for: its size."""
    shown, size_bytes = file_name(path), sum(part.size_bytes for part in parts)
    what = f"a file of {format_bytes(size_bytes)}"
    if len(parts) > 1:
        what = f"{pointers} of {len(parts)} files, together {format_bytes(size_bytes)}"
    note = (
        f"{shown} is a pointer of Git LFS for {what}, not the weights themselves. Get them with "
        "“git lfs pull”."
    )
    return Network(name=shown, size_bytes=size_bytes, note=note, config=_config_beside(path))


class _IndexMetadata(msgspec.Struct, frozen=True):
    total_size: _Count = 0
    total_parameters: _Count = 0


class _Index(msgspec.Struct, frozen=True):
    weight_map: dict[str, str]
    metadata: _IndexMetadata = _IndexMetadata()


def _of_index(path: Path) -> Network:
    """Return the network of an index: of its parts next to it, or what it says itself."""
    name = path.name.removesuffix(_INDEX)
    stem, _, ending = name.rpartition(".")
    for part in sorted(path.parent.glob("*")):
        match = _NUMBERED.fullmatch(part.name)
        if match is not None and (match[1], match[4]) == (stem, f".{ending}"):
            return read_weights(part)
    index = _opened(path, lambda file, *_: msgspec.json.decode(
        file.read(_LONGEST_INDEX), type=_Index
    ))  # fmt: skip
    size_bytes, count = index.metadata.total_size, len(set(index.weight_map.values()))
    if not size_bytes:
        refuse(f"{file_name(path)} lists {count} files, none of which is here, and no size.")
    note = (
        f"{file_name(path)} lists {counted(count, 'file')} of weights, together "
        f"{format_bytes(size_bytes)}. None of them is here."
    )
    config = _config_beside(path)
    if config is not None:
        has_output = any(map(_OUTPUT.search, index.weight_map))
        config = msgspec.structs.replace(config, is_tied=not has_output)
    return Network(
        name=file_name(path), size_bytes=size_bytes, parameters=index.metadata.total_parameters,
        has_experts=any(map(_EXPERTS.search, index.weight_map)), note=note, config=config,
    )  # fmt: skip


def _network(
    name: str, parts: list[FileHeader], config: ModelConfig | None, *, is_gguf: bool
) -> Network:
    tensors = [one for part in parts for one in part.tensors]
    types: Counter[str] = Counter()
    for one in tensors:
        types[one.type_name] += one.parameters
    parameters = types.total()
    if not 0 < parameters <= MOST_PARAMETERS:
        refuse(f"{name} has {'too many' if parameters else 'no'} tensors.")
    if config is not None:
        has_output = any(_OUTPUT.search(one.name) for one in tensors)
        config = msgspec.structs.replace(config, is_tied=not has_output)
    (main, count), *_ = types.most_common(1)
    packed = sum(types[kind] for kind in _PACKED)
    return Network(
        name=name,
        parameters=parameters,
        size_bytes=sum(part.size_bytes for part in parts),
        own_type=_OWN_TYPES.get(main, "") if count > _MOSTLY * parameters else "",
        is_packed=not is_gguf and 20 * packed > parameters,
        has_experts=any(_EXPERTS.search(one.name) for one in tensors),
        config=config,
    )


# ── files ────────────────────────────────────────────────────────────────────────────────────


def _opened(path: Path, read: Callable[[BinaryIO, int, str], _Found]) -> _Found:
    shown = file_name(path)
    try:
        with open_user_file(path) as file:
            return read(file, os.fstat(file.fileno()).st_size, shown)
    except (UnusableFileError, OSError) as error:
        refuse(f"Cannot read {plain_text(str(path))}: {error}.")
    except _DAMAGED:
        refuse(f"{shown} is damaged, forged or cut off: its header cannot be read.")


def _parts(path: Path) -> list[Path]:
    """Return the files of a split file by the name of one of them; else the file itself."""
    match = _NUMBERED.fullmatch(path.name)
    if match is None:
        return [path]
    count = int(match[3])
    if not 1 <= int(match[2]) <= count <= _MOST_FILES:
        refuse(f"{file_name(path)} cannot be part {int(match[2])} of {count}.")
    numbers = range(1, count + 1)
    paths = [path.with_name(f"{match[1]}-{one:05}-of-{match[3]}{match[4]}") for one in numbers]
    for one in paths:
        if not one.is_file():
            refuse(f"{file_name(path)} has {count} parts: {file_name(one)} is missing.")
    return paths


# ── headers ────────────────────────────────────────────────────────────────────────────────────


class FileTensor(NamedTuple):
    """A tensor: its numbers, and its type's name in the file."""

    name: str
    parameters: int
    type_name: str


class FileHeader(NamedTuple):
    """What a file says: its metadata, and all tensors with their bytes.

    A pointer of Git LFS has only the size of the file that it stands for.
    """

    metadata: Mapping[str, Any]
    tensors: list[FileTensor]
    size_bytes: int
    is_pointer: bool = False


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
    metadata: dict[str, Any] = {}
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

    def value(self, kind: int) -> str | float | list[float] | None:
        """Return a value of a type; None for an array of texts, and for a long one."""
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.number(_NUMBERS[kind])
        item, count = self.number("<I"), self.number("<Q")
        if item != _STRING:
            size = struct.calcsize(_NUMBERS[item])
            content = self.take(count * size)
            if count <= _MOST_LAYERS:  # a value for each layer
                return [one[0] for one in struct.iter_unpack(_NUMBERS[item], content)]
        else:
            for _ in range(count):
                self.text()
        return None


# ── the shape ────────────────────────────────────────────────────────────────────────────────

# The fields of Hugging Face's config.json by their names in transformers' configuration classes,
# and the keys of GGUF (gguf-py/gguf/constants.py of llama.cpp) that have the same.
_FIELDS = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "block_count"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "attention.head_count"),
    "key_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "attention.head_count_kv"),
    "key_width": ("head_dim", "attention_head_dim", "attention.key_length"),
    "width": ("hidden_size", "n_embd", "d_model", "embedding_length"),
    "inner_width": ("moe_intermediate_size", "expert_feed_forward_length", "intermediate_size",
                    "n_inner", "ffn_dim", "feed_forward_length"),
    "vocabulary": ("vocab_size",),
    "trained_context": ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length",
                        "context_length"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts",
                "expert_count"),
    "experts_used": ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k",
                     "expert_used_count"),
}  # fmt: skip
# With any of these, nothing here says what the layers keep.
_NOT_PLAIN = re.compile(
    r"is_encoder_decoder|(?:attention\.)?kv_lora_rank|full_attn_idxs|\w*ssm.*|(?:attention\.)?"
    r"sliding_window|attention\.shared_kv_layers|num_kv_shared_layers|attention_chunk_size|"
    r"state_size|mamba_\w+|attn_layer_period|hybrid_\w+|wkv\..*|shortconv\..*|kda\..*|multi_query|"
    r"linear_num_\w+|full_attention_interval"
)


def read_config(text: bytes) -> ModelConfig | None:
    """Return the shape in a ``config.json``; None for any other text."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        return None
    for name in ("text_config", "llm_config", "language_config"):
        if isinstance(fields.get(name), dict):
            fields |= fields[name]
    return _config(fields)


def config_of_gguf(metadata: Mapping[str, Any]) -> ModelConfig | None:
    """Return the shape in a GGUF file's metadata; None for values that cannot be."""
    prefix = f"{metadata.get('general.architecture', '')}."
    return _config({
        key.removeprefix(prefix): value for key, value in metadata.items() if key.startswith(prefix)
    })  # fmt: skip


def _config(fields: Mapping[str, Any]) -> ModelConfig | None:
    found = {
        key: next((_whole(fields[name]) for name in names if fields.get(name) is not None), 0)
        for key, names in _FIELDS.items()
    }
    kinds = layer_kinds(fields, found["layers"])
    try:
        groups = cache_groups(fields, kinds, found)
        shape = found | {
            "cache": groups,
            "is_plain": bool(groups) or _is_plain(fields),
            "state_numbers": state_numbers(fields) * kinds.count(LINEAR),
        }
        return msgspec.convert(shape, ModelConfig)
    except (msgspec.ValidationError, *_DAMAGED):
        return None


def _whole(value: Any) -> Any:
    """Return a value; of one for each layer, the largest."""
    return max(value, default=0) if isinstance(value, list) else value


def _is_plain(fields: Mapping[str, Any]) -> bool:
    """Return whether all layers keep plain keys and values of the whole context."""
    types = fields.get("layer_types")
    if types and (not isinstance(types, list) or set(map(str, types)) != {FULL}):
        return False
    return not any(
        value and _NOT_PLAIN.fullmatch(name)
        for name, value in fields.items()
        if name != "sliding_window" or fields.get("use_sliding_window") is not False
    )


# ── the child ────────────────────────────────────────────────────────────────────────────────


def answer(content: bytes) -> bytes:
    """Return the `Network` of a file as msgpack; raise ValueError with the reason."""
    try:
        network = read_weights(Path(os.fsdecode(msgspec.msgpack.decode(content, type=bytes))))
    except StudioError as error:
        raise ValueError(str(error).replace("\u202f", " ")) from error
    except MemoryError as error:
        raise ValueError("The header of this file needs more memory than it is given.") from error
    return msgspec.msgpack.encode(network)


def ask_network(
    path: Path, call: ChildCaller, is_over: Callable[[], bool] = lambda: False
) -> Network:
    """Return the network in a file, as `read_weights`, which a child process reads.

    Args:
        path: the file.
        call: calls a child process.
        is_over: returns whether the answer is no longer needed.

    Raises:
        StudioError: the file cannot be used.
    """
    return ask_child(
        call, _MODULE, os.fsencode(path), Network, limits=_LIMITS, files=[path], is_over=is_over
    )


# ── what each layer keeps of a text ──────────────────────────────────────────────────────────────

# In transformers' configurations, `layer_types` names each layer, `full_attention_interval` says
# that every n-th one of Qwen3-Next and its followers has attention, and `num_kv_shared_layers` of
# Gemma 3n and 4 that the last layers use the keys of earlier ones. GGUF has the same under other
# names; its `sliding_window_pattern` is true for a layer with a window (llama-arch.cpp of
# llama.cpp).
FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"
_KINDS = frozenset({FULL, SLIDING, LINEAR})
_UNKNOWN = ("kv_lora_rank", "attention.kv_lora_rank", "is_encoder_decoder", "attention_chunk_size")


def layer_kinds(fields: Mapping[str, Any], layers: int) -> Sequence[str]:
    """Return the kind of each layer; empty if the configuration does not say it."""
    types = fields.get("layer_types")
    if isinstance(types, list) and len(types) == layers and _KINDS.issuperset(map(str, types)):
        return [str(one) for one in types]
    every = fields.get("full_attention_interval")
    if isinstance(every, int) and 1 < every <= layers:
        return [LINEAR if (number + 1) % every else FULL for number in range(layers)]
    pattern = fields.get("attention.sliding_window_pattern")
    if isinstance(pattern, list) and len(pattern) == layers:
        return [SLIDING if one else FULL for one in pattern]
    heads = fields.get("attention.head_count_kv")
    has_windows = fields.get("attention.sliding_window")
    if isinstance(heads, list) and len(heads) == layers and not has_windows:
        return [FULL if one else LINEAR for one in heads]
    return []


def cache_groups(
    fields: Mapping[str, Any], kinds: Sequence[str], shape: Mapping[str, Any]
) -> tuple[CacheGroup, ...]:
    """Return what the layers keep of each token; empty if it is not known.

    Args:
        fields: the configuration.
        kinds: the kind of each layer.
        shape: the fields of a `ModelConfig` that were found.
    """
    window = _number(fields, "sliding_window", "attention.sliding_window")
    if not kinds or any(fields.get(name) for name in _UNKNOWN):
        return ()
    if SLIDING in kinds and not window:
        return ()
    shared = _number(fields, "num_kv_shared_layers", "attention.shared_kv_layers")
    heads = fields.get("attention.head_count_kv")
    kept: Counter[tuple[int, int]] = Counter()
    for number, kind in enumerate(kinds[: len(kinds) - shared]):
        if kind == LINEAR:
            continue
        own = heads[number] if isinstance(heads, list) and number < len(heads) else 0
        numbers = _token_numbers(fields, shape, own, is_sliding=kind == SLIDING)
        kept[numbers, window if kind == SLIDING else 0] += 1
    return tuple(CacheGroup(layers, numbers, most) for (numbers, most), layers in kept.items())


def state_numbers(fields: Mapping[str, Any]) -> int:
    """Return what a layer of linear attention keeps of a text (Gated DeltaNet): its state."""
    names = ("linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim")
    heads, key_width, value_width = (_number(fields, name) for name in names)
    return heads * key_width * value_width


def _token_numbers(
    fields: Mapping[str, Any], shape: Mapping[str, Any], own_heads: int, *, is_sliding: bool
) -> int:
    """Return the keys and values of a token in a layer."""
    heads = own_heads or shape["key_heads"] or shape["heads"]
    width = shape["key_width"] or shape["width"] // shape["heads"]
    value_width = _number(fields, "attention.value_length") or width
    if is_sliding:  # GGUF names the width of full layers first, transformers that of others
        width = _number(fields, "attention.key_length_swa") or width
        value_width = _number(fields, "attention.value_length_swa") or width
    elif wide := _number(fields, "global_head_dim"):
        width = value_width = wide
        heads = _number(fields, "num_global_key_value_heads") or heads
    return int(heads * (width + value_width))


def _number(fields: Mapping[str, Any], *names: str) -> int:
    return next((fields[name] for name in names if isinstance(fields.get(name), int)), 0)
