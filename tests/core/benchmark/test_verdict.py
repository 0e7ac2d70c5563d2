from typing import Any

import msgspec
import pytest

from gpu_studio.core.benchmark.verdict import compared_cards, results_at_size, speed_up, verdict_of
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from gpu_studio.core.notice import Tone
from tests.fakes.run_answers import changed, finished, in_turns


def result(
    size: int, median_s: float, device: str = "cpu", dtype: str = "float32", **changes: Any
) -> RunFinished:
    request = RunWorkload(run_id="1", workload="elementwise", device=device, size=size, dtype=dtype)
    return finished(request, (median_s,) * 20, **changes)


def pairs(ratios: dict[int, float], device: str = "cuda:0") -> list[RunFinished]:
    """Return results in which the device is so many times faster than the CPU."""
    return [
        made
        for size, ratio in ratios.items()
        for made in map(in_turns, (result(size, 1.0), result(size, 1.0 / ratio, device)))
    ]


def text_of(results: list[RunFinished]) -> str:
    return verdict_of(results).sentence.replace("\u202f", " ")


def is_doubted(results: list[RunFinished]) -> bool:
    return verdict_of(results).tone is Tone.AMBER


HEAD = "The GeForce GT 1030 against the CPU (elementwise, float32): "


def answer(ratios: dict[int, float]) -> str:
    return text_of(pairs(ratios)).removeprefix(HEAD)


def test_it_says_how_much_faster_the_winner_is_at_which_sizes() -> None:
    assert answer({64: 1 / 9, 128: 0.5, 256: 1.0, 512: 10.0, 1024: 40.0, 4096: 100.0}) == (
        "100 × faster at 4096 × 4096; up to 40.0 × faster from 512 × 512 to 1024 × 1024; equally "
        "fast at 256 × 256; up to 9.0 × slower from 64 × 64 to 128 × 128. It overtakes the CPU at "
        "about 176 × 176 (measured: between 128 × 128 and 512 × 512)."
    )
    assert answer({256: 2.0}) == "2.0 × faster at 256 × 256."
    assert answer({256: 3.0, 512: 0.5, 1024: 0.25}).startswith(
        "4.0 × slower at 1024 × 1024; 2.0 × slower at 512 × 512; 3.0 × faster at 256 × 256. It "
        "falls behind the CPU at about "
    )
    assert answer({256: 1.04, 512: 0.97}) == "equally fast from 256 × 256 to 512 × 512."


def test_a_size_that_cannot_be_told_is_named_with_its_reason_and_the_fix() -> None:
    unsure = result(1024, 0.5, "cuda:0", ci95_s=(0.1, 2.0))
    text = text_of([*pairs({256: 2.0, 512: 2.0}), result(1024, 1.0), unsure])
    assert text == (
        f"{HEAD}cannot be told at 1024 × 1024, because their times overlap; up to 2.0 × faster "
        "from 256 × 256 to 512 × 512."
    )
    few = [result(512, 1.5, samples=3), result(512, 1.0, "cuda:0", throttled=True)]
    assert text_of(few) == (
        f"{HEAD}cannot be told at 512 × 512, because the times are doubtful (few samples, "
        "throttled). Give the runs more time and let the card cool down."
    )
    busy = in_turns(result(512, 9.0, other_processes=True), rounds_s=(9.0,))
    card = in_turns(result(512, 1.0, "cuda:0"), rounds_s=(1.0,))
    assert text_of([busy, card]).endswith(
        "other programs were running, though measured at least 9 × apart. Close other programs."
    )


def test_each_card_has_its_sentence() -> None:
    assert text_of([*pairs({256: 2.0}), *pairs({256: 0.5}, "cuda:1")]) == (
        f"{HEAD}2.0 × faster at 256 × 256. The GeForce RTX 3060 against the CPU: 2.0 × slower at "
        "256 × 256."
    )


def test_two_pcs_are_named_and_did_not_take_turns() -> None:
    theirs = [result(256, 1.0), changed(result(256, 0.5), device="den/cuda:0", device_name="T4")]
    assert text_of(theirs).startswith(
        "The T4 of den against the CPU (elementwise, float32, two PCs, so not in turns): 2.0 × fas"
    )


def test_a_card_is_compared_with_the_cpu_of_its_own_pc() -> None:
    theirs = [changed(result(256, 4.0), device="den/cpu"), result(256, 1.0, "den/cuda:0")]
    assert "4.0 × faster" in text_of([result(256, 9.0), *theirs])


def test_nothing_measured_says_nothing() -> None:
    assert text_of([]) == ""
    assert not is_doubted([])


def test_one_device_alone_is_told_with_how_normal_it_is() -> None:
    alone = [result(512, 0.001, ceiling="memory bandwidth, 40 GB/s", share_of_ceiling=0.8)]
    text = text_of(alone)
    assert text.startswith("Ryzen 7 5700G: 1.00 ms per call (512 × 512, elementwise, float32).")
    assert "80 % of this CPU's memory bandwidth" in text


def test_a_later_run_replaces_an_earlier_one() -> None:
    results = [*pairs({256: 2.0}), result(256, 4.0, "cuda:0")]
    assert "4.0 × slower" in text_of(results)
    assert ratio(results[1], results) == pytest.approx(2.0)


def ratio(one: RunFinished, results: list[RunFinished]) -> float | None:
    compared = speed_up(one, results)
    return compared.said_ratio if compared else None


THEIRS = "A GT 1030 in 2025"


def recorded(results: list[RunFinished], label: str = THEIRS) -> list[RunFinished]:
    return [msgspec.structs.replace(each, recording=label) for each in results]


def test_a_recording_is_called_one() -> None:
    both = text_of(recorded([*pairs({256: 2.0}), *with_transfers({256: 2.0})]))
    assert both.startswith(HEAD.replace("float32", f"float32, recording: {THEIRS}"))
    assert "with copies against the CPU: " in both
    assert both.count(THEIRS) == 1
    assert text_of(recorded([result(256, 1.0)])) == (
        "Ryzen 7 5700G: 1.00 s per call (256 × 256, elementwise, float32, recording: A GT 1030 in "
        "2025)."
    )


def test_a_recording_is_never_compared_with_this_pc_or_another_recording() -> None:
    cpu, card = result(256, 1.0), result(256, 0.5, "cuda:0")
    for there, here in (
        (recorded([card]), [cpu]),
        (recorded([cpu]), [card]),
        (recorded([cpu]), recorded([card], "Another")),
    ):
        both = [*there, *here]
        assert speed_up((here if here[0].device != "cpu" else there)[0], both) is None
        assert "faster" not in text_of(both)
    assert ratio(recorded([card])[0], recorded([cpu, card])) == 2.0


def test_wrong_results_are_reported_first_and_win_nothing() -> None:
    results = pairs({512: 2.0, 1024: 4.0})
    assert "wrong" not in text_of(results)
    results[1] = msgspec.structs.replace(results[1], verified=False)
    assert text_of(results).startswith(
        "Don't trust the GeForce GT 1030 here: wrong results at 512 × 512."
    )
    assert "faster" not in text_of(results)
    assert is_doubted(results)
    compared = speed_up(results[1], results)
    assert compared is not None
    assert (compared.said_ratio, compared.words) == (None, "wrong results")
    alone = [msgspec.structs.replace(result(512, 1.0), verified=False)]
    assert text_of(alone).startswith("Don't trust the CPU here: wrong results at 512 × 512.")
    wrong = [result(size, 0.5, "cuda:1", verified=False) for size in (512, 256)]
    (card,) = compared_cards([*pairs({256: 0.5, 512: 2.0}), *wrong])
    assert (card.card.device, [*card.claims]) == ("cuda:0", [256, 512])


def test_beside_a_browser_no_lead_over_a_run_of_another_time_stands() -> None:
    """Two runs of one product took 48 and 199 times as long as each other on a busy PC."""
    busy = result(512, 200.0, other_processes=True)
    assert "cannot be told" in text_of([busy, result(512, 1.0, "cuda:0")])
    # Other programs only slow down: a winner that they disturbed has won all the more.
    winner = result(512, 0.1, other_processes=True)
    assert "slower at" in text_of([winner, result(512, 1.0, "cuda:0")])


DOUBTS: dict[str, dict[str, Any]] = {
    "few samples": {"samples": 5},
    "throttled": {"throttled": True},
    "spread": {"iqr_s": 0.5},
    "not steady": {"sustained": True, "doubts": {"not steady": "the second half was slower"}},
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_doubted_run_wins_nothing_within_a_factor_of_two(doubt: str) -> None:
    for lead, is_told in ((1.9, False), (2.1, True)):
        is_long = {"sustained": "sustained" in DOUBTS[doubt]}
        results = [result(512, lead, **DOUBTS[doubt]), result(512, 1.0, "cuda:0", **is_long)]
        assert ("cannot be told" not in text_of(results)) is is_told
        # the other way round, too: a doubted loser may be faster than it seems
        back = [result(512, 1.0, **is_long), result(512, lead, "cuda:0", **DOUBTS[doubt])]
        assert ("cannot be told" not in text_of(back)) is is_told
    both = [result(512, 1.9, **DOUBTS[doubt]), result(512, 1.0, "cuda:0", **DOUBTS[doubt])]
    assert "cannot be told" in text_of(both)
    assert doubt in text_of(both)


@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_verdict_from_doubted_times_is_itself_doubted(doubt: str) -> None:
    is_long = {"sustained": "sustained" in DOUBTS[doubt]}
    sound = [result(512, 4.0, **is_long), result(512, 1.0, "cuda:0", **is_long)]
    assert not is_doubted(sound)
    assert is_doubted([result(512, 4.0, **DOUBTS[doubt]), sound[1]])
    assert is_doubted([sound[0], result(512, 1.0, "cuda:0", **DOUBTS[doubt])])
    # Two sound runs that cannot be told apart are no reason to distrust them.
    assert not is_doubted(pairs({512: 1.02}))


def test_equality_needs_an_interval_of_the_ratio_inside_five_percent() -> None:
    wide = (0.4, 1.6)
    results = [result(512, 1.0, ci95_s=wide), result(512, 1.0, "cuda:0", ci95_s=wide)]
    assert "equally fast" not in text_of(results)
    assert "their times overlap" in text_of(results)
    narrow = [result(512, 1.0), result(512, 0.98, "cuda:0", ci95_s=(0.97, 0.99))]
    assert "equally fast" in text_of(narrow)
    narrow[0] = changed(narrow[0], other_processes=True)
    assert "equally fast" not in text_of(narrow)
    assert "other programs were running" in text_of(narrow)


def with_transfers(ratios: dict[int, float]) -> list[RunFinished]:
    return [result(size, 1.0 / ratio, "cuda:0", transfers=True) for size, ratio in ratios.items()]


def test_transfers_have_a_sentence_and_a_speed_up_of_their_own() -> None:
    computing = pairs({256: 0.5, 512: 4.0})
    transferring = with_transfers({256: 0.25, 512: 0.5})
    results = [*computing, *transferring]
    assert "with copies against the CPU: 2.0 × slower at 512 × 512; 4.0 × slower at 256" in text_of(
        results
    )
    assert ratio(computing[3], results) == pytest.approx(4.0)
    assert ratio(transferring[1], results) == pytest.approx(0.5)


def test_another_option_or_cache_is_another_kind_of_work() -> None:
    cpu = result(256, 1.0, options={"amp": "off"})
    for changes in ({"options": {"amp": "on"}}, {"options": {"amp": "off"}, "cache": "cold"}):
        card = result(256, 0.5, "cuda:0", **changes)
        assert speed_up(card, [cpu, card]) is None
        assert "per call" in text_of([cpu, card])
    alike = result(256, 0.5, "cuda:0", options={"amp": "off"})
    assert ratio(alike, [cpu, alike]) == pytest.approx(2.0)
    assert "(elementwise, float32, AMP off)" in text_of([cpu, alike])


# ── at one size ──────────────────────────────────────────────────────────────────────────────────


def claimed(results: list[RunFinished], chosen: RunFinished | None = None) -> str:
    found = results_at_size(results, chosen)
    assert found is not None
    return found.claim.words.replace("\u202f", " ") if found.claim is not None else ""


def test_a_sweep_shows_the_largest_size_that_both_have() -> None:
    assert claimed([*pairs({64: 0.5, 512: 3.0}), result(1024, 1.0)]) == "3.0 × faster"
    assert claimed([result(512, 1.0)]) == ""


def test_the_chosen_result_decides_the_size_and_the_card() -> None:
    results = [*pairs({64: 0.5}), *pairs({512: 3.0}), result(512, 0.1, "cuda:1")]
    assert claimed(results, results[1]) == claimed(results, results[0]) == "2.0 × slower"
    assert claimed(results) == "10.0 × faster"  # the best of two cards
    assert claimed(results, results[3]) == "3.0 × faster"


def test_compute_only_comes_before_transfers_unless_they_are_chosen() -> None:
    results = [*pairs({512: 3.0}), result(512, 2.0, "cuda:0", transfers=True)]
    assert claimed(results) == "3.0 × faster"
    assert claimed(results, results[2]) == "2.0 × slower"
    found = results_at_size([*results, result(512, 1.0, "cuda:10"), result(512, 1.0, "cuda:2")])
    assert found is not None
    assert [(one.device, one.transfers) for one in found.results] == [
        ("cpu", False), ("cuda:0", False), ("cuda:0", True), ("cuda:2", False), ("cuda:10", False),
    ]  # fmt: skip
