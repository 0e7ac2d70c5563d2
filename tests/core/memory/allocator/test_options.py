"""Allocator options are read, and refused, in PyTorch's words.

The texts of the errors are those that torch 2.13 gives for the same options.
"""

from __future__ import annotations

import pytest

from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.memory.allocator.options import (
    UNLIMITED,
    AllocatorConfiguration,
    parse_configuration,
)

MIB = 1 << 20


def test_nothing_said_is_pytorchs_default():
    assert parse_configuration("") == AllocatorConfiguration()
    defaults = AllocatorConfiguration()
    assert defaults.large_segment_bytes == defaults.max_non_split_rounding_bytes == 20 * MIB
    assert defaults.max_split_bytes == UNLIMITED
    assert defaults.roundup_power2_divisions == (0,) * 16


@pytest.mark.parametrize(
    ("text", "option", "value"),
    [
        ("max_split_size_mb:64", "max_split_bytes", 64 * MIB),
        (" max_split_size_mb : 64 ,", "max_split_bytes", 64 * MIB),
        ("max_split_size_mb:64x", "max_split_bytes", 64 * MIB),
        ("max_split_size_mb:+64", "max_split_bytes", 64 * MIB),
        ("max_split_size_mb,64", "max_split_bytes", 64 * MIB),
        ("max_split_size_mb:-1", "max_split_bytes", UNLIMITED // MIB * MIB),
        ("max_split_size_mb:64,max_split_size_mb:32", "max_split_bytes", 32 * MIB),
        ("max_non_split_rounding_mb:40", "max_non_split_rounding_bytes", 40 * MIB),
        ("max_split_size_mb:30,large_segment_size_mb:30", "max_split_bytes", 30 * MIB),
        ("large_segment_size_mb:11", "large_segment_bytes", 11 * MIB),
        ("large_segment_size_mb:11", "max_non_split_rounding_bytes", 11 * MIB),
        ("garbage_collection_threshold:0.8", "garbage_collection_threshold", 0.8),
        ("garbage_collection_threshold:.5x", "garbage_collection_threshold", 0.5),
        ("garbage_collection_threshold:0x1p-3", "garbage_collection_threshold", 0.125),
        ("per_process_memory_fraction:0", "per_process_memory_fraction", 0.0),
        ("expandable_segments:True", "expandable_segments", True),
        ("expandable_segments:False", "expandable_segments", False),
        ("throw_on_cudamalloc_oom:True", "throw_on_cudamalloc_oom", True),
        ("release_lock_on_hipmalloc:True", "release_lock_on_cudamalloc", True),
        ("pinned_num_register_threads:128", "pinned_num_register_threads", 128),
        ("pinned_max_cached_size_mb:3", "pinned_max_cached_size_bytes", 3 * MIB),
        ("roundup_power2_divisions:8", "roundup_power2_divisions", (8,) * 16),
        (
            "roundup_power2_divisions:[256:1,512:2,>:8]",
            "roundup_power2_divisions",
            (1,) * 9 + (2,) + (8,) * 6,
        ),
        ("roundup_power2_divisions:[>:4]", "roundup_power2_divisions", (0,) + (4,) * 15),
        ("roundup_power2_divisions:[]", "roundup_power2_divisions", (0,) * 16),
        (
            "roundup_power2_divisions:[4:2,131072:0]",
            "roundup_power2_divisions",
            (2, 2, 2) + (0,) * 13,
        ),
    ],
)
def test_an_option_is_read(text, option, value):
    assert getattr(parse_configuration(text), option) == value


def assertion(line, explanation, file="core/AllocatorConfig.h", condition="i < config_.size()"):
    return (
        f'{condition} INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/c10/{file}":{line}, '
        f"please report a bug to PyTorch. {explanation}"
    )


BOUNDS = "Index out of bounds in ConfigTokenizer"
BRACKET = "Expected closing bracket ']' in ConfigTokenizer but reached end of config"
DIVISIONS = "For roundups, the divisions has to be power of 2 "


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("foo:1", ValueError, "Unrecognized key 'foo' in Accelerator allocator config."),
        (",", ValueError, "Unrecognized key ',' in Accelerator allocator config."),
        (
            "max_split_size_mb=64", ValueError,
            "Unrecognized key 'max_split_size_mb=64' in Accelerator allocator config.",
        ),
        (
            "max_split_size_mb:19", ValueError,
            "CachingAllocator option max_split_size_mb too small, must be >= 20",
        ),
        (
            "large_segment_size_mb:30,max_non_split_rounding_mb:29", ValueError,
            "CachingAllocator option max_non_split_rounding_mb too small, must be >= 30",
        ),
        (
            "large_segment_size_mb:10", ValueError,
            "CachingAllocator option large_segment_size_mb must be > 10 MB",
        ),
        ("max_split_size_mb:abc", ValueError, "stoull"),
        ("max_split_size_mb:99999999999999999999999", IndexError, "stoull"),
        ("garbage_collection_threshold:x", ValueError, "stod"),
        ("garbage_collection_threshold:1e999", IndexError, "stod"),
        ("garbage_collection_threshold:1e-400", IndexError, "stod"),
        *[
            (
                f"garbage_collection_threshold:{value}", ValueError,
                "garbage_collect_threshold is invalid, set it in (0.0, 1.0)",
            )
            for value in ("0", "1.0", "-0.5", "nan", "inf")
        ],
        (
            "per_process_memory_fraction:1.5", ValueError,
            "per_process_memory_fraction is invalid, set it in [0.0, 1.0]",
        ),
        ("roundup_power2_divisions:3", ValueError, DIVISIONS),
        ("roundup_power2_divisions:0", ValueError, DIVISIONS),
        ("roundup_power2_divisions:[256:3]", ValueError, DIVISIONS + "or 0 to disable roundup "),
        (
            "roundup_power2_divisions:[3:1]", ValueError,
            "For roundups, the intervals have to be power of 2 ",
        ),
        (
            "expandable_segments:true", ValueError,
            "Expected 'True' or 'False' at index 2 in ConfigTokenizer but got 'true'",
        ),
        (
            "max_split_size_mb:64,throw_on_cudamalloc_oom:1", ValueError,
            "Expected 'True' or 'False' at index 6 in ConfigTokenizer but got '1'",
        ),
        (
            "backend:foo", ValueError,
            "Unknown allocator backend, options are native and cudaMallocAsync",
        ),
        (
            "backend:cudaMallocAsync", RuntimeError,
            assertion(
                44,
                "Allocator backend parsed at runtime != allocator backend parsed at load time, "
                "cudaMallocAsync != native",
                "cuda/CUDAAllocatorConfig.cpp",
                "tokenizer[i] == get()->name()",
            ),
        ),
        (
            "pinned_num_register_threads:3", ValueError,
            "Number of register threads has to be power of 2, got 3",
        ),
        (
            "pinned_num_register_threads:256", ValueError,
            "Number of register threads should be less than or equal to 128, got 256",
        ),
        (
            "pinned_reserve_segment_size_mb:0", ValueError,
            "Pinned reserve segment size has to be greater than 0",
        ),
        ("max_split_size_mb", RuntimeError, assertion(124, BOUNDS)),
        ("expandable_segments:", RuntimeError, assertion(124, BOUNDS)),
        ("roundup_power2_divisions:", RuntimeError, assertion(55, BOUNDS)),
        ("roundup_power2_divisions:[256:1", RuntimeError, assertion(55, BOUNDS)),
        (
            "roundup_power2_divisions:[", RuntimeError,
            assertion(211, BRACKET, "core/AllocatorConfig.cpp", "i < tokenizer.size()"),
        ),
        ("per_process_memory_fraction:[1", RuntimeError, assertion(115, BRACKET)),
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused_in_pytorchs_words(text, kind, words):
    with pytest.raises(kind) as caught:
        AllocatorModel(MIB, conf=text)
    assert type(caught.value) is kind
    assert str(caught.value) == words
