from typing import Any

import pytest

from gpu_studio.core.benchmark.run import Run, describe_run, parts_sentence, sign_of, spread_text
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStopped,
    RunWorkload,
)
from tests.fakes.run_answers import batch, finished, run_events, samples_of, started

REQUEST = RunWorkload(
    run_id="1", workload="elementwise", device="cuda:0", size=512, dtype="float32"
)


def run_of(**changes: Any) -> Run:
    run = Run(REQUEST)
    for event in run_events(REQUEST, **changes):
        run.apply(event)
    return run


def begun() -> Run:
    run = Run(REQUEST)
    run.apply(started(REQUEST))
    return run


def words(run: Run) -> str:
    return "\n".join(describe_run(run, "GT 1030")).replace("\u202f", " ")


def test_a_finished_run_says_all_that_is_known() -> None:
    assert words(run_of()) == (
        "elementwise · 512 × 512 · float32 · NVIDIA GeForce GT 1030: 226 µs per call (median), "
        "95 % interval within this run 226 µs to 226 µs.\n"
        "40 samples of 4 calls; half of them are within 1.36 µs (0.6 %), 99 of 100 under 227 µs.\n"
        "✔ Matches float64 on the CPU; hot cache; without copies; 4 CPU threads."
    )


def test_one_sample_has_neither_spread_nor_interval() -> None:
    run = begun()
    run.apply(batch(REQUEST, (0.5,), spent_s=0.5, calls=1))
    text = words(run)
    assert "500 ms per call, from one sample." in text
    assert "1 sample of 1 call." in text
    assert "%" not in text
    assert spread_text(0.0, 0.5, 1) == "–"
    assert spread_text(0.05, 0.5, 2).replace("\u202f", " ") == "10 %"


def test_doubts_stand_before_the_facts() -> None:
    text = words(run_of(verified=False, verification="off by 3", throttled=True))
    assert (
        "\n▲ The result is wrong: off by 3; the card slowed itself down during the run.\n"
        "· Hot cache; without copies; 4 CPU threads." in text
    )


def test_outliers_are_counted() -> None:
    run = begun()
    run.apply(batch(REQUEST, (1.0, 1.1, 0.9, 1.0, 50.0), spent_s=1.0, calls=1))
    text = words(run)
    assert "5 samples of 1 call;" in text
    assert "1 outlier lies over 1.30 s" in text
    run.apply(batch(REQUEST, (60.0, 1.0, 1.0, 1.0, 1.0, 1.0), spent_s=1.0, calls=1))
    assert "2 outliers lie over" in words(run)


def test_the_name_stands_beside_a_label_it_does_not_hold() -> None:
    request = RunWorkload(run_id="1", workload="matmul", device="cpu", size=64, dtype="float32")
    run = Run(request)
    for event in run_events(request):
        run.apply(event)
    assert "CPU (Ryzen 7 5700G): " in describe_run(run, "CPU")[0]


def test_a_run_in_every_other_state() -> None:
    run = Run(REQUEST)
    assert (sign_of(run), words(run).endswith("no results yet.")) == ("… waiting", True)
    run.apply(started(REQUEST, recording="A GT 1030 in 2025"))
    run.apply(RunPhaseChanged(run_id="1", phase="warm-up"))
    assert sign_of(run) == "… warm-up, recording"
    run.apply(batch(REQUEST, (1.0,), spent_s=1.0, calls=1))
    run.apply(RunStopped(run_id="1"))
    assert sign_of(run) == "■ stopped, recording"
    assert words(run).endswith("\n■ stopped, recording.\nRecording: A GT 1030 in 2025.")


def test_a_failure_is_reported_once_with_one_full_stop() -> None:
    run = begun()
    run.apply(RunFailed(run_id="1", failure=Failure(FailureKind.TOO_LARGE, "Too large.")))
    assert sign_of(run) == "✖ too large"  # the cell of a table has no room for a sentence
    assert words(run) == (
        "elementwise · 512 × 512 · float32 · GT 1030: no results.\n✖ failed: Too large."
    )


@pytest.mark.parametrize("kind", FailureKind)
def test_a_failure_has_a_short_sign(kind: FailureKind) -> None:
    run = begun()
    run.apply(RunFailed(run_id="1", failure=Failure(kind, "A long sentence about the cause.")))
    assert sign_of(run).startswith("✖ ")
    assert len(sign_of(run)) <= len("▲ not steady yet")


def split(parts_s: dict[str, float]) -> RunFinished:
    return finished(REQUEST, samples_of(REQUEST), parts_s=parts_s)


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


@pytest.mark.parametrize(
    ("parts_s", "sentence"),
    [
        ({"copy in": 3e-3, "compute": 1e-3},
         "X: 75 % of 4.00 ms is copying the operands to the card."),
        ({"loading": 2.0, "computing": 1.0},
         "X: 67 % of 3.00 s is loading and preparing the data."),
        ({"waiting": 2.0, "computing": 1.0}, "X: 67 % of 3.00 s is waiting."),
        ({"compute": 1e-3}, "X: all of 1.00 ms is computing."),
        ({}, ""),
        ({"compute": 0.0}, ""),
    ],
)  # fmt: skip
def test_the_longest_part_is_reported_in_words(parts_s: dict[str, float], sentence: str) -> None:
    assert plain(parts_sentence(split(parts_s), "X")) == sentence
