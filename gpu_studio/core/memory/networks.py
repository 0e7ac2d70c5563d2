"""Networks as far as memory and speed need them: parameters, bytes, types, and their shape.

Well-known ones are here by their names; `read_weights` has those in files.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, NamedTuple

import msgspec

AS_IN_FILE = "as in the file"
"""The type of a file's weights as they are, beside the keys of `KEPT_TYPES`."""
LARGEST_CONTEXT = 1 << 30
MOST_PARAMETERS = 10**14
USUAL_CONTEXT = 4096
_Amount = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
_Width = Annotated[int, msgspec.Meta(ge=0, le=1 << 24)]


class WeightType(NamedTuple):
    """A type: ``block`` weights take ``block_bytes`` bytes, scales included."""

    block: int
    block_bytes: int

    @property
    def bits(self) -> float:
        """The bits that a weight takes, with its part of the block's scales."""
        return 8 * self.block_bytes / self.block


KEPT_TYPES = {
    "float16": WeightType(1, 2),
    "bfloat16": WeightType(1, 2),
    "float32": WeightType(1, 4),
    "float64": WeightType(1, 8),
    "8-bit": WeightType(32, 34),
    "4-bit": WeightType(32, 18),
}
"""The types to choose from. 8-bit and 4-bit are as GGUF's Q8_0 and Q4_0: 32 weights and a scale of
16 bits."""


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A transformer's shape; 0 for what nothing says.

    Attributes:
        cache_numbers: the keys and values of a token in one layer; 0 if they are not modeled.
        unknown_cache: why not, in a sentence.
        trained_context: the tokens that the model was made for.
        width, inner_width: the numbers of a token between the layers, and of one expert within.
        experts, experts_used: of each layer; 0 without experts.
        is_tied: whether the output uses the weights of the input table; None if nothing says so.
    """

    layers: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0
    heads: _Width = 0
    width: _Width = 0
    inner_width: _Width = 0
    vocabulary: _Width = 0
    cache_numbers: _Amount = 0
    unknown_cache: str = ""
    trained_context: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_CONTEXT)] = 0
    experts: _Width = 0
    experts_used: _Width = 0
    is_tied: bool | None = None


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """A network.

    Attributes:
        name: empty if only its number of parameters is known.
        size_bytes: the bytes of all tensors in the file; 0 without a file.
        types_bytes: the file's bytes by the names of its types.
        is_packed: whether several weights share a number, so that only the bytes are right.
        has_experts: whether it is a mixture of experts.
        config: its shape; None if nothing says it.
    """

    name: str = ""
    parameters: _Amount = 0
    size_bytes: _Amount = 0
    types_bytes: dict[str, _Amount] = {}
    is_packed: bool = False
    has_experts: bool = False
    config: ModelConfig | None = None

    def kept_bytes(self, kind: str) -> int:
        """Return the bytes of all weights in a type: `AS_IN_FILE` or a key of `KEPT_TYPES`."""
        if kind == AS_IN_FILE:
            return self.size_bytes
        return -(-self.parameters // KEPT_TYPES[kind].block) * KEPT_TYPES[kind].block_bytes

    @property
    def usual_context(self) -> int:
        """The tokens to ask for first: 4096, or fewer if the model was made for fewer."""
        trained = self.config.trained_context if self.config is not None else 0
        return min(USUAL_CONTEXT, trained or USUAL_CONTEXT)


_NETWORKS = (
    Network(name="ResNet-18", parameters=11_689_512),  # He et al. 2016
    Network(  # Dosovitskiy et al. 2021: 197 patches, and no text
        name="ViT-B/16",
        parameters=86_567_656,
        config=ModelConfig(layers=12, heads=12, width=768, trained_context=197),
    ),
    Network(  # Radford et al. 2019, the small model
        name="GPT-2",
        parameters=124_439_808,
        config=ModelConfig(
            layers=12, heads=12, width=768, vocabulary=50257, cache_numbers=2 * 768,
            trained_context=1024, is_tied=True,
        ),
    ),
    Network(  # Touvron et al. 2023
        name="Llama 2 7B",
        parameters=6_738_415_616,
        config=ModelConfig(
            layers=32, heads=32, width=4096, vocabulary=32000, cache_numbers=2 * 4096,
            trained_context=4096, is_tied=False,
        ),
    ),
)  # fmt: skip
NETWORK_NAMES = tuple(network.name for network in _NETWORKS)
"""The names of the known networks, from few parameters to many."""


_SCALES = {
    "": 1, "k": 10**3, "thousand": 10**3, "m": 10**6, "million": 10**6, "b": 10**9, "g": 10**9,
    "billion": 10**9, "t": 10**12, "trillion": 10**12,
}  # fmt: skip
_COUNT = re.compile(r"(\d+(?:\.\d+)?(?:e\d{1,2})?)([a-z]*)", re.ASCII)


def _count_of(text: str) -> int | None:
    """Return a number of parameters as people write it: ``7B``, ``350 M``, ``1e9``, ``1,000``.

    None for anything else.
    """
    plain = re.sub(r"[\s,_'’]", "", text.strip().lower())
    match = _COUNT.fullmatch(plain)
    if match is None or match[2] not in _SCALES:
        return None
    count = float(match[1]) * _SCALES[match[2]]
    return round(count) if math.isfinite(count) else None


def network_called(text: str) -> Network | None:
    """Return a known network by its name, or one by its number of parameters; None for neither."""
    wanted = text.strip().casefold()
    known = next((one for one in _NETWORKS if one.name.casefold() == wanted), None)
    count = _count_of(text)
    if known is not None or not count or count > MOST_PARAMETERS:
        return known
    return Network(parameters=count)
