"""What a language model's configuration says of its shape: layers, heads, window, experts.

From Hugging Face's ``config.json`` (the names of its fields are those of transformers'
``PretrainedConfig`` classes) or from the metadata of a GGUF file (docs/gguf.md of ggml, and the
keys in llama.cpp's gguf-py/gguf/constants.py). Both are strangers' files.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec

from gpu_studio.core.memory.weights.file_tensor import refuse
from gpu_studio.core.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LONGEST_CONFIG_BYTES = 4 << 20
LARGEST_CONTEXT = 1 << 30
_MOST_LAYERS, _MOST_HEADS, _LARGEST_WIDTH = 10_000, 1 << 20, 1 << 24
_Width = Annotated[int, msgspec.Meta(ge=0, le=_LARGEST_WIDTH)]
_Elements = Annotated[int, msgspec.Meta(ge=0, le=_MOST_HEADS * _LARGEST_WIDTH)]


class CacheLayers(msgspec.Struct, frozen=True, kw_only=True):
    """Layers that keep the same for each token.

    Attributes:
        layers: how many.
        elements: the numbers of keys and values together, for a token in one layer.
        window: the tokens that are kept at most; None for all of the context.
    """

    layers: Annotated[int, msgspec.Meta(ge=1, le=_MOST_LAYERS)]
    elements: _Elements
    window: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_CONTEXT)] | None = None


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A model's shape; 0 and None for what the configuration does not say.

    Attributes:
        kind: the architecture's name there.
        layers: the number of layers.
        cache: the layers by what they keep for each token; empty if that is not modeled.
        unknown_cache: why not, in a sentence.
        trained_context: the tokens that the model was made for.
        experts, experts_used: of each layer with experts; 0 without experts.
        is_tied: whether the output uses the weights of the input table.
    """

    kind: str = ""
    layers: Annotated[int, msgspec.Meta(ge=0, le=_MOST_LAYERS)] = 0
    cache: tuple[CacheLayers, ...] = ()
    unknown_cache: str = ""
    trained_context: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_CONTEXT)] = 0
    heads: Annotated[int, msgspec.Meta(ge=0, le=_MOST_HEADS)] = 0
    width: _Width = 0
    inner_width: _Width = 0
    vocabulary: _Width = 0
    experts: Annotated[int, msgspec.Meta(ge=0, le=_MOST_HEADS)] = 0
    experts_used: Annotated[int, msgspec.Meta(ge=0, le=_MOST_HEADS)] = 0
    is_tied: bool | None = None


_LATENT = (
    "The KV cache is not modeled: this model compresses it (latent attention), and programs "
    "differ in what they keep."
)
_OTHER_LAYERS = (
    "The KV cache is not modeled: some layers of this model keep something else than keys and "
    "values."
)
_SHARED = "The KV cache is not modeled: layers of this model share theirs."
_UNKNOWN_WINDOW = (
    "The KV cache is not modeled: the configuration has a sliding window, but does not say in "
    "which layers."
)
_TWO_PARTS = "The KV cache is not modeled: this model has an encoder and a decoder."
_NO_SHAPE = "The KV cache is not modeled: the configuration does not say its layers and heads."


# ── config.json ──────────────────────────────────────────────────────────────────────────────

# Every so many layers one sees the whole context, if neither layer_types nor a pattern says so:
# transformers' configuration_gemma2.py and configuration_gemma3.py. 0: none does.
_USUAL_PATTERNS = {
    "gemma2": 2, "gemma3_text": 6, "gemma3": 6, "cohere2": 4, "mistral": 0, "mixtral": 0,
    "phi3": 0, "starcoder2": 0,
}  # fmt: skip
_FULL, _SLIDING, _CHUNKED = "full_attention", "sliding_attention", "chunked_attention"


def read_config(text: bytes, shown: str) -> ModelConfig:
    """Return the shape in a ``config.json``; raises `StudioError` for any other text."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        refuse(f"{shown} is not a model's configuration: it is not JSON.")
    if not isinstance(fields, dict) or "weight_map" in fields:
        refuse(f"{shown} is not a model's configuration.")
    nested: dict[str, Any] = next(
        (fields[name] for name in ("text_config", "llm_config", "language_config")
         if isinstance(fields.get(name), dict)),
        {},
    )  # fmt: skip
    look = _Fields({**fields, **nested}, shown)
    config = _config_of(look)
    if not config.layers and not config.experts and not config.width:
        refuse(f"{shown} is not a model's configuration: it names no layers.")
    return config


class _Fields:
    """Fields by the names that models give them; a wrong value is refused, null is none."""

    def __init__(self, fields: Mapping[str, Any], shown: str) -> None:
        self.fields, self._shown = fields, shown

    def number(self, *names: str, most: int = LARGEST_CONTEXT) -> int:
        """Return the first of these that is there, 0 without one."""
        for name in names:
            value = self.fields.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
                self.refuse(name, value)
            return value
        return 0

    def truth(self, name: str) -> bool:
        """Return whether a field is true."""
        return self.fields.get(name) is True

    def has(self, *names: str) -> bool:
        """Return whether any of these is there and neither null, 0 nor false."""
        return any(self.fields.get(name) for name in names)

    def refuse(self, name: str, value: object) -> NoReturn:
        """Refuse a value."""
        refuse(f"{self._shown} cannot be used: its {name} is {plain_text(repr(value)[:40])}.")


def _config_of(look: _Fields) -> ModelConfig:
    kind = str(look.fields.get("model_type") or "")[:60]
    names = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    layers = look.number(*names, most=_MOST_LAYERS)
    heads = look.number("num_attention_heads", "n_head", "n_heads", most=_MOST_HEADS)
    width = look.number("hidden_size", "n_embd", "d_model", most=_LARGEST_WIDTH)
    tied = look.fields.get("tie_word_embeddings")
    config = ModelConfig(
        kind=plain_text(kind),
        layers=layers,
        trained_context=look.number("max_position_embeddings", "n_positions", "max_seq_len",
                                    "seq_length"),
        heads=heads,
        width=width,
        inner_width=look.number("intermediate_size", "n_inner", "ffn_dim", most=_LARGEST_WIDTH),
        vocabulary=look.number("vocab_size", most=_LARGEST_WIDTH),
        experts=look.number("num_local_experts", "num_experts", "n_routed_experts",
                            "moe_num_experts", most=_MOST_HEADS),
        experts_used=look.number("num_experts_per_tok", "num_experts_per_token", "moe_topk",
                                 "moe_k", most=_MOST_HEADS),
        is_tied=tied if isinstance(tied, bool) else None,
    )  # fmt: skip
    cache, reason = _cache_of(look, config)
    return msgspec.structs.replace(config, cache=cache, unknown_cache=reason)


def _cache_of(look: _Fields, config: ModelConfig) -> tuple[tuple[CacheLayers, ...], str]:
    """Return the layers by what they keep, or why that is not modeled."""
    types = look.fields.get("layer_types")
    if look.truth("is_encoder_decoder"):
        return (), _TWO_PARTS
    if look.has("kv_lora_rank"):
        return (), _LATENT
    if look.has("num_kv_shared_layers"):
        return (), _SHARED
    if look.has("state_size", "ssm_state_size", "mamba_d_state", "linear_num_key_heads",
                "attn_layer_period", "hybrid_override_pattern", "full_attn_idxs"):  # fmt: skip
        return (), _OTHER_LAYERS
    key_heads = look.number("num_key_value_heads", "num_kv_heads", "n_head_kv", most=_MOST_HEADS)
    if not key_heads:
        key_heads = 1 if look.truth("multi_query") else config.heads
    head_width = look.number("head_dim", "attention_head_dim", most=_LARGEST_WIDTH)
    if not head_width and config.heads:
        head_width = config.width // config.heads
    elements = 2 * key_heads * head_width
    if not (config.layers and elements):
        return (), _NO_SHAPE
    if isinstance(types, list) and types:
        return _by_types(look, [str(one) for one in types], config.layers, elements)
    window = look.number("sliding_window")
    if not window or look.fields.get("use_sliding_window") is False:
        return (CacheLayers(layers=config.layers, elements=elements),), ""
    if look.truth("use_sliding_window"):  # Qwen: the layers from this one on
        full = min(look.number("max_window_layers"), config.layers)
        return _grouped(((full, elements, None), (config.layers - full, elements, window))), ""
    pattern = look.fields.get("sliding_window_pattern", look.fields.get("_sliding_window_pattern"))
    if not isinstance(pattern, int) or isinstance(pattern, bool) or pattern < 0:
        pattern = _USUAL_PATTERNS.get(config.kind)
    if pattern is None:
        return (), _UNKNOWN_WINDOW
    full = config.layers // pattern if pattern else 0  # the last of each so many
    return _grouped(((full, elements, None), (config.layers - full, elements, window))), ""


def _by_types(
    look: _Fields, types: Sequence[str], layers: int, elements: int
) -> tuple[tuple[CacheLayers, ...], str]:
    windows = {
        _FULL: None,
        _SLIDING: look.number("sliding_window") or None,
        _CHUNKED: look.number("attention_chunk_size") or None,
    }
    counts = Counter(types)
    if not set(counts) <= set(windows):
        return (), _OTHER_LAYERS
    if len(types) != layers or any(windows[one] is None for one in counts if one != _FULL):
        return (), _UNKNOWN_WINDOW
    return _grouped((count, elements, windows[one]) for one, count in counts.items()), ""


def _grouped(layers: Iterable[tuple[int, int, int | None]]) -> tuple[CacheLayers, ...]:
    return tuple(
        CacheLayers(layers=count, elements=elements, window=window)
        for count, elements, window in layers
        if count and elements
    )


# ── GGUF ─────────────────────────────────────────────────────────────────────────────────────

# Of architectures whose files leave the pattern out: llama.cpp's set_swa_pattern, src/models/.
_GGUF_PATTERNS = {"gemma2": 2, "gemma3": 6, "cohere2": 4, "gpt-oss": 2}


def config_of_gguf(metadata: Mapping[str, object], vocabulary: int, shown: str) -> ModelConfig:
    """Return the shape in a GGUF file's metadata.

    Args:
        metadata: the file's values by key.
        vocabulary: the rows of its input table; 0 if unknown.
        shown: the file's name.

    Raises:
        StudioError: a value that cannot be.
    """
    kind = str(metadata.get("general.architecture") or "")[:60]
    prefix = f"{kind}."
    look = _Fields(
        {key.removeprefix(prefix): value for key, value in metadata.items()
         if key.startswith(prefix)}, shown,
    )  # fmt: skip
    config = ModelConfig(
        kind=plain_text(kind),
        layers=max(
            0, look.number("block_count", most=_MOST_LAYERS) - look.number("nextn_predict_layers")
        ),  # these only guess ahead
        trained_context=look.number("context_length"),
        heads=_one_of(look, "attention.head_count"),
        width=look.number("embedding_length", most=_LARGEST_WIDTH),
        inner_width=_one_of(look, "feed_forward_length"),
        vocabulary=min(vocabulary, _LARGEST_WIDTH),
        experts=look.number("expert_count", most=_MOST_HEADS),
        experts_used=look.number("expert_used_count", most=_MOST_HEADS),
    )
    cache, reason = _cache_of_gguf(look, config)
    return msgspec.structs.replace(config, cache=cache, unknown_cache=reason)


def _one_of(look: _Fields, name: str) -> int:
    """Return a number that may be given for each layer: the largest."""
    return max(_each(look, name), default=0)


def _each(look: _Fields, name: str) -> tuple[int, ...]:
    """Return a number, or one for each layer; empty if it is not there."""
    value = look.fields.get(name)
    values = value if isinstance(value, tuple) else (value,) if value is not None else ()
    if any(
        isinstance(one, bool) or not isinstance(one, int) or not 0 <= one <= _LARGEST_WIDTH
        for one in values
    ):
        look.refuse(name, value)
    return values


def _cache_of_gguf(look: _Fields, config: ModelConfig) -> tuple[tuple[CacheLayers, ...], str]:
    if look.has("attention.kv_lora_rank"):
        return (), _LATENT
    if look.has("attention.shared_kv_layers"):
        return (), _SHARED
    if look.has("full_attention_interval", "shortconv.l_cache") or any(
        name.startswith(("ssm.", "wkv.", "kda.")) for name in look.fields
    ):
        return (), _OTHER_LAYERS
    heads = _each(look, "attention.head_count_kv") or (config.heads,)
    usual = config.width // config.heads if config.heads else 0
    keys = look.number("attention.key_length", most=_LARGEST_WIDTH) or usual
    values = look.number("attention.value_length", most=_LARGEST_WIDTH) or usual
    if not (config.layers and any(heads) and keys and values):
        return (), _NO_SHAPE
    window = look.number("attention.sliding_window")
    narrow_keys = look.number("attention.key_length_swa", most=_LARGEST_WIDTH) or keys
    narrow_values = look.number("attention.value_length_swa", most=_LARGEST_WIDTH) or values
    slides = _sliding_layers(look, config) if window else (False,) * config.layers
    if slides is None:
        return (), _UNKNOWN_WINDOW
    each = (heads if len(heads) > 1 else heads * config.layers)[: config.layers]
    slides = slides[: config.layers]
    if len(each) != config.layers or len(slides) != config.layers:
        return (), _NO_SHAPE
    counts = Counter(
        (count * ((narrow_keys + narrow_values) if does else (keys + values)),
         window if does else None)
        for count, does in zip(each, slides, strict=True)
    )  # fmt: skip
    return _grouped((count, *kept) for kept, count in counts.items()), ""


def _sliding_layers(look: _Fields, config: ModelConfig) -> tuple[bool, ...] | None:
    """Return for each layer whether it has the window; None if nothing says so."""
    pattern = look.fields.get("attention.sliding_window_pattern", _GGUF_PATTERNS.get(config.kind))
    if isinstance(pattern, tuple):
        return tuple(bool(one) for one in pattern)
    if isinstance(pattern, bool) or not isinstance(pattern, int) or pattern < 0:
        return None
    return tuple(not pattern or index % pattern < pattern - 1 for index in range(config.layers))
