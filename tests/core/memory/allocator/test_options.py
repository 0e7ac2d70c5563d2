import re

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
        ("max_split_size_mb:64,max_split_size_mb:32", "max_split_bytes", 32 * MIB),
        ("max_non_split_rounding_mb:40", "max_non_split_rounding_bytes", 40 * MIB),
        ("max_split_size_mb:30,large_segment_size_mb:30", "max_split_bytes", 30 * MIB),
        ("large_segment_size_mb:11", "large_segment_bytes", 11 * MIB),
        ("large_segment_size_mb:11", "max_non_split_rounding_bytes", 11 * MIB),
        ("garbage_collection_threshold:0.8", "garbage_collection_threshold", 0.8),
        ("per_process_memory_fraction:0", "per_process_memory_fraction", 0.0),
        ("expandable_segments:True", "expandable_segments", True),
        ("expandable_segments:False", "expandable_segments", False),
        ("throw_on_cudamalloc_oom:True", "throw_on_cudamalloc_oom", True),
        ("release_lock_on_hipmalloc:True", "release_lock_on_cudamalloc", True),
        ("pinned_num_register_threads:128", "pinned_num_register_threads", 128),
        ("pinned_max_cached_size_mb:3", "pinned_max_cached_size_mb", 3),
        ("roundup_power2_divisions:8", "roundup_power2_divisions", (8,) * 16),
        ("roundup_power2_divisions:[256:1,512:2,>:8]", "roundup_power2_divisions",
         (1,) * 9 + (2,) + (8,) * 6),
        ("roundup_power2_divisions:[>:4]", "roundup_power2_divisions", (0,) + (4,) * 15),
        ("roundup_power2_divisions:[]", "roundup_power2_divisions", (0,) * 16),
    ],
)  # fmt: skip
def test_an_option_is_read(text, option, value):
    assert getattr(parse_configuration(text), option) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("foo:1", "foo"),
        (",", ","),
        ("max_split_size_mb=64", "max_split_size_mb=64"),
        ("expandable_segments:", "expandable_segments:"),
        *[
            (f"max_split_size_mb:{value}", f"max_split_size_mb:{value}")
            for value in ("19", "64x", "-1", "1e3", "True", "9" * 99)
        ],
        ("large_segment_size_mb:30,max_non_split_rounding_mb:29", "must be 30 or more"),
        ("large_segment_size_mb:10", "large_segment_size_mb:10"),
        *[
            (f"garbage_collection_threshold:{value}", f"garbage_collection_threshold:{value}")
            for value in ("0", "1.0", "nan", "x", "1e999", "True")
        ],
        ("per_process_memory_fraction:1.5", "per_process_memory_fraction:1.5"),
        ("per_process_memory_fraction:[1", "per_process_memory_fraction:[1"),
        ("expandable_segments:true", "expandable_segments:true"),
        ("max_split_size_mb:64,throw_on_cudamalloc_oom:1", "throw_on_cudamalloc_oom:1"),
        ("backend:cudaMallocAsync", "backend:cudaMallocAsync"),
        ("pinned_num_register_threads:3", "pinned_num_register_threads:3"),
        *[
            (f"roundup_power2_divisions:{value}", "power of 2")
            for value in ("3", "0", "-4", "[256:3]", "[3:1]", "[x:1]", "[4]", "[:]", "[>]")
        ],
        ("roundup_power2_divisions:[256:1", "roundup_power2_divisions:[256:1"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(text, words):
    with pytest.raises(ValueError, match=re.escape(words[:60])) as caught:
        AllocatorModel(MIB, conf=text)
    assert len(str(caught.value)) < 250
