"""The options of PyTorch's CUDA allocator, read as PyTorch reads them.

``PYTORCH_CUDA_ALLOC_CONF`` is a list such as
``max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:8]``. PyTorch 2.13 reads it twice:
what all accelerators share in c10/core/AllocatorConfig.cpp, then CUDA's own in
c10/cuda/CUDAAllocatorConfig.cpp. Errors have PyTorch's types and words.

The text is cut at ``,``, ``:``, ``[`` and ``]``, which are words too; blanks count for nothing
(ConfigTokenizer in c10/core/AllocatorConfig.h). PyTorch looks at no separator: any word stands for
any of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_LARGEST = (1 << 64) - 1
_WORD = re.compile(r"[,:\[\]]|[^,:\[\]]+")
_BLANKS = re.compile(r"[ \t\n\v\f\r]+")
_INTEGER = re.compile(r"([+-]?)(\d+)", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_HEXADECIMAL = re.compile(
    r"[+-]?0x(?:[\da-f]+\.?[\da-f]*|\.[\da-f]+)(?:p[+-]?\d+)?", re.ASCII | re.IGNORECASE
)
_NAMED = re.compile(r"[+-]?(?:inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE)
_SMALLEST_NORMAL = 2.0**-1022
_TOO_SHORT = "Index out of bounds in ConfigTokenizer"
NO_BRACKET = "Expected closing bracket ']' in ConfigTokenizer but reached end of config"


def internal_assert(condition: str, file: str, line: int, explanation: str) -> RuntimeError:
    """Return what PyTorch 2.13's own wheels raise where a condition of their code fails.

    Args:
        condition: the C++ expression.
        file: the C++ file, from c10 on.
        line: its line.
        explanation: the sentence after it.
    """
    return RuntimeError(
        f'{condition} INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/c10/{file}":{line}, '
        f"please report a bug to PyTorch. {explanation}"
    )


class Tokens:
    """The words by their index, each read as what it should be.

    Numbers are read as C++ reads them (``std::stoull`` and ``std::stod``): as much of the word as
    is a number counts, ``-1`` is the largest one, and an error says only the function's name.
    """

    def __init__(self, text: str) -> None:
        self._words: list[str] = _WORD.findall(_BLANKS.sub("", text))

    def __len__(self) -> int:
        return len(self._words)

    def word(self, i: int) -> str:
        """Return a word as it is (ConfigTokenizer::operator[])."""
        if i >= len(self._words):
            raise self._bounds(55)
        return self._words[i]

    def skip(self, i: int) -> int:
        """Pass over a separator; returns the index after it (ConfigTokenizer::checkToken)."""
        if i >= len(self._words):
            raise self._bounds(124)
        return i + 1

    def integer(self, i: int) -> int:
        """Return a size_t (ConfigTokenizer::toSizeT)."""
        self.skip(i)
        match = _INTEGER.match(self._words[i])
        if match is None:
            raise ValueError("stoull")
        value = int(match[2])
        if value > _LARGEST:
            raise IndexError("stoull")
        return -value & _LARGEST if match[1] == "-" else value

    def number(self, i: int) -> float:
        """Return a double (ConfigTokenizer::toDouble)."""
        self.skip(i)
        word = self._words[i]
        match = _HEXADECIMAL.match(word)
        if match is not None:
            return float.fromhex(match[0])
        match = _NAMED.match(word)
        if match is not None:
            return float(match[0])
        match = _DECIMAL.match(word)
        if match is None:
            raise ValueError("stod")
        value = float(match[0])
        is_zero = not re.search("[1-9]", re.split("[eE]", match[0])[0])
        if math.isinf(value) or (abs(value) < _SMALLEST_NORMAL and not is_zero):
            raise IndexError("stod")
        return value

    def boolean(self, i: int) -> bool:
        """Return True or False, which are case-sensitive (ConfigTokenizer::toBool)."""
        self.skip(i)
        word = self._words[i]
        if word not in ("True", "False"):
            raise ValueError(
                f"Expected 'True' or 'False' at index {i} in ConfigTokenizer but got '{word}'"
            )
        return word == "True"

    def skip_value(self, i: int) -> int:
        """Return the last index of the value from i on, a list or not (skipKey)."""
        self.skip(i)
        if self._words[i] != "[":
            return i
        while i < len(self._words):
            if self._words[i] == "]":
                return i
            i += 1
        raise internal_assert("i < config_.size()", "core/AllocatorConfig.h", 115, NO_BRACKET)

    def _bounds(self, line: int) -> RuntimeError:
        return internal_assert("i < config_.size()", "core/AllocatorConfig.h", line, _TOO_SHORT)


MIB = 1 << 20
UNLIMITED = (1 << 64) - 1
"""The largest size_t: no limit."""

_LARGEST_MIB = UNLIMITED // MIB
_LARGE_SEGMENT_MB = 20
_SMALLEST_LARGE_SEGMENT_MB = 10
_INTERVALS = 16
_MOST_THREADS = 128


@dataclass(frozen=True)
class AllocatorConfiguration:
    """What the options say, with PyTorch's defaults where they say nothing.

    ``roundup_power2_divisions`` has 16 entries, for sizes from 1, 2, 4, … MiB on; the first also
    serves what is smaller, the last what is larger. The pinned ones are about memory of the PC.
    """

    text: str = ""
    large_segment_size_mb: int = _LARGE_SEGMENT_MB
    max_split_bytes: int = UNLIMITED
    max_non_split_rounding_bytes: int = _LARGE_SEGMENT_MB * MIB
    roundup_power2_divisions: tuple[int, ...] = (0,) * _INTERVALS
    garbage_collection_threshold: float = 0.0
    expandable_segments: bool = False
    per_process_memory_fraction: float = 1.0
    throw_on_cudamalloc_oom: bool = False
    release_lock_on_cudamalloc: bool = False
    graph_capture_record_stream_reuse: bool = False
    pinned_use_background_threads: bool = False
    pinned_use_cuda_host_register: bool = False
    pinned_num_register_threads: int = 1
    pinned_reserve_segment_size_mb: int = 0
    pinned_free_catch_all: bool = False
    pinned_max_round_threshold_bytes: int = UNLIMITED
    pinned_max_cached_size_bytes: int = UNLIMITED

    @property
    def large_segment_bytes(self) -> int:
        """The segment that requests of 1 to 10 MiB share."""
        return self.large_segment_size_mb * MIB


def parse_configuration(text: str) -> AllocatorConfiguration:
    """Return the options in a text; an empty one gives the defaults.

    Raises:
        ValueError: an unknown key, a value out of its range, a number that is none ("stoull").
        IndexError: a number too large to be one ("stoull", "stod").
        RuntimeError: the text ends too early, or asks for another allocator than this one.
    """
    tokens = Tokens(text)
    options: _Options = {"text": text}
    # It bounds other sizes, so PyTorch looks for it first, among keys and values alike.
    i = 0
    while i < len(tokens):
        if tokens.word(i) == "large_segment_size_mb":
            i = _read_large_segment(tokens, i, options)
        i += 1
    large_segment_mb = options.get("large_segment_size_mb", _LARGE_SEGMENT_MB)
    options["max_non_split_rounding_bytes"] = large_segment_mb * MIB
    _read(tokens, options, _COMMON, _CUDA)
    _read(tokens, options, _CUDA, _COMMON)
    return AllocatorConfiguration(**options)


_Options = dict[str, Any]
_Reader = Callable[[Tokens, int, _Options], int]
"""Reads the value of the key at an index; returns the index of the value's last word."""


def _read(
    tokens: Tokens, options: _Options, own: dict[str, _Reader], others: dict[str, _Reader]
) -> None:
    """Read the values of this reader's own keys and pass over those of the other's."""
    i = 0
    while i < len(tokens):
        key = tokens.word(i)
        if key in own:
            i = own[key](tokens, i, options)
        elif key in others:
            i = _pass_over(tokens, i, options)
        else:
            raise ValueError(f"Unrecognized key '{key}' in Accelerator allocator config.")
        i += 1
        if i < len(tokens):
            i = tokens.skip(i)


def _pass_over(tokens: Tokens, i: int, _options: _Options) -> int:
    return tokens.skip_value(tokens.skip(i + 1))


def _read_large_segment(tokens: Tokens, i: int, options: _Options) -> int:
    i = tokens.skip(i + 1)
    size_mb = tokens.integer(i)
    if size_mb <= _SMALLEST_LARGE_SEGMENT_MB:
        raise ValueError(
            "CachingAllocator option large_segment_size_mb must be > "
            f"{_SMALLEST_LARGE_SEGMENT_MB} MB"
        )
    options["large_segment_size_mb"] = min(size_mb, _LARGEST_MIB)
    return i


def _size_reader(option: str, *, is_bounded: bool) -> _Reader:
    """Return a reader of MiB, no fewer than a large segment where it is bounded."""

    def read(tokens: Tokens, i: int, options: _Options) -> int:
        key = tokens.word(i)
        i = tokens.skip(i + 1)
        size_mb = tokens.integer(i)
        smallest_mb = options.get("large_segment_size_mb", _LARGE_SEGMENT_MB)
        if is_bounded and size_mb < smallest_mb:
            raise ValueError(f"CachingAllocator option {key} too small, must be >= {smallest_mb}")
        options[option] = min(size_mb, _LARGEST_MIB) * MIB
        return i

    return read


def _boolean_reader(option: str) -> _Reader:
    def read(tokens: Tokens, i: int, options: _Options) -> int:
        i = tokens.skip(i + 1)
        options[option] = tokens.boolean(i)
        return i

    return read


def _read_threshold(tokens: Tokens, i: int, options: _Options) -> int:
    i = tokens.skip(i + 1)
    threshold = tokens.number(i)
    if not 0 < threshold < 1:
        raise ValueError("garbage_collect_threshold is invalid, set it in (0.0, 1.0)")
    options["garbage_collection_threshold"] = threshold
    return i


def _read_fraction(tokens: Tokens, i: int, options: _Options) -> int:
    i = tokens.skip(i + 1)
    fraction = tokens.number(i)
    if not 0 <= fraction <= 1:
        raise ValueError("per_process_memory_fraction is invalid, set it in [0.0, 1.0]")
    options["per_process_memory_fraction"] = fraction
    return i


def _read_divisions(tokens: Tokens, i: int, options: _Options) -> int:
    """Read one number for all sizes, or a list such as ``[256:1,512:2,>:8]``."""
    i = tokens.skip(i + 1)
    if tokens.word(i) == "[":
        return _read_division_list(tokens, i + 1, options)
    value = tokens.integer(i)
    if not _is_power_of_2(value):
        raise ValueError("For roundups, the divisions has to be power of 2 ")
    options["roundup_power2_divisions"] = (value,) * _INTERVALS
    return i


def _read_division_list(tokens: Tokens, i: int, options: _Options) -> int:
    """Read pairs of a size in MiB and its divisions; ``>`` is all sizes after the last one."""
    divisions = list(options.get("roundup_power2_divisions", (0,) * _INTERVALS))
    last = 0
    is_first = True
    while i < len(tokens) and tokens.word(i) != "]":
        boundary_at = i
        i = tokens.skip(i + 1)
        value = tokens.integer(i)
        if value != 0 and not _is_power_of_2(value):
            raise ValueError(
                "For roundups, the divisions has to be power of 2 or 0 to disable roundup "
            )
        if tokens.word(boundary_at) == ">":
            divisions[last + 1 :] = [value] * (_INTERVALS - last - 1)
        else:
            last = _interval(tokens.integer(boundary_at))
            if is_first:
                divisions[:last] = [value] * last
                is_first = False
            divisions[last] = value
        i += 1
        if tokens.word(i) != "]":
            i = tokens.skip(i)
    if i >= len(tokens):
        raise internal_assert("i < tokenizer.size()", "core/AllocatorConfig.cpp", 211, NO_BRACKET)
    options["roundup_power2_divisions"] = tuple(divisions)
    return i


def _interval(boundary_mb: int) -> int:
    if not _is_power_of_2(boundary_mb):
        raise ValueError("For roundups, the intervals have to be power of 2 ")
    return min(boundary_mb.bit_length() - 1, _INTERVALS - 1)


def _read_backend(tokens: Tokens, i: int, _options: _Options) -> int:
    i = tokens.skip(i + 1)
    name = tokens.word(i)
    if name not in ("native", "cudaMallocAsync"):
        raise ValueError("Unknown allocator backend, options are native and cudaMallocAsync")
    if name != "native":
        raise internal_assert(
            "tokenizer[i] == get()->name()",
            "cuda/CUDAAllocatorConfig.cpp",
            44,
            "Allocator backend parsed at runtime != allocator backend parsed at load time, "
            f"{name} != native",
        )
    return i


def _read_threads(tokens: Tokens, i: int, options: _Options) -> int:
    i = tokens.skip(i + 1)
    threads = tokens.integer(i)
    if not _is_power_of_2(threads):
        raise ValueError(f"Number of register threads has to be power of 2, got {threads}")
    if threads > _MOST_THREADS:
        raise ValueError(
            "Number of register threads should be less than or equal to "
            f"{_MOST_THREADS}, got {threads}"
        )
    options["pinned_num_register_threads"] = threads
    return i


def _read_pinned_reserve(tokens: Tokens, i: int, options: _Options) -> int:
    i = tokens.skip(i + 1)
    size_mb = tokens.integer(i)
    if size_mb == 0:
        raise ValueError("Pinned reserve segment size has to be greater than 0")
    options["pinned_reserve_segment_size_mb"] = size_mb
    return i


def _is_power_of_2(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


_COMMON: dict[str, _Reader] = {
    "large_segment_size_mb": _pass_over,
    "max_split_size_mb": _size_reader("max_split_bytes", is_bounded=True),
    "max_non_split_rounding_mb": _size_reader("max_non_split_rounding_bytes", is_bounded=True),
    "garbage_collection_threshold": _read_threshold,
    "roundup_power2_divisions": _read_divisions,
    "expandable_segments": _boolean_reader("expandable_segments"),
    "pinned_use_background_threads": _boolean_reader("pinned_use_background_threads"),
    "pinned_max_round_threshold_mb": _size_reader(
        "pinned_max_round_threshold_bytes", is_bounded=False
    ),
    "pinned_max_cached_size_mb": _size_reader("pinned_max_cached_size_bytes", is_bounded=False),
}
_CUDA: dict[str, _Reader] = {
    "backend": _read_backend,
    "release_lock_on_cudamalloc": _boolean_reader("release_lock_on_cudamalloc"),
    "release_lock_on_hipmalloc": _boolean_reader("release_lock_on_cudamalloc"),
    "pinned_use_cuda_host_register": _boolean_reader("pinned_use_cuda_host_register"),
    "pinned_use_hip_host_register": _boolean_reader("pinned_use_cuda_host_register"),
    "graph_capture_record_stream_reuse": _boolean_reader("graph_capture_record_stream_reuse"),
    "pinned_num_register_threads": _read_threads,
    "pinned_reserve_segment_size_mb": _read_pinned_reserve,
    "per_process_memory_fraction": _read_fraction,
    "pinned_free_catch_all": _boolean_reader("pinned_free_catch_all"),
    "throw_on_cudamalloc_oom": _boolean_reader("throw_on_cudamalloc_oom"),
}
