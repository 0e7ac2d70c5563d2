from __future__ import annotations

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.tensors import DTYPES, ITEM_BYTES, LARGEST_SIZE, check_size, parse_dtypes


def test_dtypes() -> None:
    assert parse_dtypes("float32,float16 float32") == ["float32", "float16"]
    assert set(ITEM_BYTES) == set(DTYPES)
    with pytest.raises(StudioError, match="“int8” is not a supported dtype"):
        parse_dtypes("float32,int8")
    with pytest.raises(StudioError, match="Choose a dtype"):
        parse_dtypes(" ")


@pytest.mark.parametrize("size", [1, LARGEST_SIZE])
def test_a_size_within_the_range(size: int) -> None:
    check_size(size)


@pytest.mark.parametrize("size", [-1, 0, LARGEST_SIZE + 1])
def test_a_size_out_of_range_is_named(size: int) -> None:
    with pytest.raises(StudioError, match=f"The size {size} is out of range. Use 1 to 1048576"):
        check_size(size)
