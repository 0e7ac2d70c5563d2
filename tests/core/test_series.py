import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_studio.core.series import Series, pick


@given(st.lists(st.lists(st.floats(allow_nan=False), max_size=50), max_size=20))
def test_everything_appended_is_there_in_order(batches: list[list[float]]) -> None:
    series = Series(capacity=4)
    for batch in batches:
        series.append(batch)
    flat = [value for batch in batches for value in batch]
    assert len(series) == len(flat)
    assert series.values.tolist() == flat
    assert series.values.dtype == np.float64


def test_each_value_has_its_time_or_is_counted() -> None:
    series = Series(capacity=1)
    series.append([5.0, 6.0])
    series.append([7.0], [2.5])
    assert series.times.tolist() == [1.0, 2.0, 2.5]


MOST = 200


def noise(count):
    return np.random.default_rng(1).normal(10, 1, count)


def test_few_points_are_all_drawn():
    values = noise(50)
    for first, last, drawn in ((0, 50, (0, 50)), (20, 30, (20, 30)), (40, 90, (40, 50))):
        assert pick(values, first, last, MOST).tolist() == list(range(*drawn))
    for first, last in ((-20, 0), (60, 90)):
        assert pick(values, first, last, MOST).tolist() == []


@given(
    count=st.integers(1, 40_000),
    first=st.integers(0, 40_000),
    length=st.integers(1, 40_000),
    most=st.integers(4, 600),
)
def test_the_picture_reaches_as_high_and_as_low_as_the_samples(count, first, length, most):
    values = noise(40_000)[:count]
    last = min(first + length, count)
    picks = pick(values, first, last, most)
    if first >= last:
        assert len(picks) == 0
        return
    assert (np.diff(picks) >= 0).all()
    assert first <= picks[0]
    assert picks[-1] < last
    assert values[picks].max() == values[first:last].max()
    assert values[picks].min() == values[first:last].min()
    assert len(picks) <= 1.5 * most + 2
