from typing import Any

import pytest

from gpu_studio.core.benchmark.trust import doubts_of, facts_of, trust_of, trust_sign
from gpu_studio.core.messages.run_messages import OtherLoad, RunFinished, RunWorkload
from gpu_studio.core.notice import Tone
from tests.fakes.run_answers import finished, samples_of


def result(size: int = 512, device: str = "cpu", **changes: Any) -> RunFinished:
    request = RunWorkload(
        run_id="1", workload="elementwise", device=device, size=size, dtype="float32"
    )
    return finished(request, samples_of(request), **changes)


def test_a_good_result_is_verified() -> None:
    good = result(computed_in="tf32")
    assert trust_sign(good).startswith("✔ checked")
    assert [*facts_of(good)] == [
        "matches float64 on the CPU", "hot cache", "without copies", "4 CPU threads",
        "computed in TF32",
    ]  # fmt: skip
    assert [*facts_of(result())][-1] == "4 CPU threads"  # what is not reported is not claimed


def test_a_power_limit_is_reported_and_is_no_doubt() -> None:
    capped = result(device="cuda:0", throttled=False, power_capped=True)
    assert not doubts_of(capped)
    assert "at its power limit, which is normal under load" in facts_of(capped)


@pytest.mark.parametrize(
    ("changes", "word", "sentence"),
    [
        ({"verified": False, "verification": "off by 3"}, "wrong result", "off by 3"),
        ({"verified": None, "verification": ""}, "not checked", "no reference"),
        ({"samples": 9}, "few samples", "only 9 samples"),
        ({"samples": 1}, "few samples", "only 1 sample:"),
        ({"samples": 6}, "few samples", "only 6 samples: give"),
        ({"samples": 5}, "few samples", "only 5 samples, so the interval is their whole"),
        (
            {"samples": 9, "rounds_s": (1e-3, 1e-3)},
            "few samples",
            "only 9 samples, so the interval is their whole",
        ),
        ({"iqr_s": 0.11, "median_s": 1.0}, "spread 11\u202f%", "varied by 11\u202f%"),
        ({"throttled": True}, "throttled", "slowed itself down"),
        ({"other_processes": True}, "busy CPU", "kept the CPU busy"),
        ({"other_processes": True, "device": "cuda:0"}, "shared card", "another program"),
        (
            {
                "other_processes": True,
                "other_load": OtherLoad(percent=97.0, program="game.exe"),
                "device": "cuda:0",
            },
            "shared card",
            "game.exe kept the card 97\u202f% busy before the run",
        ),
        ({"doubts": {"unsure gain": "it changes"}}, "unsure gain", "it changes"),
        ({"recording": "A GT 1030 in 2025"}, "recording", "A GT 1030 in 2025"),
    ],
)
def test_each_doubt_makes_the_stamp_amber_and_says_why(
    changes: dict[str, Any], word: str, sentence: str
) -> None:
    doubted = result(**changes)
    (doubt,) = doubts_of(doubted)
    assert sentence in doubt.sentence
    assert (doubt.word, trust_sign(doubted)) == (word, f"▲ {word}")
    assert not any(fact in doubt.sentence for fact in facts_of(doubted))


def test_what_is_not_known_is_a_fact_and_no_doubt() -> None:
    unknown = result(device="cuda:0", throttled=None, other_processes=None)
    assert not doubts_of(unknown)
    assert "throttling unknown" in facts_of(unknown)


def test_ten_samples_and_a_tenth_of_spread_are_enough() -> None:
    assert not doubts_of(result(samples=10, median_s=1.0, iqr_s=0.1))


def test_several_results_show_the_worst_doubt_and_how_many_more() -> None:
    few = result(samples=8, median_s=1.0, iqr_s=0.33, verified=None)
    busy = result(device="cuda:0", median_s=1.0, iqr_s=1.04, other_processes=True)
    found = trust_of([("CPU", few), ("GT 1030", busy)])
    assert (found.sentence, found.tone) == ("Shared card · 4 more", Tone.AMBER)
    lines = found.detail.replace("\u202f", " ").splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == ["GT 1030", "GT 1030", "CPU"]
    assert ("104 %" in lines[1], "33 %" in lines[2]) == (True, True)
    assert trust_sign(few).replace("\u202f", " ") == "▲ spread 33 % · 2 more"
    wrong = trust_of([("CPU", busy), ("GT 1030", result(verified=False))])
    assert (wrong.sentence[:12], wrong.tone) == ("Wrong result", Tone.FAILURE)
    assert trust_of([("CPU", result())]).sentence == "Results checked"
