import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_studio.core.benchmark.claim import Claim, Outcome
from gpu_studio.core.benchmark.plan import next_size
from gpu_studio.core.benchmark.sizes import powers_of_two
from gpu_studio.core.benchmark.verdict import claims_by_size, crossings_of
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from tests.fakes.run_answers import finished


def claim(ratio: float, low: float, high: float) -> Claim:
    """Return the claim of rounds in turns on a quiet PC."""
    outcome = Outcome.OVERLAP
    if low > 1 and ratio >= 1.05:
        outcome = Outcome.FASTER
    elif high < 1 and ratio <= 1 / 1.05:
        outcome = Outcome.SLOWER
    return Claim(outcome, ratio, low, high)


def exact(ratios: dict[int, float]) -> dict[int, Claim]:
    return {size: claim(ratio, ratio * 0.999, ratio * 1.001) for size, ratio in ratios.items()}


def result(size: int, median_s: float, device: str, **changes: Any) -> RunFinished:
    request = RunWorkload(run_id="1", workload="matmul", device=device, size=size, dtype="float32")
    return finished(request, (median_s,), **changes)


# The time of a call is what asking takes plus what the work takes: a power of the size.
class Curves:
    """Two devices whose times are powers of the size; ``crossing`` is where they are equal."""

    def __init__(self, crossing: float, slope: float, noise: list[float]) -> None:
        self.crossing, self.slope, self._noise = crossing, slope, noise

    def claim(self, size: int) -> Claim:
        """Return a noisy ratio whose interval holds the true one."""
        true = (size / self.crossing) ** self.slope
        shift = self._noise[size % len(self._noise)]
        spread = 1 + abs(shift) + 0.01
        return claim(true * (1 + shift), true / spread, true * spread)


noises = st.lists(st.floats(-0.2, 0.2), min_size=1, max_size=7)
slopes = st.floats(0.3, 3.0) | st.floats(-3.0, -0.3)


@given(st.floats(20, 6000), slopes, noises)
def test_the_true_crossing_lies_in_the_stated_range(
    crossing: float, slope: float, noise: list[float]
) -> None:
    curves = Curves(crossing, slope, noise)
    measured = {size: curves.claim(size) for size in powers_of_two(64, 4096)}
    for _ in range(30):
        claims = dict(sorted(measured.items()))
        for found in crossings_of(claims):
            assert found.low <= curves.crossing <= found.high
            assert found.low <= found.size <= found.high
            assert found.device_wins_above == (slope > 0)
        size = next_size(claims)
        if size is None:
            break
        assert size not in measured
        assert any(found.low < size < found.high for found in crossings_of(claims))
        measured[size] = curves.claim(size)
    else:
        pytest.fail("refining does not end")


def test_curves_may_cross_twice() -> None:
    crossings = crossings_of(exact({64: 0.5, 128: 2.0, 256: 0.5}))
    assert [(found.low, found.high, found.device_wins_above) for found in crossings] == [
        (64, 128, True), (128, 256, False),
    ]  # fmt: skip


def test_the_mark_lies_nearer_to_the_nearer_tie() -> None:
    (crossing,) = crossings_of(exact({256: 0.5, 1024: 8.0}))
    assert crossing.size == pytest.approx(256 * 4**0.25)


@pytest.mark.parametrize(
    ("ratios", "size"),
    [
        ({256: 0.5, 1024: 2.0}, 512),
        ({512: 0.5, 1024: 2.0}, 720),  # 724, as a multiple of 16
        ({256: 0.5, 512: 1.0, 2048: 2.0}, 1024),  # on both sides of a tie, the wider gap first
        ({64: 0.1, 1024: 0.9, 1040: 1.1, 65536: 100.0}, None),  # outside of a crossing
        ({496: 0.9, 512: 1.0, 1024: 1.0, 1050: 1.1}, None),  # between two ties
        ({1: 0.5, 2: 2.0}, None),
        ({64: 2.0, 1024: 3.0}, None),
    ],
)
def test_the_next_size_halves_the_widest_gap_of_a_crossing(
    ratios: dict[int, float], size: int | None
) -> None:
    assert next_size(exact(ratios)) == size
    assert next_size(exact(ratios), tried={size or 0}) is None or size == 1024


@given(st.integers(1, 1 << 20), st.integers(2, 1000))
def test_a_proposed_size_lies_between_and_fits_a_card(low: int, factor: int) -> None:
    size = next_size(exact({low: 0.5, low * factor: 2.0}))
    assert size is None or low < size < low * factor
    if size is not None:
        assert size % max(1, 2 ** math.floor(math.log2(low)) // 32) == 0


def test_only_sizes_of_both_count_and_the_latest_run_of_each() -> None:
    results = [
        result(64, 9.0, "cpu"), result(64, 1.0, "cuda:0"), result(64, 2.0, "cpu"),
        result(128, 1.0, "cpu"), result(256, 1.0, "cuda:0"), result(64, 7.0, "cuda:1"),
    ]  # fmt: skip
    claims = claims_by_size(results, "cuda:0")
    assert {size: found.ratio for size, found in claims.items()} == {64: 2.0}
    assert claims_by_size(results, "cuda:2") == {}


def test_a_run_in_turns_is_compared_with_the_one_that_it_took_turns_with() -> None:
    results = [
        result(64, 4.0, "cpu", turns="a"), result(64, 1.0, "cuda:0", turns="a"),
        result(64, 9.0, "cpu", turns="b"),
    ]  # fmt: skip
    assert claims_by_size(results, "cuda:0")[64].ratio == 4.0


def test_a_wrong_result_between_two_winners_does_not_move_their_crossing() -> None:
    right = exact({256: 0.5, 1024: 2.0})
    wrong = {512: Claim(Outcome.WRONG, 50.0, 49.9, 50.1)}
    (crossing,) = crossings_of(dict(sorted((right | wrong).items())))
    assert crossing == crossings_of(right)[0]
    assert crossing.size == pytest.approx(512)
