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


def test_each_value_has_its_time_or_is_counted() -> None:
    series = Series(capacity=1)
    series.append([5.0, 6.0])
    series.append([7.0], [2.5])
    assert series.times.tolist() == [1.0, 2.0, 2.5]


MOST = 200


def series_of(values, *, steps=1):
    series = Series()
    for part in np.array_split(np.asarray(values, float), steps):
        series.append(part)
        series.pick(0, len(series), MOST)  # so that the pyramid grows step by step
    return series


def noise(count):
    return np.random.default_rng(1).normal(10, 1, count)


def test_few_points_are_all_drawn():
    series = series_of(noise(MOST))
    assert series.pick(0, MOST, MOST).tolist() == list(range(MOST))
    assert series.pick(20, 30, MOST).tolist() == list(range(20, 30))


def test_nothing_is_in_sight_beside_the_series():
    series = series_of(noise(50))
    assert series.pick(-20, 0, MOST).tolist() == []
    assert series.pick(60, 90, MOST).tolist() == []
    assert series.pick(40, 90, MOST).tolist() == list(range(40, 50))
    assert Series().pick(0, 10, MOST).tolist() == []


@pytest.mark.parametrize("steps", [1, 7, 5000])
def test_every_spike_is_drawn_at_every_zoom(steps):
    values = noise(300_000)
    spikes = [0, 63, 64, 511, 512, 77_777, 123_456, 262_143, 262_144, 299_999]
    values[spikes] = 50.0 + np.arange(len(spikes))
    values[[5, 200_001]] = -50.0
    series = series_of(values, steps=steps)
    for first, last in ((0, 300_000), (1, 299_999), (60_000, 299_990), (77_000, 125_000)):
        picks = series.pick(first, last, MOST)
        seen = {spike for spike in (*spikes, 5, 200_001) if first <= spike < last}
        # In one stretch only the highest spike of several has to be there.
        stretch = (last - first) / (MOST / 2)
        alone = {s for s in seen if all(o == s or abs(o - s) > 2 * stretch + 1024 for o in seen)}
        assert alone <= set(picks.tolist())
        assert len(picks) <= 2.2 * MOST


@given(
    count=st.integers(1, 40_000),
    first=st.integers(0, 40_000),
    length=st.integers(1, 40_000),
    most=st.integers(4, 600),
)
def test_the_picture_reaches_as_high_and_as_low_as_the_samples(count, first, length, most):
    values = noise(40_000)[:count]
    series = series_of(values)
    last = min(first + length, count)
    picks = series.pick(first, last, most)
    if first >= last:
        assert len(picks) == 0
        return
    assert (np.diff(picks) >= 0).all()
    assert first <= picks[0]
    assert picks[-1] < last
    assert values[picks].max() == values[first:last].max()
    assert values[picks].min() == values[first:last].min()
