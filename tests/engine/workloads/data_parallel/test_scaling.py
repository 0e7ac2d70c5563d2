from typing import Any

import pytest

from gpu_studio.engine.workloads.scaling import ROUNDS, Scaling, rounds_of

STEADY = (0.1,) * ROUNDS


def shared(*shared_s: float, alone_s: tuple[float, ...] = STEADY, **changes: Any) -> Scaling:
    """Return a comparison of one with two, by the seconds of two in each round."""
    rounds_s = {1: alone_s, 2: shared_s * ROUNDS if len(shared_s) == 1 else shared_s}
    return Scaling(rounds_s=rounds_s, size=64, **{"word": "process", **changes})


def test_the_curve_is_that_of_the_median_steps():
    noisy_s = (0.05,) * 6 + (0.9,) * 3
    assert shared(*noisy_s).curves == {
        "sharers": (1.0, 2.0), "samples a second": (pytest.approx(640), pytest.approx(1280)),
    }  # fmt: skip


def test_a_gain_is_reported_with_its_interval():
    (gained,) = shared(0.0625, word="card").sentences()
    sentence = gained.replace("\u202f", " ")
    assert "2 cards" in sentence
    for fact in ("1.02 ksamples/s", "640 samples/s", "1.6 × as many", "1.6 × to 1.6 ×"):
        assert fact in sentence
    assert shared(0.0625).doubts() == {}


def test_the_interval_is_that_of_the_rounds_and_not_of_drifting_steps():
    slower_s = tuple(0.1 * (1 + number) for number in range(ROUNDS))
    half_s = tuple(seconds / 2 for seconds in slower_s)
    gain = shared(*half_s, alone_s=slower_s).gain
    assert (gain.low, gain.median, gain.high) == pytest.approx((2.0, 2.0, 2.0))


def test_a_loss_is_reported_with_what_would_help():
    gained, hint = shared(0.11).sentences()
    assert gained.startswith("2 processes ")
    assert "slower here" in hint
    assert "64" in hint


def test_what_cannot_be_reported_is_not():
    around_one_s = (0.09, 0.09, 0.09, 0.095, 0.1, 0.11, 0.11, 0.11, 0.11)
    _, unsure = shared(*around_one_s).sentences()
    assert unsure.startswith("Too close to call")
    assert shared(*around_one_s).doubts() == {}


@pytest.mark.parametrize(
    ("scaling", "reason"),
    [
        (shared(0.02), "cannot be more than 2 times as fast"),
        (shared(*[0.05, 0.1, 0.2] * 3), "changed from round to round"),
        (shared(0.06, was_disturbed=True), "other programs kept the CPU busy"),
    ],
)
def test_an_implausible_gain_is_doubtful(scaling: Scaling, reason: str):
    (doubt,) = scaling.doubts().values()
    assert reason in doubt


def test_one_alone_has_nothing_to_gain():
    alone = Scaling(rounds_s={1: STEADY}, size=64, word="card", was_disturbed=True)
    assert (alone.gain, alone.sentences(), alone.doubts()) == (None, (), {})


@pytest.mark.parametrize(("step_s", "calls"), [(0.001, 2), (0.2, 1)])
def test_the_order_turns_and_a_short_step_is_taken_twice(step_s: float, calls: int):
    taken: list[int] = []

    def step_of(sharers: int) -> Any:
        def step() -> float:
            taken.append(sharers)
            return step_s * len(taken)

        return step

    rounds_s = rounds_of({1: step_of(1), 2: step_of(2), 4: step_of(4)})
    up = [sharers for sharers in (1, 2, 4) for _ in range(calls)]
    assert taken[: 2 * len(up)] == up + up[::-1]
    assert [len(seconds) for seconds in rounds_s.values()] == [ROUNDS] * 3
    assert rounds_s[1][0] == pytest.approx(step_s * calls)
