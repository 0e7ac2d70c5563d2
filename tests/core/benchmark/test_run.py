from typing import Any

import msgspec
import pytest

from gpu_studio.core.benchmark.run import (
    Run,
    RunState,
    describe_run,
    parts_sentence,
    sign_of,
    spread_text,
)
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStopped,
    RunWorkload,
)
from gpu_studio.core.statistics import interval_of_rounds
from tests.fakes.run_answers import batch, finished, run_events, samples_of, started

REQUEST = RunWorkload(
    run_id="1", workload="elementwise", device="cpu", size=512, dtype="float32", budget_s=2.0
)


ON_CARD = msgspec.structs.replace(REQUEST, device="cuda:0")


def begun(request: RunWorkload = REQUEST, recording: str | None = None) -> Run:
    run = Run(request)
    run.apply(started(request, recording=recording))
    return run


def timing() -> Run:
    run = begun()
    run.apply(batch(REQUEST, (1.0, 2.0, 3.0), spent_s=0.5))
    return run


def test_each_sample_has_the_time_at_which_it_ended() -> None:
    run = begun()
    run.apply(batch(REQUEST, (0.1, 0.2), 0.3, calls=1, ended_s=1.0, round_number=1))
    run.apply(batch(REQUEST, (0.1,), 0.4, calls=1, ended_s=3.0, round_number=2))
    assert run.is_clocked
    assert run.series.times.tolist() == pytest.approx([0.8, 1.0, 3.0])
    assert [(one.begin_s, one.end_s) for one in run.batches] == [
        (pytest.approx(0.7), 1.0), (pytest.approx(2.9), 3.0),
    ]  # fmt: skip


def test_in_an_older_file_a_sample_has_the_time_of_the_timed_part() -> None:
    run = begun()
    run.apply(batch(REQUEST, (0.1, 0.2), 0.3, calls=1))
    run.apply(batch(REQUEST, (9.0,), 0.4, calls=1))
    assert not run.is_clocked
    run.apply(batch(REQUEST, (0.1,), 0.2, calls=1))
    assert run.series.times.tolist() == pytest.approx([0.1, 0.3, 0.4, 0.4]), "it never goes back"


def test_a_run_follows_its_events_to_its_result() -> None:
    run = Run(REQUEST)
    assert (run.state, run.progress, run.summary) == (RunState.WAITING, 0.0, None)
    states = []
    for event in run_events(REQUEST):
        assert run.apply(event)
        states.append(run.state)
    assert states[0] is RunState.PREPARING
    assert states[3:] == [RunState.TIMING] * 3 + [RunState.FINISHED]
    assert run.series.values.tolist() == list(samples_of(REQUEST))
    assert run.result is not None
    assert run.summary is not None
    assert run.summary.median_s == run.result.median_s
    assert run.interval_s == run.result.ci95_s
    assert run.progress == 1.0
    assert run.expected_call_s == pytest.approx(512**2 * 1e-9)


def test_the_interval_is_the_results_and_none_while_samples_come() -> None:
    run = timing()
    assert run.interval_s is None
    # Neighbours drift together: the order of the samples counts, which a summary does not see.
    drifting = [1.0 + step // 100 for step in range(1000)]
    run.apply(batch(REQUEST, tuple(drifting), spent_s=1.0, calls=1))
    assert run.interval_s is None
    run.apply(RunStopped(run_id="1"))
    assert run.interval_s == interval_of_rounds([1.0, 2.0, 3.0, *drifting])
    done = begun()
    done.apply(batch(REQUEST, (1.0, 2.0, 3.0), spent_s=0.5))
    done.apply(finished(REQUEST, samples_of(REQUEST), ci95_s=(1.25, 2.75)))
    assert done.interval_s == (1.25, 2.75)


@pytest.mark.parametrize(
    ("ending", "state", "reason"),
    [
        (RunStopped(run_id="1", samples=3), RunState.STOPPED, None),
        (EngineEnded(exit_code=None, stopped=True), RunState.STOPPED, None),
        (EngineEnded(exit_code=-11), RunState.FAILED, "crashed (signal 11)"),
        (
            RunFailed(run_id="1", failure=Failure(FailureKind.OUT_OF_MEMORY, "Too much.")),
            RunState.FAILED,
            "Too much.",
        ),
        (
            RequestFailed(failure=Failure(FailureKind.NOT_RECORDED, "Not there.")),
            RunState.FAILED,
            "Not there.",
        ),
    ],
)
def test_every_end_keeps_the_samples(ending: Event, state: RunState, reason: str | None) -> None:
    run = timing()
    assert run.apply(ending)
    assert run.state is state
    assert run.state.is_over
    assert run.progress == 1.0
    assert len(run.series) == 3
    assert run.result is None
    if reason is None:
        assert run.failure is None
    else:
        assert run.failure is not None
        assert reason in run.failure.message


def test_nothing_comes_after_the_end() -> None:
    run = timing()
    run.apply(RunStopped(run_id="1"))
    assert not run.apply(batch(REQUEST, (9.0,), spent_s=1.0))
    assert not run.apply(finished(REQUEST, (9.0,)))
    assert (len(run.series), run.state) == (3, RunState.STOPPED)


def test_events_of_others_are_not_taken() -> None:
    run = begun(recording="A GT 1030")
    assert not run.apply(RunPhaseChanged(run_id="2", phase="timing"))
    assert not run.apply(MemoryRead(device="cuda:0", taken_at_s=0.0))
    assert run.state is RunState.PREPARING
    assert run.recording == "A GT 1030"


def run_of(**changes: Any) -> Run:
    run = Run(ON_CARD)
    for event in run_events(ON_CARD, **changes):
        run.apply(event)
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
    run = begun(ON_CARD)
    run.apply(batch(ON_CARD, (0.5,), spent_s=0.5, calls=1))
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
    run = begun(ON_CARD)
    run.apply(batch(ON_CARD, (1.0, 1.1, 0.9, 1.0, 50.0), spent_s=1.0, calls=1))
    text = words(run)
    assert "5 samples of 1 call;" in text
    assert "1 outlier lies over 1.30 s" in text
    run.apply(batch(ON_CARD, (60.0, 1.0, 1.0, 1.0, 1.0, 1.0), spent_s=1.0, calls=1))
    assert "2 outliers lie over" in words(run)


def test_the_name_stands_beside_a_label_it_does_not_hold() -> None:
    request = RunWorkload(run_id="1", workload="matmul", device="cpu", size=64, dtype="float32")
    run = Run(request)
    for event in run_events(request):
        run.apply(event)
    assert "CPU (Ryzen 7 5700G): " in describe_run(run, "CPU")[0]


def test_a_run_in_every_other_state() -> None:
    run = Run(ON_CARD)
    assert (sign_of(run), words(run).endswith("no results yet.")) == ("… waiting", True)
    run.apply(started(ON_CARD, recording="A GT 1030 in 2025"))
    run.apply(RunPhaseChanged(run_id="1", phase="warm-up"))
    assert sign_of(run) == "… warm-up, recording"
    run.apply(batch(ON_CARD, (1.0,), spent_s=1.0, calls=1))
    run.apply(RunStopped(run_id="1"))
    assert sign_of(run) == "■ stopped, recording"
    assert words(run).endswith("\n■ stopped, recording.\nRecording: A GT 1030 in 2025.")


def test_a_failure_is_reported_once_with_one_full_stop() -> None:
    run = begun(ON_CARD)
    run.apply(RunFailed(run_id="1", failure=Failure(FailureKind.TOO_LARGE, "Too large.")))
    assert sign_of(run) == "✖ too large"  # the cell of a table has no room for a sentence
    assert words(run) == (
        "elementwise · 512 × 512 · float32 · GT 1030: no results.\n✖ failed: Too large."
    )


@pytest.mark.parametrize("kind", FailureKind)
def test_a_failure_has_a_short_sign(kind: FailureKind) -> None:
    run = begun(ON_CARD)
    run.apply(RunFailed(run_id="1", failure=Failure(kind, "A long sentence about the cause.")))
    assert sign_of(run).startswith("✖ ")
    assert len(sign_of(run)) <= len("▲ not steady yet")


def split(parts_s: dict[str, float]) -> RunFinished:
    return finished(ON_CARD, samples_of(ON_CARD), parts_s=parts_s)


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
