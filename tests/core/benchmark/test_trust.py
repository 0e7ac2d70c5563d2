from __future__ import annotations

from typing import Any

import pytest

from gpu_studio.core.benchmark.trust import TrustLine, stamp_of, trust_lines
from gpu_studio.core.messages.run_messages import OtherLoad, RunFinished, RunWorkload
from tests.fakes.run_answers import finished, samples_of


def result(size: int = 512, device: str = "cpu", **changes: Any) -> RunFinished:
    request = RunWorkload(
        run_id="1", workload="elementwise", device=device, size=size, dtype="float32"
    )
    return finished(request, samples_of(request), **changes)


def text_of(line: TrustLine) -> str:
    return line.text.replace("\u202f", " ")


def test_a_good_result_is_verified() -> None:
    stamp = stamp_of(result(computed_in="float32", tf32=False))
    assert not stamp.doubts
    assert stamp.doubts == stamp.words == ()
    assert stamp.sign == "✔ verified"
    assert stamp.facts == (
        "matches float64 on the CPU", "hot cache", "without copies", "4 CPU threads",
        "computed in float32",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        # Autocast: the operands are float32, the products are not.
        ({"computed_in": "float16", "tf32": False}, "computed in float16"),
        ({"computed_in": "tf32", "tf32": True}, "computed in TF32"),
        # Results of a version that did not tell it.
        ({"tf32": True}, "TF32 on"),
        ({"tf32": False}, "TF32 off"),
    ],
)
def test_what_the_arithmetic_was_done_in_is_a_fact(changes: dict[str, Any], fact: str) -> None:
    facts = stamp_of(result(device="cuda:0", **changes)).facts
    assert [each for each in facts if "computed in" in each or "TF32" in each] == [fact]


def test_a_result_that_does_not_report_what_it_was_computed_in_claims_nothing() -> None:
    assert not [fact for fact in stamp_of(result()).facts if "computed" in fact or "TF32" in fact]


def test_a_power_limit_is_reported_and_is_no_doubt() -> None:
    capped = result(device="cuda:0", throttled=False, power_capped=True)
    assert not stamp_of(capped).doubts
    assert "at its power limit, which is normal under load" in stamp_of(capped).facts
    assert "no throttling, at the power limit (normal under load)" in [
        text_of(line) for line in trust_lines([capped])
    ]


@pytest.mark.parametrize(
    ("changes", "word", "sentence"),
    [
        ({"verified": False, "verification": "off by 3"}, "wrong result", "off by 3"),
        ({"verified": None, "verification": ""}, "not checked", "no reference"),
        ({"samples": 9}, "few samples", "only 9 samples"),
        ({"samples": 1}, "few samples", "only 1 sample:"),
        ({"samples": 6}, "few samples", "only 6 samples: give"),
        ({"samples": 5}, "few samples", "only 5 samples, so the interval is their whole"),
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
        ({"in_window_process": True}, "in window", "window's process"),
        ({"recording": "A GT 1030 in 2025"}, "recording", "A GT 1030 in 2025"),
    ],
)
def test_each_doubt_makes_the_stamp_amber_and_says_why(
    changes: dict[str, Any], word: str, sentence: str
) -> None:
    stamp = stamp_of(result(**changes))
    assert stamp.doubts
    assert stamp.words == (word,)
    assert sentence in stamp.doubts[0]
    assert stamp.sign == f"▲ {word}"
    assert not any(fact in doubt for fact in stamp.facts for doubt in stamp.doubts)


def test_what_is_not_known_is_a_fact_and_no_doubt() -> None:
    stamp = stamp_of(result(device="cuda:0", throttled=None, other_processes=None))
    assert not stamp.doubts
    assert "throttling unknown" in stamp.facts


def test_what_the_work_itself_doubts_is_reported_once() -> None:
    unsure = [result(size, doubts={"unsure gain": "it changes"}) for size in (64, 512)]
    doubts = [line for line in trust_lines(unsure) if not line.good]
    assert [text_of(line) for line in doubts] == ["it changes"]


def test_ten_samples_and_a_tenth_of_spread_are_enough() -> None:
    assert not stamp_of(result(samples=10, median_s=1.0, iqr_s=0.1)).doubts


def test_several_results_are_reported_at_once() -> None:
    good = [result(64), result(512), result(512, "cuda:0", throttled=False)]
    assert all(line.good for line in trust_lines(good))
    assert [str(line) for line in trust_lines(good)][::2] == [
        "✔ all results checked", "✔ no throttling",
    ]  # fmt: skip
    assert trust_lines([]) == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"verified": False}, "▲ wrong results at 512\u202f×\u202f512"),
        ({"verified": None}, "▲ results not checked at 512\u202f×\u202f512"),
        ({"samples": 3}, "▲ few samples at 512\u202f×\u202f512: give it more time"),
        ({"iqr_s": 0.2, "median_s": 1.0}, "▲ spread up to 20\u202f%"),
        ({"throttled": True}, "▲ the card slowed itself down"),
        ({"other_processes": True}, "▲ another program used the card"),
        (
            {"in_window_process": True},
            "▲ it ran inside the window's process, which disturbs timing",
        ),
        ({"recording": "A GT 1030"}, "▲ recording: A GT 1030"),
    ],
)
def test_one_bad_result_among_good_ones_shows(changes: dict[str, Any], text: str) -> None:
    results = [result(64), result(512, "cuda:0", **changes), result(1024)]
    lines = trust_lines(results)
    assert [str(line) for line in lines if not line.good] == [text]
    assert "✔ no throttling" not in map(str, lines) or "throttled" not in changes


def test_a_card_that_does_not_tell_is_not_said_to_be_cool() -> None:
    lines = trust_lines([result(64, "cuda:0", throttled=False), result(64, "cuda:1")])
    assert "✔ no throttling" in map(str, lines)
    lines = trust_lines(
        [result(64, "cuda:0", throttled=False), result(64, "cuda:1", throttled=None)]
    )
    assert "✔ no throttling" not in map(str, lines)


def test_sizes_are_written_as_the_workload_writes_them() -> None:
    few = result(samples=3, size_text="{size} pictures")
    assert "few samples at 512\u202fpictures" in "\n".join(map(str, trust_lines([few])))


def test_a_sweep_s_sizes_are_counted_and_not_all_listed() -> None:
    sweep = [result(size=size, samples=9) for size in (64, 4096, 512, 128)]
    (few,) = (text_of(line) for line in trust_lines(sweep) if "few" in line.text)
    assert few == "few samples at 4 sizes from 64 × 64 to 4096 × 4096: give it more time"
    (few,) = (text_of(line) for line in trust_lines(sweep[:3]) if "few" in line.text)
    assert few == "few samples at 64 × 64, 512 × 512 and 4096 × 4096: give it more time"


def test_one_sample_says_nothing_of_the_spread() -> None:
    one = result(samples=1, iqr_s=0.0)
    assert not any("spread" in line.text for line in trust_lines([one]))
    many = result(samples=20, iqr_s=0.0)
    assert any("spread" in line.text for line in trust_lines([one, many]))


@pytest.mark.parametrize(
    ("changes", "words", "is_boosted"),
    [
        ({"device": "cuda:0", "loaded_s": 0.4}, "loaded for 400 ms", True),
        ({"device": "cuda:0", "loaded_s": 15.5, "sustained": True}, "sustained: loaded for", False),
        ({"device": "cpu", "loaded_s": 0.4}, "loaded for 400 ms", False),
    ],
)
def test_how_long_the_device_had_worked_is_a_fact(
    changes: dict[str, Any], words: str, is_boosted: bool
) -> None:
    facts = [fact.replace("\u202f", " ") for fact in stamp_of(result(**changes)).facts]
    assert any(fact.startswith(words) for fact in facts)
    assert any("higher clock for its first 7 s" in fact for fact in facts) is is_boosted


def test_a_result_that_does_not_report_its_load_says_nothing_of_it() -> None:
    assert not any("loaded" in fact for fact in stamp_of(result(device="cuda:0")).facts)
