from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_studio.core.series import Series


@given(st.lists(st.lists(st.floats(allow_nan=False), max_size=50), max_size=20))
def test_everything_appended_is_there_in_order(batches: list[list[float]]) -> None:
    series = Series(capacity=4)
    for batch in batches:
        series.append(batch)
    flat = [value for batch in batches for value in batch]
    assert len(series) == len(flat)
    assert series.values.tolist() == flat
    assert series.values.dtype == np.float64


def test_values_kept_stay_as_they_were() -> None:
    series = Series(capacity=2)
    series.append([1.0, 2.0])
    saved = series.values
    series.append([3.0] * 100)
    assert saved.tolist() == [1.0, 2.0]
    assert len(series.values) == 102


def test_the_values_are_read_only() -> None:
    series = Series()
    series.append([1.0])
    with pytest.raises(ValueError, match="read-only"):
        series.values[0] = 2.0
    series.append([2.0])
    assert series.values.tolist() == [1.0, 2.0]
