from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpu_studio.ui.plots.live_plot import SteadyRange

ENDS = st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).map(sorted)


@given(st.lists(ENDS, min_size=1, max_size=30))
@example([[5e-324, 5e-324]])
@example([[1e6, 1e6 + 1e-9]])
def test_the_data_are_always_inside(followed: list[list[float]]) -> None:
    steady = SteadyRange(0.1, 0.25)
    for lowest, highest in followed:
        steady.widen(lowest, highest)
        low, high = steady.ends
        assert low <= lowest <= highest <= high
        assert low < high


def test_growing_data_move_it_seldom() -> None:
    steady = SteadyRange(0.0, 0.25)
    moves = [count for count in range(2, 10_000) if steady.widen(1, count)]
    assert 10 < len(moves) < 60
    assert not steady.widen(1, moves[-1])


def test_data_that_became_few_make_it_narrow_again() -> None:
    steady = SteadyRange(0.0, 0.25)
    assert steady.widen(0, 1000)
    assert not steady.widen(0, 700)
    assert steady.widen(0, 100)
    assert steady.ends == (0, 125)


def test_one_value_has_a_range_around_it() -> None:
    steady = SteadyRange(0.1, 0.1)
    assert steady.ends == (0.0, 1.0)
    assert steady.widen(2.0, 2.0)
    assert steady.ends == pytest.approx((1.8, 2.2))
    assert not steady.widen(2.0, 2.0)
    steady = SteadyRange(0.1, 0.1)
    steady.widen(0.0, 0.0)
    assert steady.ends == pytest.approx((-0.1, 0.1))
