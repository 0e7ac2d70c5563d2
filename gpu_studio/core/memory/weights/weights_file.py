"""The network in a file of weights: safetensors or GGUF, in one piece or in several.

Nothing of a file decides which other file is opened: the parts of a split one are next to it and
have its name with another number. A header may be a stranger's and take all time and memory, so a
child process reads it (`answer`).
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import msgspec

from gpu_studio.core.child_question import Limits, ask_child
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.networks import MOST_PARAMETERS, ModelConfig, Network
from gpu_studio.core.memory.weights.headers import (
    MAGIC,
    FileTensor,
    read_gguf,
    read_safetensors,
    refuse,
)
from gpu_studio.core.texts import file_name, plain_text
from gpu_studio.core.user_file import UnusableFileError, open_user_file, read_own_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpu_studio.core.child_question import ChildCaller

_MODULE = "gpu_studio.core.memory.weights.weights_file"
_LIMITS = Limits(longest_s=60.0, memory_bytes=2 << 30, answer_bytes=1 << 20)
_HEAD_BYTES, _LONGEST_CONFIG_BYTES, _MOST_FILES = 9, 4 << 20, 1000
_POINTER = b"version h"  # of Git LFS
_NUMBERED = re.compile(r"(.*)-(\d{5})-of-(\d{5})(\.[^.]+)", re.DOTALL)
_OUTPUT = re.compile(r"(?:^|\.)(?:lm_head|embed_out|output)\.weight$")
_EXPERTS = re.compile(r"\.experts\.|\.ffn_\w+_exps\.")
# Types of which one number may hold several weights, as GPTQ, AWQ and bitsandbytes pack them.
_PACKED = {"BOOL", "U8", "I8", "I16", "U16", "I32", "U32", "I64", "U64"}
_Found = TypeVar("_Found")


def read_weights(path: Path, config_path: Path | None = None) -> Network:
    """Return the network in a file, with what is known of its shape.

    Args:
        path: a safetensors or GGUF file, or any part of a split one.
        config_path: its ``config.json``; None takes the one next to a safetensors file.

    Raises:
        StudioError: a file cannot be read, is damaged or forged, or lacks a part.
    """
    shown = file_name(path)
    head = _opened(path, lambda file, _size, _shown: file.read(_HEAD_BYTES))
    config = read_config_file(config_path) if config_path is not None else None
    tensors: list[FileTensor] = []
    if head.startswith(MAGIC):
        metadata: dict[str, str | float] = {}
        for part in _parts(path):
            found, more = _opened(part, read_gguf)
            metadata, tensors = metadata or found, tensors + more
        config = config or config_of_gguf(metadata, shown)
    elif head[8:] == b"{":  # behind its length
        for part in _parts(path):
            tensors += _opened(part, read_safetensors)
        beside = path.with_name("config.json")
        if config is None and beside.is_file():
            config = read_config_file(beside)
    elif head == _POINTER:
        refuse(f"{shown} is a pointer of Git LFS, not the file itself. Get it with “git lfs pull”.")
    else:
        refuse(f"{shown} is neither a safetensors nor a GGUF file.")
    return _network(shown, tensors, config, is_gguf=head.startswith(MAGIC))


def _network(
    name: str, tensors: list[FileTensor], config: ModelConfig | None, *, is_gguf: bool
) -> Network:
    types: dict[str, int] = {}
    for one in tensors:
        types[one.type_name] = types.get(one.type_name, 0) + one.size_bytes
    parameters, size_bytes = sum(one.parameters for one in tensors), sum(types.values())
    if not 0 < parameters <= MOST_PARAMETERS:
        refuse(f"{name} has {'too many' if parameters else 'no'} tensors.")
    if config is not None and config.is_tied is None:
        has_output = any(_OUTPUT.search(one.name) for one in tensors)
        config = msgspec.structs.replace(config, is_tied=not has_output)
    packed_bytes = sum(size for kind, size in types.items() if kind in _PACKED)
    return Network(
        name=name,
        parameters=parameters,
        size_bytes=size_bytes,
        types_bytes=types,
        is_packed=not is_gguf and 20 * packed_bytes > size_bytes,
        has_experts=any(_EXPERTS.search(one.name) for one in tensors),
        config=config,
    )


# ── files ────────────────────────────────────────────────────────────────────────────────────


def _opened(path: Path, read: Callable[[BinaryIO, int, str], _Found]) -> _Found:
    try:
        with open_user_file(path) as file:
            return read(file, os.fstat(file.fileno()).st_size, file_name(path))
    except UnusableFileError as error:
        raise _unusable(path, error) from error
    except OSError as error:
        raise _unusable(path, error.strerror or error) from error


def _unusable(path: Path, reason: object) -> StudioError:
    return StudioError(FailureKind.BAD_REQUEST, f"Cannot read {plain_text(str(path))}: {reason}.")


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
_KEY_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "attention.head_count_kv")
_KEY_WIDTH = ("head_dim", "attention_head_dim", "attention.key_length")
# With any of these, some layers keep something else than keys and values of the whole context.
_NOT_PLAIN = re.compile(
    r"is_encoder_decoder|(?:attention\.)?kv_lora_rank|num_kv_shared_layers|full_attn_idxs|\w*ssm.*|"
    r"attention\.shared_kv_layers|(?:attention\.)?sliding_window|attention_chunk_size|state_size|"
    r"mamba_\w+|linear_num_\w+|attn_layer_period|full_attention_interval|hybrid_\w+|wkv\..*|"
    r"shortconv\..*|kda\..*|multi_query"
)  # fmt: skip
_UNKNOWN_CACHE = (
    "The KV cache is not modeled: the configuration does not say that every layer keeps the keys "
    "and values of the whole context."
)


def read_config_file(path: Path) -> ModelConfig:
    """Return the shape in a ``config.json``; raises `StudioError`."""
    try:
        return read_config(read_own_file(path, _LONGEST_CONFIG_BYTES), file_name(path))
    except UnusableFileError as error:
        raise _unusable(path, error) from error


def read_config(text: bytes, shown: str) -> ModelConfig:
    """Return the shape in a ``config.json``; raises `StudioError` for any other text."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        refuse(f"{shown} is not a model's configuration: it is no JSON object.")
    for name in ("text_config", "llm_config", "language_config"):
        if isinstance(fields.get(name), dict):
            fields |= fields[name]
    config = _config(fields, shown)
    if not config.layers and not config.experts and not config.width:
        refuse(f"{shown} is not a model's configuration: it names no layers.")
    return config


def config_of_gguf(metadata: Mapping[str, str | float], shown: str) -> ModelConfig:
    """Return the shape in a GGUF file's metadata; raises `StudioError` for a forged value."""
    prefix = f"{metadata.get('general.architecture', '')}."
    fields = {key.removeprefix(prefix): value for key, value in metadata.items()
              if key.startswith(prefix)}  # fmt: skip
    return _config(fields, shown)


def _config(fields: Mapping[str, Any], shown: str) -> ModelConfig:
    def number(*names: str) -> object:
        return next((fields[name] for name in names if fields.get(name) is not None), 0)

    tied = fields.get("tie_word_embeddings")
    values = {key: number(*names) for key, names in _FIELDS.items()}
    try:
        config = msgspec.convert(values | {"is_tied": tied}, ModelConfig, strict=True)
        heads, width = msgspec.convert(
            [number(*_KEY_HEADS) or config.heads,
             number(*_KEY_WIDTH) or config.width // max(1, config.heads)],
            tuple[int, int],
        )  # fmt: skip
        cache_numbers = 0 if _is_special(fields) else 2 * heads * width
        cache_numbers *= config.layers > 0
        unknown = "" if cache_numbers else _UNKNOWN_CACHE
        return msgspec.convert(
            msgspec.structs.asdict(config)
            | {"cache_numbers": cache_numbers, "unknown_cache": unknown},
            ModelConfig,
        )
    except msgspec.ValidationError as error:
        refuse(f"{shown} cannot be used as a configuration: {plain_text(str(error))[:100]}.")


def _is_special(fields: Mapping[str, Any]) -> bool:
    """Return whether some layers keep something else than plain keys and values."""
    types = fields.get("layer_types")
    if types and (not isinstance(types, list) or set(map(str, types)) != {"full_attention"}):
        return True
    return any(
        value and _NOT_PLAIN.fullmatch(name)
        for name, value in fields.items()
        if name != "sliding_window" or fields.get("use_sliding_window") is not False
    )


# ── the child ────────────────────────────────────────────────────────────────────────────────


def answer(content: bytes) -> bytes:
    """Return the `Network` of a file as msgpack; raise ValueError with the reason."""
    names = msgspec.msgpack.decode(content, type=tuple[bytes | None, bytes | None])
    path, config_path = (None if one is None else Path(os.fsdecode(one)) for one in names)
    try:
        if path is not None:
            network = read_weights(path, config_path)
        else:
            network = Network(config=read_config_file(config_path) if config_path else None)
    except StudioError as error:
        raise ValueError(str(error).replace("\u202f", " ")) from error
    except MemoryError as error:
        raise ValueError("The header of this file needs more memory than it is given.") from error
    return msgspec.msgpack.encode(network)


def ask_network(
    network: Network | Path,
    config: Path | None,
    call: ChildCaller,
    is_over: Callable[[], bool] = lambda: False,
) -> Network:
    """Return a network, from its file if it has one, with its shape.

    Args:
        network: a file, as for `read_weights`, or a network by its name or number of parameters.
        config: its ``config.json``; None takes the one next to a safetensors file.
        call: calls a child process.
        is_over: returns whether the answer is no longer needed.

    Raises:
        StudioError: a file cannot be used.
    """
    if isinstance(network, Network) and (network.name or config is None):
        return network
    path = network if isinstance(network, Path) else None
    names = [None if one is None else os.fsencode(one) for one in (path, config)]
    files = [one for one in (path, config) if one is not None]
    found: Network = ask_child(
        call, _MODULE, names, Network, limits=_LIMITS, files=files, is_over=is_over
    )
    if isinstance(network, Network):
        return msgspec.structs.replace(network, config=found.config)
    return found
