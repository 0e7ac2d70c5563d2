"""What the allocator's model refuses, and in which words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_studio.core.memory.allocator.model import AllocatorModel

MIB = 1 << 20


def model_of() -> AllocatorModel:
    return AllocatorModel(1996 * MIB)


def test_a_block_is_freed_once():
    model = model_of()
    saved, block = model.allocate(1000), model.allocate(1000)
    model.free(block)
    with pytest.raises(ValueError, match="is not in use"):
        model.free(block)
    assert model.stats()["allocated_bytes.all.current"] == saved.size_bytes == 1024


@pytest.mark.parametrize("nbytes", [-1, -(1 << 60)])
def test_a_negative_size_is_refused(nbytes):
    with pytest.raises(ValueError, match="cannot be allocated"):
        model_of().allocate(nbytes)


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_a_fraction_beyond_its_range_is_refused(fraction):
    with pytest.raises(ValueError, match=r"Invalid fraction value: .*\. Allowed range: 0~1"):
        AllocatorModel(MIB, fraction=fraction)


@pytest.mark.parametrize(("capacity_bytes", "other_bytes"), [(0, 0), (-1, 0), (MIB, -1)])
def test_an_impossible_card_is_refused(capacity_bytes, other_bytes):
    with pytest.raises(ValueError, match="no card has"):
        AllocatorModel(capacity_bytes, other_bytes)


NO_SIZES = [2.5, 512.0, float("nan"), "512", None, [512]]


@pytest.mark.parametrize("size", NO_SIZES, ids=repr)
def test_what_is_no_whole_number_of_bytes_is_refused_by_name(size: Any):
    model = model_of()
    for ask in (
        lambda: model.allocate(size),
        lambda: AllocatorModel(size),
        lambda: AllocatorModel(MIB, size),
    ):
        with pytest.raises(TypeError) as caught:
            ask()
        assert str(caught.value) == f"a size is a whole number of bytes, an int, not {size!r}"
    assert model.stats()["allocation.all.allocated"] == 0


def test_numpys_whole_numbers_are_sizes():
    block = AllocatorModel(np.int64(100 * MIB)).allocate(np.uint32(700))
    assert (block.size_bytes, type(block.requested_bytes)) == (1024, int)


@pytest.mark.parametrize("fraction", ["0.5", None, 1j])
def test_a_fraction_that_is_no_number_is_refused_in_pytorchs_words(fraction: Any):
    for ask in (
        lambda: AllocatorModel(MIB, fraction=fraction),
        lambda: model_of().set_memory_fraction(fraction),
    ):
        with pytest.raises(TypeError, match="Invalid type for fraction argument"):
            ask()


@pytest.mark.parametrize("conf", [None, b"max_split_size_mb:64", 64])
def test_options_that_are_no_text_are_refused(conf: Any):
    with pytest.raises(TypeError, match="conf is a text such as"):
        AllocatorModel(MIB, conf=conf)


@pytest.mark.parametrize("block", [None, 512, "block"])
def test_what_is_no_block_cannot_be_freed(block: Any):
    with pytest.raises(TypeError, match="is not a block"):
        model_of().free(block)


@pytest.mark.parametrize("nbytes", [0, 512, 30 * MIB])
def test_a_block_goes_back_to_the_allocator_that_it_is_from(nbytes: int):
    model, other = model_of(), model_of()
    theirs = other.allocate(nbytes)
    with pytest.raises(ValueError, match="is another allocator's"):
        model.free(theirs)
    assert model.stats()["allocation.all.freed"] == 0
    other.free(theirs)
