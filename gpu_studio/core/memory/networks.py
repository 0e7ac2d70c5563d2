"""The tensors of networks: of well-known ones by their names, and of a safetensors file.

PyTorch's allocator rounds and packs tensors, so the same number of parameters needs more memory in
one network than in another.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, BinaryIO

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.plain_text import file_name, plain_text
from gpu_studio.core.user_file import UnusableFileError, read_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_LENGTH_BYTES = 8
_LONGEST_HEADER = 16 << 20  # the format allows 100 MB; 3,000 tensors need 0.4 MB
_MOST_TENSORS = 50_000
MOST_PARAMETERS = 10**14


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """A network with the number of parameters in each of its tensors, in PyTorch's order."""

    name: str
    tensors: tuple[int, ...]

    @property
    def parameters(self) -> int:
        """The number of all parameters."""
        return sum(self.tensors)


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


_NETWORKS: dict[str, Callable[[], Iterator[int]]] = {
    "ResNet-18": _resnet_18,
    "ViT-B/16": _vit_b_16,
    "GPT-2": _gpt_2,
    "Llama 2 7B": _llama_2_7b,
}
NETWORK_NAMES = tuple(_NETWORKS)
"""The names of the networks whose tensors are known, from few parameters to many."""


@cache
def known_network(name: str) -> Network | None:
    """Return a network by its name, in upper or lower case; None if it is not known."""
    for known, tensors in _NETWORKS.items():
        if known.casefold() == name.strip().casefold():
            return Network(name=known, tensors=tuple(tensors()))
    return None


class _FileTensor(msgspec.Struct, frozen=True):
    shape: tuple[Annotated[int, msgspec.Meta(ge=0)], ...]


def read_network(path: Path, is_over: Callable[[], bool] = lambda: False) -> Network:
    """Return the network of a safetensors file; only the file's header is read.

    The header is JSON behind its length in 8 bytes, little-endian
    (huggingface.co/docs/safetensors).

    Args:
        path: the file.
        is_over: returns whether the network is no longer needed.

    Raises:
        StudioError: the file cannot be read, is not a safetensors file, or has too many tensors.
    """
    try:
        fields = msgspec.json.decode(read_part(path, _header, is_over), type=dict[str, msgspec.Raw])
        fields.pop("__metadata__", None)
        shapes = [msgspec.json.decode(field, type=_FileTensor).shape for field in fields.values()]
    except UnusableFileError as error:
        raise StudioError(
            FailureKind.BAD_REQUEST, f"Cannot read {plain_text(str(path))}: {error}."
        ) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        reason = f"{file_name(path)} is not a safetensors file."
        raise StudioError(FailureKind.BAD_REQUEST, reason) from error
    tensors = tuple(count for shape in shapes if (count := math.prod(shape)))
    if not tensors:
        raise StudioError(FailureKind.BAD_REQUEST, f"{file_name(path)} has no tensors.")
    if len(tensors) > _MOST_TENSORS or sum(tensors) > MOST_PARAMETERS:
        raise StudioError(FailureKind.BAD_REQUEST, f"{file_name(path)} has too many tensors.")
    return Network(name=file_name(path), tensors=tensors)


def _header(file: BinaryIO) -> bytes:
    size_bytes = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    return file.read(size_bytes) if size_bytes <= _LONGEST_HEADER else b""
