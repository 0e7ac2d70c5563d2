from typing import Any

import pytest

from gpu_studio.core.benchmark.verdict import SizeResults, results_at_size
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


def at_size(results: list[RunFinished], chosen: RunFinished | None = None) -> SizeResults:
    found = results_at_size(results, chosen)
    assert found is not None
    return found


def claimed(results: list[RunFinished], chosen: RunFinished | None = None) -> str:
    claim = at_size(results, chosen).claim
    return claim.words.replace("\u202f", " ") if claim is not None else ""


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(3.1, "3.1 × faster"), (0.25, "4.0 × slower"), (1.0, "equally fast")],
)
def test_the_ratio_of_one_size_in_large_type(ratio: float, words: str) -> None:
    assert claimed(pair(512, ratio)) == words


def test_a_doubtful_lead_is_rounded_and_one_that_may_be_none_is_not_claimed() -> None:
    few = {"count": 3}
    assert claimed(pair(512, 21.7, **few)) == "about 20 × faster"
    assert claimed(pair(512, 1.7, **few)) == "cannot be told"


def test_one_device_has_no_ratio() -> None:
    alone = at_size([result(512, 1.0)])
    assert (alone.claim, alone.card, len(alone.results)) == (None, None, 1)


def test_a_sweep_shows_the_largest_size_that_both_have() -> None:
    results = [*pair(64, 0.5), *pair(512, 3.0), result(1024, 1.0)]
    assert at_size(results).results[0].size == 512
    assert claimed(results) == "3.0 × faster"


def test_the_chosen_result_decides_the_size_and_the_card() -> None:
    slow = pair(64, 0.5)
    results = [*slow, *pair(512, 3.0), result(512, 0.1, "cuda:1")]
    assert claimed(results, slow[1]) == "2.0 × slower"
    assert claimed(results, slow[0]) == "2.0 × slower"
    assert claimed(results) == "10.0 × faster"  # the best of two cards
    assert claimed(results, results[3]) == "3.0 × faster"


def test_a_wrong_result_at_any_size_is_named() -> None:
    results = [*pair(64, 0.5), *pair(512, 3.0, verified=False)]
    for chosen in (None, results[1]):
        assert [one.size for one in at_size(results, chosen).wrong] == [512]


def test_compute_only_comes_before_transfers_unless_they_are_chosen() -> None:
    results = [*pair(512, 3.0), result(512, 2.0, "cuda:0", transfers=True)]
    assert claimed(results) == "3.0 × faster"
    assert claimed(results, results[2]) == "2.0 × slower"
    assert [one.transfers for one in at_size(results).results] == [False, False, True]


def test_the_cpu_stands_first_and_the_cards_by_their_number() -> None:
    results = [result(512, 1.0, device) for device in ("cuda:10", "cuda:2", "cpu")]
    assert [one.device for one in at_size(results).results] == ["cpu", "cuda:2", "cuda:10"]


def test_other_work_is_not_compared() -> None:
    other = [result(512, 1.0, options={"amp": "float16"}), result(512, 0.1, "cuda:0")]
    assert claimed(other) == ""
