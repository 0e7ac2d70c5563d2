"""Networks as far as memory and speed need them: parameters, types, and their shape.

Well-known ones are here by their names; `read_weights` has those in files.
"""

from __future__ import annotations

import math
import re
from typing import Annotated

import msgspec

AS_IN_FILE = "as in the file"
"""The type of a file's weights as they are, beside the keys of `BITS`."""
BITS = {"float32": 32, "16-bit": 16, "8-bit": 8.5, "4-bit": 4.5}
"""The bits of a weight by its type. 16-bit is float16 or bfloat16. 8-bit and 4-bit are as GGUF's
Q8_0 and Q4_0: 32 weights and a scale of 16 bits."""
LARGEST_CONTEXT = 1 << 30
MOST_PARAMETERS = 10**14
USUAL_CONTEXT = 4096
_Amount = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
_Side = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_CONTEXT)]


class CacheGroup(msgspec.Struct, frozen=True):
    """Layers that keep the same of each token.

    Attributes:
        layers: how many.
        numbers: keys and values of a token in one of them.
        window: the tokens that they keep; 0 for all.
    """

    layers: _Side
    numbers: _Side
    window: _Side = 0


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A transformer's shape; 0 for what nothing says.

    Attributes:
        key_heads, key_width: of the keys and values, if they differ from the other heads.
        width, inner_width: the numbers of a token between the layers, and of one expert within.
        trained_context: the tokens that the model was made for.
        experts, experts_used: of each layer; 0 without experts.
        state_numbers: what layers without keys and values keep of a text, whatever its length.
        cache: what the layers keep, if it is not the keys and values of the whole context in all.
        is_tied: whether the output uses the weights of the input table.
        is_plain: whether it is known what all layers keep.
    """

    layers: _Side = 0
    heads: _Side = 0
    key_heads: _Side = 0
    key_width: _Side = 0
    width: _Side = 0
    inner_width: _Side = 0
    vocabulary: _Side = 0
    trained_context: _Side = 0
    experts: _Side = 0
    experts_used: _Side = 0
    state_numbers: _Amount = 0
    cache: tuple[CacheGroup, ...] = ()
    is_tied: bool = True
    is_plain: bool = True

    def cache_numbers(self, tokens: int) -> int:
        """Return the keys and values that all layers keep of a text; 0 if they are not known."""
        return sum(
            group.layers * group.numbers * min(tokens, group.window or tokens)
            for group in self._groups
        )

    @property
    def _groups(self) -> tuple[CacheGroup, ...]:
        if self.cache or not self.is_plain or not self.heads:
            return self.cache
        head_width = self.key_width or self.width // self.heads
        return (CacheGroup(self.layers, 2 * (self.key_heads or self.heads) * head_width),)

    @property
    def cache_words(self) -> str:
        """What is kept of a token, in words; empty if it is not known."""
        parts = []
        for group in self._groups:
            last = f" of the last {group.window} tokens" if group.window else ""
            parts.append(f"{group.layers} layers keep {group.numbers} numbers a token{last}")
        return ", ".join(parts)


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """A network.

    Attributes:
        name: empty if only its number of parameters is known.
        size_bytes: the bytes of all tensors in the file; 0 without a file.
        own_type: the type of nearly all weights in the file, if PyTorch trains in it: a key of
            `BITS`; else empty.
        is_packed: whether several weights share a number, so that only the bytes are right.
        has_experts: whether it is a mixture of experts.
        note: what its file is, if it is not the weights themselves.
        config: its shape; None if nothing says it.
    """

    name: str = ""
    parameters: _Amount = 0
    size_bytes: _Amount = 0
    own_type: str = ""
    is_packed: bool = False
    has_experts: bool = False
    note: str = ""
    config: ModelConfig | None = None

    def kept_bytes(self, kind: str) -> int:
        """Return the bytes of all weights in a type: `AS_IN_FILE` or a key of `BITS`."""
        if kind == AS_IN_FILE:
            return self.size_bytes
        return math.ceil(self.parameters * BITS[kind] / 8)

    @property
    def usual_context(self) -> int:
        """The tokens to ask for first: 4096, or fewer if the model was made for fewer."""
        trained = self.config.trained_context if self.config is not None else 0
        return min(USUAL_CONTEXT, trained or USUAL_CONTEXT)


_GPT_2 = ModelConfig(layers=12, heads=12, width=768, vocabulary=50257, trained_context=1024)
_LLAMA_2 = ModelConfig(
    layers=32, heads=32, width=4096, vocabulary=32000, trained_context=4096, is_tied=False
)
_NETWORKS = (
    Network(name="GPT-2", parameters=124_439_808, config=_GPT_2),  # Radford et al. 2019, the small
    Network(name="Llama 2 7B", parameters=6_738_415_616, config=_LLAMA_2),  # Touvron et al. 2023
)
NETWORK_NAMES = tuple(network.name for network in _NETWORKS)
"""The names of the known networks, from few parameters to many."""


_SCALES = {
    "": 1, "k": 10**3, "thousand": 10**3, "m": 10**6, "million": 10**6, "b": 10**9, "g": 10**9,
    "billion": 10**9, "t": 10**12, "trillion": 10**12,
}  # fmt: skip
_COUNT = re.compile(r"(\d+(?:\.\d+)?(?:e\d{1,2})?)([a-z]*)", re.ASCII)


def network_called(text: str) -> Network | None:
    """Return a known network by its name, or one of a number of parameters; None for neither.

    A number is as people write it: ``7B``, ``350 M``, ``1e9``, ``1,000``.
    """
    plain = re.sub(r"[\s,_'’]", "", text.lower())
    for network in _NETWORKS:
        if network.name.lower().replace(" ", "") == plain:
            return network
    match = _COUNT.fullmatch(plain)
    if match is None or match[2] not in _SCALES:
        return None
    count = float(match[1]) * _SCALES[match[2]]
    return Network(parameters=round(count)) if 1 <= count <= MOST_PARAMETERS else None
