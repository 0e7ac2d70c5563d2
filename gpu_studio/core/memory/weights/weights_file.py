"""The network in a file of weights: safetensors or GGUF, in one piece or in several.

Nothing of a file decides which other file is opened: the parts of a split one are next to it and
have its name with another number. A header may be a stranger's and take all time and memory, so a
child process reads it (`answer`).
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from gpu_studio.core.child_question import Limits, ask_child
from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.networks import MOST_PARAMETERS, ModelConfig, Network
from gpu_studio.core.memory.weights.headers import (
    MAGIC,
    FileHeader,
    read_gguf,
    read_safetensors,
    refuse,
)
from gpu_studio.core.texts import file_name, plain_text
from gpu_studio.core.user_file import UnusableFileError, open_user_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from gpu_studio.core.child_question import ChildCaller

_MODULE = "gpu_studio.core.memory.weights.weights_file"
_LIMITS = Limits(longest_s=60.0, memory_bytes=2 << 30, answer_bytes=1 << 20)
_HEAD_BYTES, _LONGEST_CONFIG_BYTES, _MOST_FILES = 9, 4 << 20, 1000
_POINTER = b"version h"  # of Git LFS
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
    shown = file_name(path)
    head = _opened(path, lambda file, _size, _shown: file.read(_HEAD_BYTES))
    if head == _POINTER:
        refuse(f"{shown} is a pointer of Git LFS, not the file itself. Get it with “git lfs pull”.")
    is_gguf = head.startswith(MAGIC)
    if not is_gguf and head[8:] != b"{":  # behind its length
        refuse(f"{shown} is neither a safetensors nor a GGUF file.")
    parts = [_opened(part, read_gguf if is_gguf else read_safetensors) for part in _parts(path)]
    config = config_of_gguf(parts[0].metadata)
    if not is_gguf and (beside := path.with_name("config.json")).is_file():
        config = _opened(beside, lambda file, *_: read_config(file.read(_LONGEST_CONFIG_BYTES)))
    return _network(shown, parts, config, is_gguf=is_gguf)


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
# With any of these, some layers keep something else than keys and values of the whole context.
_NOT_PLAIN = re.compile(
    r"is_encoder_decoder|(?:attention\.)?kv_lora_rank|num_kv_shared_layers|full_attn_idxs|\w*ssm.*|"
    r"attention\.shared_kv_layers|(?:attention\.)?sliding_window|attention_chunk_size|state_size|"
    r"mamba_\w+|linear_num_\w+|attn_layer_period|full_attention_interval|hybrid_\w+|wkv\..*|"
    r"shortconv\..*|kda\..*|multi_query"
)  # fmt: skip


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


def config_of_gguf(metadata: Mapping[str, str | float]) -> ModelConfig | None:
    """Return the shape in a GGUF file's metadata; None for values that cannot be."""
    prefix = f"{metadata.get('general.architecture', '')}."
    return _config({
        key.removeprefix(prefix): value for key, value in metadata.items() if key.startswith(prefix)
    })  # fmt: skip


def _config(fields: Mapping[str, Any]) -> ModelConfig | None:
    found = {
        key: next((fields[name] for name in names if fields.get(name) is not None), 0)
        for key, names in _FIELDS.items()
    }
    try:
        return msgspec.convert(found | {"is_plain": _is_plain(fields)}, ModelConfig)
    except msgspec.ValidationError:
        return None


def _is_plain(fields: Mapping[str, Any]) -> bool:
    """Return whether all layers keep plain keys and values of the whole context."""
    types = fields.get("layer_types")
    if types and (not isinstance(types, list) or set(map(str, types)) != {"full_attention"}):
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
