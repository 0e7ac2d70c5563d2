import math
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_studio.core.benchmark.plan import Plan, Sweep, planned_s
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


def test_two_cards_are_each_compared_with_the_cpu() -> None:
    def time_s(request: RunWorkload) -> float:
        """Return times of two cards that cross the CPU's curve between the same sizes."""
        seconds = powers(request)
        return seconds * 1.15 if request.device == "cuda:1" else seconds

    asked, results = play(sweep("cpu", "cuda:0", "cuda:1"), time_s)
    runs = Counter((request.size, request.device) for request in asked)
    assert max(count for (_, device), count in runs.items() if device != "cpu") == 2
    marks = {
        device: crossings_of(claims_by_size(results, device))[0] for device in ("cuda:0", "cuda:1")
    }
    assert marks["cuda:0"].size < marks["cuda:1"].size
    assert all(mark.high < 1.25 * mark.low for mark in marks.values())


@pytest.mark.parametrize("devices", [("cpu",), ("cuda:0",), ("cuda:0", "cuda:1")])
def test_without_a_pair_the_grid_is_all(devices: tuple[str, ...]) -> None:
    asked, _ = play(sweep(*devices), powers)
    assert len(asked) == 7 * len(devices)


def test_curves_that_do_not_cross_are_not_refined() -> None:
    asked, _ = play(sweep("cpu", "cuda:0"), lambda run: 1.0 if run.device == "cpu" else 0.1)
    assert len(asked) == 14


def test_a_size_that_does_not_fit_is_not_asked_again() -> None:
    def time_s(request: RunWorkload) -> float | None:
        too_large = request.size not in powers_of_two(64, 4096) and request.device != "cpu"
        return None if too_large else powers(request)

    asked, _ = play(sweep("cpu", "cuda:0"), time_s)
    too_large = [request.size for request in asked if request.size not in powers_of_two(64, 4096)]
    assert 2 <= len(too_large) == 2 * len(set(too_large)) < 8  # on the CPU and on the card


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


def test_noise_cannot_keep_a_sweep_going() -> None:
    def time_s(request: RunWorkload) -> float:
        """Return times that cross between any two neighbours of the grid."""
        if request.device == "cpu":
            return 1.0
        return 0.5 if request.size.bit_length() % 2 else 2.0

    sizes = powers_of_two(1 << 4, 1 << 14)
    asked, _ = play(sweep("cpu", "cuda:0", sizes=sizes), time_s)
    assert len(asked) <= 2 * len(sizes) + 2 * len(sizes) * 4


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
        ("512", [512]),
        ("512, 512, 64", [512, 64]),
        ("64..512", [64, 128, 256, 512]),
        ("64…500", [64, 128, 256]),
        ("100..100", [100]),
        ("3, 64..256, 128, 1000", [3, 64, 128, 256, 1000]),
    ],
)
def test_sizes(text: str, sizes: list[int]) -> None:
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "at least one size"),
        (" , ;", "at least one size"),
        ("0", "The size 0 is out of range"),
        ("-512", "“-512” is not a size"),
        ("12.5", "“12.5” is not a size"),
        ("big", "“big” is not a size"),
        ("512, ²", "“²” is not a size"),
        ("9999999", f"from 1 to {LARGEST_SIZE}"),
        ("9" * 5000, "99999999999999999… is out of range"),
        ("512..64", "The range 512..64 is empty"),
        ("..64", "“..64” is not a size"),
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
        (" 1 : 3 ", [1, 2, 3]),
        ("64:65", [64, 65]),
        ("7:7", [7]),
        ("512, 100 64", [64, 100, 512]),
        ("64..256", [64, 128, 256]),
    ],
)
def test_a_sweep_is_both_ends_and_the_powers_of_two_between(text: str, sizes: list[int]) -> None:
    assert parse_sweep(text) == sizes


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("64", "64 is a single size, not a range"),
        ("64,64", "64 is a single size, not a range"),
        ("", "Enter at least one size"),
        ("64:", "“” is not a size"),
        (":64", "“” is not a size"),
        ("64:128:256", "“128:256” is not a size"),
        ("512:64", "The range 512:64 is empty"),
        ("0:64", "The size 0 is out of range"),
        ("x" * 50, "“xxxxxxxxxxxxxxxxx…” is not a size"),
    ],
)
def test_mistakes_in_a_sweep_are_named(text: str, sentence: str) -> None:
    with pytest.raises(StudioError) as caught:
        parse_sweep(text)
    assert sentence in str(caught.value)
    assert caught.value.kind is FailureKind.BAD_REQUEST
