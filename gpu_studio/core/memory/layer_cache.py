"""What each layer of a model keeps of a text, from its configuration.

In transformers' configurations, `layer_types` names each layer, `full_attention_interval` says that
every n-th one of Qwen3-Next and its followers has attention, and `num_kv_shared_layers` of Gemma 3n
and 4 that the last layers use the keys of earlier ones. GGUF has the same under other names; its
`sliding_window_pattern` is true for a layer with a window (llama-arch.cpp of llama.cpp).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from gpu_studio.core.memory.networks import CacheGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
