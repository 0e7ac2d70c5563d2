"""The results at one size, and what may be claimed of them."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_studio.core.benchmark.standing import Standing, standing_of
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from tests.fakes.run_answers import finished


def result(size: int, median_s: float, device: str = "cpu", **changes: Any) -> RunFinished:
    transfers = changes.pop("transfers", False)
    request = RunWorkload(
        run_id="1", workload="elementwise", device=device, size=size, dtype="float32",
        transfers=transfers,
    )  # fmt: skip
    return finished(request, (median_s,) * changes.pop("count", 20), **changes)


def pair(size: int, ratio: float, device: str = "cuda:0", **changes: Any) -> list[RunFinished]:
    return [result(size, 1.0), result(size, 1.0 / ratio, device, **changes)]


def standing(results: list[RunFinished], chosen: RunFinished | None = None) -> Standing:
    found = standing_of(results, chosen)
    assert found is not None
    return found


def claimed(results: list[RunFinished], chosen: RunFinished | None = None) -> str:
    return standing(results, chosen).ratio_text.replace("\u202f", " ")


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(3.1, "3.1 × faster"), (0.25, "CPU 4.0 × faster"), (1.0, "Equally fast")],
)
def test_the_ratio_of_one_size_in_large_type(ratio: float, words: str) -> None:
    assert claimed(pair(512, ratio)) == words


def test_a_doubtful_lead_is_rounded_and_one_that_may_be_none_is_not_claimed() -> None:
    few = {"count": 3}
    assert claimed(pair(512, 21.7, **few)) == "About 20 × faster"
    assert claimed(pair(512, 1.7, **few)) == "Cannot be told"


def test_one_device_has_no_ratio() -> None:
    alone = standing([result(512, 1.0)])
    assert (alone.ratio_text, alone.claim, len(alone.results)) == ("", None, 1)


def test_without_results_there_is_no_standing() -> None:
    assert standing_of([]) is None


def test_a_sweep_shows_the_largest_size_that_both_have() -> None:
    results = [*pair(64, 0.5), *pair(512, 3.0), result(1024, 1.0)]
    assert standing(results).results[0].size == 512
    assert claimed(results) == "3.0 × faster"


def test_the_chosen_result_decides_the_size_and_the_card() -> None:
    slow = pair(64, 0.5)
    results = [*slow, *pair(512, 3.0), result(512, 0.1, "cuda:1")]
    assert claimed(results, slow[1]) == "CPU 2.0 × faster"
    assert claimed(results, slow[0]) == "CPU 2.0 × faster"
    assert claimed(results) == "10.0 × faster"  # the best of two cards
    assert claimed(results, results[3]) == "3.0 × faster"


def test_a_wrong_result_takes_the_ratio_away_at_every_size() -> None:
    results = [*pair(64, 0.5), *pair(512, 3.0, verified=False)]
    for chosen in (None, results[1]):
        found = standing(results, chosen)
        assert found.ratio_text == "Wrong results"
        assert "512" in found.wrong_text
        assert "64" not in found.wrong_text


def test_compute_only_comes_before_transfers_unless_they_are_chosen() -> None:
    results = [*pair(512, 3.0), result(512, 2.0, "cuda:0", transfers=True)]
    assert claimed(results) == "3.0 × faster"
    assert claimed(results, results[2]) == "CPU 2.0 × faster"
    assert [one.transfers for one in standing(results).results] == [False, False, True]


def test_the_cpu_stands_first_and_the_cards_by_their_number() -> None:
    results = [result(512, 1.0, device) for device in ("cuda:10", "cuda:2", "cpu")]
    assert [one.device for one in standing(results).results] == ["cpu", "cuda:2", "cuda:10"]


def test_the_first_doubt_is_named_and_good_results_have_their_spread() -> None:
    few = standing(pair(512, 3.0, count=3, other_processes=True))
    assert few.doubt == "Few samples"
    good = standing(pair(512, 3.0, iqr_s=0.01))
    assert good.doubt == ""
    assert good.checked_text.replace("\u202f", " ") == "Verified · spread 3.0 %"


def test_other_work_is_not_compared() -> None:
    other = [result(512, 1.0, options={"amp": "float16"}), result(512, 0.1, "cuda:0")]
    assert claimed(other) == ""
