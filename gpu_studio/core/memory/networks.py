"""The tensors of networks: of well-known ones by their names, and of files (`read_weights`).

PyTorch's allocator rounds and packs tensors, so the same number of parameters needs more memory in
one network than in another.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from gpu_studio.core.memory.weights.file_tensor import MOST_TENSORS
from gpu_studio.core.memory.weights.model_config import CacheLayers, ModelConfig
from gpu_studio.core.memory.weights.weight_types import KEPT_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

AS_IN_FILE = "as in the file"
"""The type of a file's weights as they are, beside the keys of `KEPT_TYPES`."""
_Amount = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class WeightsFormat(Enum):
    """The format of a file of weights."""

    SAFETENSORS = "safetensors"
    GGUF = "GGUF"


class NetworkPart(msgspec.Struct, frozen=True, kw_only=True):
    """Some of a network's tensors: their parameters, and their bytes in the file (0 without)."""

    parameters: _Amount = 0
    size_bytes: _Amount = 0

    def kept_bytes(self, kind: str) -> int:
        """Return their bytes in a type: `AS_IN_FILE` or a key of `KEPT_TYPES`."""
        if kind == AS_IN_FILE:
            return self.size_bytes
        return KEPT_TYPES[kind].size_bytes(self.parameters)


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """A network with the number of parameters in each of its tensors, in PyTorch's order.

    Attributes:
        count: the number of parameters, if the tensors are not known.
        sizes_bytes: the bytes of each tensor in the file; empty without a file.
        format, files: of the file, and in how many pieces it is.
        types_bytes: the file's bytes by the names of its types.
        is_packed: whether several weights share a number, so that only the bytes are right.
        rows: tables of which a token needs a row: the input's, if the output has its own.
        aside: what generating text does not use: an image's encoder, layers that guess ahead.
        experts: the experts of all layers, of which a token uses some.
        in_layers: everything that is in a numbered layer, experts included.
        config: its shape; None if nothing says it.
    """

    name: str
    tensors: Annotated[tuple[_Amount, ...], msgspec.Meta(max_length=MOST_TENSORS)] = ()
    count: _Amount = 0
    sizes_bytes: Annotated[tuple[_Amount, ...], msgspec.Meta(max_length=MOST_TENSORS)] = ()
    format: WeightsFormat | None = None
    files: int = 0
    types_bytes: dict[str, _Amount] = {}
    is_packed: bool = False
    rows: NetworkPart = NetworkPart()
    aside: NetworkPart = NetworkPart()
    experts: NetworkPart = NetworkPart()
    in_layers: NetworkPart = NetworkPart()
    config: ModelConfig | None = None

    @property
    def parameters(self) -> int:
        """The number of all parameters."""
        return sum(self.tensors) if self.tensors else self.count

    def kept_bytes(self, kind: str) -> int:
        """Return the bytes of all weights in a type: `AS_IN_FILE` or a key of `KEPT_TYPES`."""
        if kind == AS_IN_FILE:
            return sum(self.sizes_bytes)
        return sum(KEPT_TYPES[kind].size_bytes(count) for count in self.tensors or (self.count,))


def network_of_count(parameters: int, config: ModelConfig | None = None) -> Network:
    """Return a network of which only the number of parameters is known, and perhaps its shape.

    Its input table is one of its own unless the configuration says that the output uses it.
    """
    if config is None:
        return Network(name="", count=parameters)
    table = config.vocabulary * config.width
    is_own = config.is_tied is not True
    if table * (1 + is_own) > parameters:
        return Network(name="", count=parameters, config=config)
    return Network(
        name="",
        count=parameters,
        rows=NetworkPart(parameters=table if is_own else 0),
        in_layers=NetworkPart(parameters=parameters - table * (1 + is_own)),
        config=config,
    )


def _linear(inputs: int, outputs: int) -> Iterator[int]:
    yield from (inputs * outputs, outputs)


def _convolution(inputs: int, outputs: int, side: int) -> Iterator[int]:
    """Yield a convolution without bias and its batch normalization."""
    yield from (inputs * outputs * side**2, outputs, outputs)


def _resnet_18() -> Iterator[int]:
    """He et al. 2016, table 1."""
    yield from _convolution(3, 64, 7)
    for inputs, width in pairwise((64, 64, 128, 256, 512)):
        yield from (*_convolution(inputs, width, 3), *_convolution(width, width, 3))
        if inputs != width:
            yield from _convolution(inputs, width, 1)
        yield from (*_convolution(width, width, 3), *_convolution(width, width, 3))
    yield from _linear(512, 1000)


def _block(width: int) -> Iterator[int]:
    """Yield a transformer block with two layer normalizations and biases everywhere."""
    yield from (width, width)
    yield from (*_linear(width, 3 * width), *_linear(width, width))
    yield from (width, width)
    yield from (*_linear(width, 4 * width), *_linear(4 * width, width))


def _gpt_2() -> Iterator[int]:
    """Radford et al. 2019, the small model; the output shares the embedding's weights."""
    yield from (50257 * 768, 1024 * 768)
    for _ in range(12):
        yield from _block(768)
    yield from (768, 768)


def _vit_b_16() -> Iterator[int]:
    """Dosovitskiy et al. 2021, table 1: ViT-Base with patches of 16 × 16, 1000 classes."""
    yield from (768, 3 * 16 * 16 * 768, 768, 197 * 768)
    for _ in range(12):
        yield from _block(768)
    yield from (768, 768, *_linear(768, 1000))


def _llama_2_7b() -> Iterator[int]:
    """Touvron et al. 2023: 32 blocks of 4096, feed-forward layers of 11,008, 32,000 tokens."""
    yield 32000 * 4096
    for _ in range(32):
        yield from [4096 * 4096] * 4
        yield from [4096 * 11008] * 3
        yield from (4096, 4096)
    yield from (4096, 32000 * 4096)


class _Known(NamedTuple):
    """A published network; ``rows`` and ``outside`` count parameters (`Network`)."""

    tensors: Callable[[], Iterator[int]]
    rows: int = 0
    outside: int = 0
    config: ModelConfig | None = None


_NETWORKS: dict[str, _Known] = {
    "ResNet-18": _Known(_resnet_18),
    "ViT-B/16": _Known(_vit_b_16),
    "GPT-2": _Known(
        _gpt_2,
        rows=1024 * 768,
        outside=(50257 + 1024 + 2) * 768,
        config=ModelConfig(
            kind="gpt2",
            layers=12,
            cache=(CacheLayers(layers=12, elements=2 * 768),),
            trained_context=1024,
            heads=12,
            width=768,
            inner_width=4 * 768,
            vocabulary=50257,
            is_tied=True,
        ),
    ),
    "Llama 2 7B": _Known(
        _llama_2_7b,
        rows=32000 * 4096,
        outside=(2 * 32000 + 1) * 4096,
        config=ModelConfig(
            kind="llama",
            layers=32,
            cache=(CacheLayers(layers=32, elements=2 * 4096),),
            trained_context=4096,
            heads=32,
            width=4096,
            inner_width=11008,
            vocabulary=32000,
            is_tied=False,
        ),
    ),
}
NETWORK_NAMES = tuple(_NETWORKS)
"""The names of the networks whose tensors are known, from few parameters to many."""


@cache
def known_network(name: str) -> Network | None:
    """Return a network by its name, in upper or lower case; None if it is not known."""
    for known, published in _NETWORKS.items():
        if known.casefold() == name.strip().casefold():
            tensors = tuple(published.tensors())
            return Network(
                name=known,
                tensors=tensors,
                rows=NetworkPart(parameters=published.rows),
                in_layers=NetworkPart(
                    parameters=sum(tensors) - published.outside if published.config else 0
                ),
                config=published.config,
            )
    return None
