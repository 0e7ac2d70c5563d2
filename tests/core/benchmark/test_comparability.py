from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gpu_studio.core.benchmark.comparability import comparability_of
from gpu_studio.core.messages.race_messages import RaceParameters
from tests.core.benchmark.kept_runs import finished_run
from tests.fakes.run_answers import changed

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import RunFinished


def result(device: str = "cpu", **changes: Any) -> RunFinished:
    found = finished_run(512, device).result
    assert found is not None
    usual: dict[str, Any] = {"torch_version": "2.13.0+cpu"}
    return changed(found, **(usual | changes))


def test_the_same_work_in_the_same_way_is_comparable_without_a_word() -> None:
    answer = comparability_of(result(), result())
    assert answer.is_comparable
    assert (answer.reasons, answer.notes, answer.sentence) == ((), (), "")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"workload": "linear"}, "it is linear, not matmul"),
        ({"size": 1024}, "its size is 1024 × 1024, not 512 × 512"),
        ({"dtype": "float16"}, "it computed in float16, not in float32"),
        ({"options": {"amp": "on"}}, "its option amp is “on”, not unknown"),
        ({"race": RaceParameters()}, "it drew another picture"),
        ({"cache": "cold"}, "it was measured with a cold cache, not with a hot one"),
        ({"sustained": True}, "it was a sustained run, not a short one"),
        ({"torch_version": "3.0.0"}, "it used PyTorch 3.0.0, not 2.13.0+cpu"),
    ],
)
def test_another_work_or_way_is_refused_with_its_reason(
    changes: dict[str, Any], reason: str
) -> None:
    answer = comparability_of(result(), result(**changes))
    assert not answer.is_comparable
    assert reason in answer.sentence.replace("\u202f", " ")
    assert len(answer.reasons) == 1
    assert not comparability_of(result(**changes), result()).is_comparable


def test_cards_that_compute_one_precision_in_another_way_are_not_comparable() -> None:
    plain = result("cuda:0", computed_in="float32")
    in_tf32 = result("cuda:0", computed_in="tf32")
    answer = comparability_of(plain, in_tf32)
    assert len(answer.reasons) == 1
    assert "TF32" in answer.reasons[0]
    assert "float32" in answer.reasons[0]
    # The CPU has no other way: it is what the cards are compared with.
    assert comparability_of(result(computed_in="float32"), in_tf32).is_comparable


def test_the_size_of_another_workload_means_something_else() -> None:
    assert len(comparability_of(result(), result(workload="linear", size=64)).reasons) == 1


def test_several_reasons_are_all_reported() -> None:
    answer = comparability_of(result(), result(size=64, dtype="float16", cache="cold"))
    assert len(answer.reasons) == 3
    assert answer.sentence.count(";") == 2


def test_transfers_matter_between_cards_alone() -> None:
    with_transfers = result("cuda:0", transfers=True)
    assert not comparability_of(result("cuda:0"), with_transfers).is_comparable
    assert "with copies, not without" in comparability_of(result("cuda:0"), with_transfers).sentence
    assert comparability_of(result(), with_transfers).is_comparable


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"torch_version": "2.7.1"}, "PyTorch 2.7.1"),
        ({"torch_version": ""}, "its PyTorch version is unknown"),
        ({"device_name": "Celeron"}, "another device, Celeron"),
        ({"cpu_threads": 1}, "1 CPU thread"),
        ({"verified": False}, "its result was wrong"),
        ({"recording": "a friend's"}, "a recording: a friend's"),
    ],
)
def test_what_is_comparable_with_care_comes_with_a_note(changes: dict[str, Any], note: str) -> None:
    answer = comparability_of(result(), result(**changes))
    assert answer.is_comparable
    assert answer.notes == (note,)
    assert answer.sentence == f"Note: {note}."


def test_a_patch_of_pytorch_stays_comparable() -> None:
    assert comparability_of(result(), result(torch_version="2.13.1+cu130")).sentence == ""


def test_a_card_beside_the_cpu_is_what_this_program_is_for() -> None:
    assert comparability_of(result(), result("cuda:0")).is_comparable


def test_races_of_one_picture_are_comparable_and_of_two_are_not() -> None:
    mine, other = RaceParameters(threads=1, photo="a" * 64), RaceParameters(photo="b" * 64)
    with_all = msgspec.structs.replace(mine, threads=None)
    assert comparability_of(result(race=mine), result(race=with_all)).is_comparable
    assert not comparability_of(result(race=mine), result(race=other)).is_comparable
