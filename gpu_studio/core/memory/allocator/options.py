"""The options of PyTorch's CUDA allocator, in the form of ``PYTORCH_CUDA_ALLOC_CONF``.

The text is a list such as
``max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:8]``. Names, defaults and ranges are
those of PyTorch 2.13 (c10/core/AllocatorConfig.cpp, c10/cuda/CUDAAllocatorConfig.cpp). Texts that
PyTorch refuses are refused here. PyTorch also accepts undocumented forms: any separator for any
other, ``64x`` for 64, ``-1`` for the largest number. These are refused here, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
MIN_BLOCK_BYTES = 512
"""All sizes are multiples of this (kMinBlockSize)."""
SMALL_SEGMENT_BYTES = 2 * MIB
"""The segment, or the page of an expandable one, that requests of up to 1 MiB share."""
UNLIMITED = (1 << 64) - 1
"""The largest size_t: no limit."""

_MOST_MIB = UNLIMITED // MIB
_Mib = Annotated[int, Meta(ge=0, le=_MOST_MIB)]
_Divisions = tuple[int, ...]
_INTERVALS = 16
_MOST_DIGITS = 20
_BLANKS = re.compile(r"[ \t\n\v\f\r]+")
_PART = re.compile(r"(\w+):(\[[^\[\]]*\]|[^,:\[\]]+)(?:,|$)", re.ASCII)
_DECIMAL = re.compile(r"\d+\.\d+", re.ASCII)
_FOR_AMD = {
    "release_lock_on_hipmalloc": "release_lock_on_cudamalloc",
    "pinned_use_hip_host_register": "pinned_use_cuda_host_register",
}


class AllocatorConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The options by PyTorch's names, with its defaults for those that a text leaves out.

    ``roundup_power2_divisions`` has 16 entries, for sizes from 1, 2, 4, … MiB on; the first also
    applies to smaller sizes, the last to larger ones. The pinned options concern the PC's memory.
    None means no limit, or for the rounding the size of a large segment.
    """

    text: str = ""
    backend: Literal["native"] = "native"
    large_segment_size_mb: Annotated[int, Meta(gt=10, le=_MOST_MIB)] = 20
    max_split_size_mb: _Mib | None = None
    max_non_split_rounding_mb: _Mib | None = None
    roundup_power2_divisions: _Divisions = (0,) * _INTERVALS
    garbage_collection_threshold: Annotated[float, Meta(gt=0, lt=1)] = 0.0
    expandable_segments: bool = False
    per_process_memory_fraction: Annotated[float, Meta(ge=0, le=1)] = 1.0
    throw_on_cudamalloc_oom: bool = False
    release_lock_on_cudamalloc: bool = False
    graph_capture_record_stream_reuse: bool = False
    pinned_use_background_threads: bool = False
    pinned_use_cuda_host_register: bool = False
    pinned_num_register_threads: Literal[1, 2, 4, 8, 16, 32, 64, 128] = 1
    pinned_reserve_segment_size_mb: Annotated[int, Meta(ge=1, le=_MOST_MIB)] = 0
    pinned_free_catch_all: bool = False
    pinned_max_round_threshold_mb: _Mib | None = None
    pinned_max_cached_size_mb: _Mib | None = None

    @property
    def large_segment_bytes(self) -> int:
        """The segment that requests of 1 to 10 MiB share."""
        return self.large_segment_size_mb * MIB

    def rounded_bytes(self, nbytes: int) -> int:
        """Return the least size of a block for a request (round_size).

        ``roundup_power2_divisions`` divides the range between two powers of two into that many
        steps, and the request is rounded up to the next step. So similar sizes become equal, and
        can reuse each other's blocks.
        """
        slot = min(max(nbytes.bit_length() - 21, 0), _INTERVALS - 1)
        divisions = self.roundup_power2_divisions[slot]
        if divisions > 1 and nbytes > MIN_BLOCK_BYTES * divisions:
            step_bytes = (1 << nbytes.bit_length() - 1) // divisions
            return -(-nbytes // step_bytes) * step_bytes
        return -(-nbytes // MIN_BLOCK_BYTES) * MIN_BLOCK_BYTES

    def page_bytes(self, *, is_small: bool) -> int:
        """Return the size in which an expandable segment grows."""
        return SMALL_SEGMENT_BYTES if is_small else self.large_segment_bytes

    @property
    def max_split_bytes(self) -> int:
        """The size from which blocks are not split."""
        return size_of(self.max_split_size_mb)

    @property
    def max_non_split_rounding_bytes(self) -> int:
        """The largest excess of an unsplit block over its request."""
        return size_of(self.max_non_split_rounding_mb or self.large_segment_size_mb)


def size_of(size_mb: int | None) -> int:
    """Return a size in bytes; None is no limit."""
    return UNLIMITED if size_mb is None else size_mb * MIB


def parse_configuration(text: str) -> AllocatorConfiguration:
    """Return the options in a text; an empty text gives the defaults.

    Raises:
        ValueError: an unknown option or an invalid value; the text names it.
    """
    options: dict[str, object] = {"text": text}
    divisions = (0,) * _INTERVALS
    for name, word in _parts(text):
        key = _FOR_AMD.get(name, name)
        if key == "text" or key not in AllocatorConfiguration.__struct_fields__:
            raise ValueError(f"“{name[:60]}” is not an option of the allocator")
        if key == "roundup_power2_divisions":
            options[key] = divisions = _divisions(word, divisions)
            continue
        options[key] = _of(word)
        try:
            msgspec.convert({key: options[key]}, AllocatorConfiguration)
        except msgspec.ValidationError as error:
            reason = str(error).partition(" - at")[0].replace("`", "")
            raise ValueError(f"“{name[:60]}:{word[:60]}”: {reason}") from error
    configuration = msgspec.convert(options, AllocatorConfiguration)
    least_mb = configuration.large_segment_size_mb
    for name in ("max_split_size_mb", "max_non_split_rounding_mb"):
        size_mb = getattr(configuration, name)
        if size_mb is not None and size_mb < least_mb:
            raise ValueError(f"“{name}:{size_mb}” must be {least_mb} or more")
    return configuration


def checked_configuration(text: str) -> str:
    """Return a text if PyTorch's allocator would accept it; raise ValueError like the above."""
    parse_configuration(text)
    return text


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield each option's name and its value as a word."""
    text, at = _BLANKS.sub("", text), 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None:
            raise ValueError(f"“{text[at : at + 60]}” does not begin with an option and its value")
        yield match[1], match[2]
        at = match.end()


def _of(word: str) -> bool | int | float | str:
    if word in ("True", "False"):
        return word == "True"
    if word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS:
        return int(word)
    return float(word) if _DECIMAL.fullmatch(word) else word


def _divisions(word: str, before: tuple[int, ...]) -> tuple[int, ...]:
    """Return one number for all sizes, or the numbers of a list such as ``[256:1,512:2,>:8]``.

    A list has pairs of a size in MiB and its divisions; ``>`` means all larger sizes. Sizes that it
    leaves out keep their numbers from ``before``.
    """
    if not word.startswith("["):
        return (_power_of_2(word),) * _INTERVALS
    divisions, last, is_first = list(before), 0, True
    for pair in filter(None, word[1:-1].split(",")):
        boundary, _, size = pair.partition(":")
        value = 0 if size == "0" else _power_of_2(size)
        if boundary == ">":
            divisions[last + 1 :] = [value] * (_INTERVALS - last - 1)
            continue
        last = min(_power_of_2(boundary).bit_length() - 1, _INTERVALS - 1)
        if is_first:
            divisions[:last] = [value] * last
            is_first = False
        divisions[last] = value
    return tuple(divisions)


def _power_of_2(word: str) -> int:
    value = _of(word)
    if type(value) is not int or value < 1 or value & (value - 1):
        raise ValueError(f"“{word[:60]}” in roundup_power2_divisions must be a power of 2")
    return value
