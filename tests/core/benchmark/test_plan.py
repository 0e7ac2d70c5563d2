import math
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_studio.core.benchmark.claim import Claim, Outcome
from gpu_studio.core.benchmark.plan import Plan, Sweep, next_size, planned_s
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.benchmark.sizes import MOST_SIZES, parse_sizes, parse_sweep, powers_of_two
from gpu_studio.core.benchmark.verdict import claims_by_size, crossings_of
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import (
    SUSTAINED_LOAD_S,
    RunFinished,
    RunPhaseChanged,
    RunWorkload,
)
from gpu_studio.core.tensors import LARGEST_SIZE
from tests.fakes.run_answers import batch, finished, in_turns, started


def test_a_sustained_plan_takes_its_load_and_its_longer_timing() -> None:
    plan = Plan(
        workload="matmul", sizes=(64, 128), dtypes=("float32",), devices=("cpu",),
        settings={"sustained": True},
    )  # fmt: skip
    first, second = plan.requests()
    assert planned_s([first, second]) == pytest.approx(2 * (2 * SUSTAINED_LOAD_S + 2.0))
    run = Run(first)
    run.apply(started(first))
    assert run.progress == 0.0
    run.apply(RunPhaseChanged(run_id=first.run_id, phase="timing"))
    assert run.progress == 0.5
    run.apply(batch(first, (1.0,), spent_s=SUSTAINED_LOAD_S))
    assert run.progress == 1.0


Time = Callable[[RunWorkload], "float | None"]


def sweep(*devices: str, transfers: bool = False, sizes: list[int] | None = None) -> Sweep:
    return Sweep(
        Plan(
            workload="matmul",
            sizes=tuple(sizes or powers_of_two(64, 4096)),
            dtypes=("float32",),
            devices=devices,
            settings={"budget_s": 0.5, "transfers": transfers},
        )
    )


def play(plan: Sweep, time_s: Time) -> tuple[list[RunWorkload], list[RunFinished]]:
    """Run a plan to its end; a time of None is a run that failed."""
    asked: list[RunWorkload] = []
    results: list[RunFinished] = []
    requests = plan.requests()
    while requests:
        asked += requests
        assert len(asked) < 200
        for request in requests:
            seconds = time_s(request)
            if seconds is not None:
                result = finished(request, (seconds,) * 20)
                results.append(in_turns(result, f"{request.size} after {len(asked)}"))
        requests = plan.next_requests(results, len(asked) + 1)
    return asked, results


def powers(request: RunWorkload) -> float:
    """The card is 100 µs late and 8 times faster: the curves meet at about 485."""
    cpu_s = request.size**3 * 1e-12
    if request.device == "cpu":
        return cpu_s
    return 1e-4 + cpu_s / 8 + (request.size**2 * 1e-9 if request.transfers else 0.0)


def crossing_of(time_s: Time, transfers: bool = False) -> float:
    low, high = 1.0, 1e5
    for _ in range(60):
        middle = (low * high) ** 0.5
        request = RunWorkload(
            run_id="", workload="", device="cuda:0", size=1, dtype="", transfers=transfers
        )
        ours, theirs = (time_s(_at(request, device, middle)) or 0.0 for device in ("cuda:0", "cpu"))
        low, high = (middle, high) if ours > theirs else (low, middle)
    return low


def _at(request: RunWorkload, device: str, size: float) -> RunWorkload:
    return RunWorkload(
        run_id="", workload="", device=device, size=size, dtype="", transfers=request.transfers
    )  # type: ignore[arg-type]


def test_the_grid_comes_first_and_then_the_crossover() -> None:
    asked, results = play(sweep("cpu", "cuda:0"), powers)
    assert [request.size for request in asked[:14:2]] == powers_of_two(64, 4096)
    finer = asked[14:]
    assert {request.device for request in finer} == {"cpu", "cuda:0"}
    assert all(256 < request.size < 1024 for request in finer)
    (crossing,) = crossings_of(claims_by_size(results, "cuda:0"))
    assert crossing.low <= crossing_of(powers) <= crossing.high
    assert crossing.high < 1.15 * crossing.low
    assert crossing.size == pytest.approx(crossing_of(powers), rel=0.03)
    assert len({request.run_id for request in asked}) == len(asked)


def test_transfers_have_a_crossover_of_their_own() -> None:
    asked, results = play(sweep("cpu", "cuda:0", transfers=True), powers)
    for transfers in (False, True):
        true = crossing_of(powers, transfers)
        (crossing,) = crossings_of(claims_by_size(results, "cuda:0", with_transfers=transfers))
        assert crossing.low <= true <= crossing.high
        assert crossing.high < 1.25 * crossing.low  # ties lie between
    assert not [request for request in asked if request.device == "cpu" and request.transfers]
    runs = Counter((request.size, request.device, request.transfers) for request in asked)
    assert max(count for (_, device, _), count in runs.items() if device != "cpu") == 2


@pytest.mark.parametrize("devices", [("cpu",), ("cuda:0",), ("cuda:0", "cuda:1")])
def test_without_a_pair_the_grid_is_all(devices: tuple[str, ...]) -> None:
    asked, _ = play(sweep(*devices), powers)
    assert len(asked) == 7 * len(devices)


def test_curves_that_do_not_cross_are_not_refined() -> None:
    asked, _ = play(sweep("cpu", "cuda:0"), lambda run: 1.0 if run.device == "cpu" else 0.1)
    assert len(asked) == 14


def test_the_ends_of_a_crossing_are_measured_until_two_in_a_row_agree() -> None:
    disturbed = iter([True])

    def time_s(request: RunWorkload) -> float:
        seconds = powers(request)
        if request.device == "cpu" and request.size == 512 and next(disturbed, False):
            return 0.5 * seconds  # for once, the CPU seems to win here
        return seconds

    asked, results = play(sweep("cpu", "cuda:0"), time_s)
    (crossing,) = crossings_of(claims_by_size(results, "cuda:0"))
    assert crossing.low <= crossing_of(powers) <= crossing.high
    times = Counter(request.size for request in asked if request.device != "cpu")
    assert times[crossing.low] >= 2
    assert times[crossing.high] >= 2


@pytest.mark.parametrize(
    ("spread", "drift", "disturbed", "expected", "width"),
    [(0.05, 0.02, 0.0, 360, 1.3), (0.2, 0.0, 0.0, 320, 1.6), (0.05, 0.0, 0.05, 360, 1.3)],
)
def test_with_drawn_noise_the_true_crossing_is_enclosed_nineteen_times_in_twenty(
    spread: float, drift: float, disturbed: float, expected: int, width: float
) -> None:
    """Samples scatter, and each run as a whole is a little off, or a few are by a quarter."""
    enclosed, widths = 0, []
    for seed in range(400):
        random = Random(seed)
        true, slope = math.exp(random.uniform(5, 7.5)), random.uniform(0.5, 2.5)

        def times(
            request: RunWorkload,
            random: Random = random, true: float = true, slope: float = slope,
        ) -> tuple[float, ...]:  # fmt: skip
            middle = (request.size / true) ** slope if request.device == "cpu" else 1.0
            middle *= math.exp(random.gauss(0, drift))
            middle *= 1.25 if random.random() < disturbed else 1.0
            return tuple(middle * math.exp(random.gauss(0, spread)) for _ in range(15))

        plan, results = sweep("cpu", "cuda:0"), list[RunFinished]()
        requests, asked = plan.requests(), 0
        while requests:
            for request in requests:
                rounds_s = times(request)
                turns = f"{request.size} after {asked}"
                results.append(in_turns(finished(request, rounds_s), turns, rounds_s))
            asked += len(requests)
            requests = plan.next_requests(results, asked + 1)
        crossings = crossings_of(claims_by_size(results, "cuda:0"))
        # Where noise hides the crossing, none is told; a wrong one would be worse.
        enclosed += all(crossing.low <= true <= crossing.high for crossing in crossings)
        widths += [crossing.high / crossing.low for crossing in crossings]
    assert enclosed >= 380
    assert len(widths) >= expected
    assert sorted(widths)[200] < width


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    refusal, sizes = None, [1]
    try:
        sizes = parse_sizes(text)
    except StudioError as error:
        refusal = error
    if refusal is not None:
        assert refusal.kind is FailureKind.BAD_REQUEST
        assert str(refusal).endswith(".")
        assert len(str(refusal)) < 160
    assert 1 <= len(sizes) <= MOST_SIZES
    assert len(set(sizes)) == len(sizes)
    assert all(1 <= size <= LARGEST_SIZE for size in sizes)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("512, 512, 64", [512, 64]),
        ("64..512", [64, 128, 256, 512]),
        ("64…500", [64, 128, 256]),
        ("3, 64..256, 128, 1000", [3, 64, 128, 256, 1000]),
    ],
)
def test_sizes(text: str, sizes: list[int]) -> None:
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "at least one size"),
        ("0", "The size 0 is out of range"),
        ("big", "“big” is not a size"),
        ("512, ²", "“²” is not a size"),
        ("9999999", f"from 1 to {LARGEST_SIZE}"),
        ("9" * 5000, "99999999999999999… is out of range"),
        ("512..64", "The range 512..64 is empty"),
        ("64..", "“64..” is not a size"),
        (" ".join(str(size) for size in range(1, MOST_SIZES + 2)), f"at most {MOST_SIZES}"),
    ],
)
def test_mistakes_are_named(text: str, sentence: str) -> None:
    with pytest.raises(StudioError) as caught:
        parse_sizes(text)
    assert sentence in str(caught.value)
    assert caught.value.kind is FailureKind.BAD_REQUEST


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("64:512", [64, 128, 256, 512]),
        ("100:1000", [100, 128, 256, 512, 1000]),
        ("7:7", [7]),
        ("512, 100 64", [64, 100, 512]),
    ],
)
def test_a_sweep_is_both_ends_and_the_powers_of_two_between(text: str, sizes: list[int]) -> None:
    assert parse_sweep(text) == sizes


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("64", "64 is a single size, not a range"),
        ("64:", "“” is not a size"),
        ("64:128:256", "“128:256” is not a size"),
        ("512:64", "The range 512:64 is empty"),
        ("x" * 50, "“xxxxxxxxxxxxxxxxx…” is not a size"),
    ],
)
def test_mistakes_in_a_sweep_are_named(text: str, sentence: str) -> None:
    with pytest.raises(StudioError) as caught:
        parse_sweep(text)
    assert sentence in str(caught.value)
    assert caught.value.kind is FailureKind.BAD_REQUEST


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
