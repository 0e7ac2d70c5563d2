import threading
from collections.abc import Callable
from types import SimpleNamespace

import msgspec
import pytest
import torch

from gpu_studio.core.benchmark.trust import doubts_of
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.run_messages import (
    OtherLoad,
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStarted,
    SamplesMeasured,
)
from gpu_studio.core.statistics import FEWEST_ROUNDS, summarize
from gpu_studio.engine.benchmark import admission, rounds
from gpu_studio.engine.benchmark.run import WorkloadRun
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.engine.verification import Verification
from gpu_studio.engine.workloads.elementwise import Elementwise
from gpu_studio.engine.workloads.matmul import Matmul
from tests.engine.answers import ask, only, run_request


def test_a_run_goes_through_its_phases_in_order():
    events = ask(run_request())
    assert isinstance(events[0], RunStarted)
    phases = [event.phase for event in only(RunPhaseChanged, events)]
    assert phases == ["set-up", "verification", "warm-up", "timing"]
    timing = events.index(only(RunPhaseChanged, events)[-1])
    assert events[timing].expected_call_s > 0
    assert all(isinstance(event, SamplesMeasured) for event in events[timing + 1 : -1])
    assert isinstance(events[-1], RunFinished)
    assert all(event.run_id == "r1" for event in events)


def test_every_round_makes_its_tensors_anew(monkeypatch: pytest.MonkeyPatch):
    created = []
    plain = Elementwise.prepare
    monkeypatch.setattr(
        Elementwise, "prepare", lambda self, case: created.append(case.size) or plain(self, case)
    )
    result = ask(run_request(budget_s=0.24))[-1]
    assert isinstance(result, RunFinished)
    assert 2 <= len(result.rounds_s) <= 12  # a stall may take the time of several
    assert len(created) >= len(result.rounds_s)


def test_a_run_that_has_taken_long_enough_ends_with_six_rounds():
    result = ask(run_request(budget_s=1.2, longest_s=0.0))[-1]
    assert isinstance(result, RunFinished)
    assert 2 <= len(result.rounds_s) <= FEWEST_ROUNDS


def test_the_turns_of_others_are_not_this_run_s_time(monkeypatch: pytest.MonkeyPatch):
    now_s = [0.0]
    clock = SimpleNamespace(perf_counter=lambda: now_s[0])
    monkeypatch.setattr(rounds, "time", clock)
    run = WorkloadRun(run_request(budget_s=0.24, longest_s=1.0), threading.Event())
    events = []
    for event in run.events():
        if event is None:
            now_s[0] += 0.3
        else:
            events.append(event)
    assert now_s[0] > 1.0
    assert only(SamplesMeasured, events)[-1].spent_s >= 0.24


def test_the_result_is_the_summary_of_every_sample_that_was_sent():
    events = ask(run_request(budget_s=0.4))
    samples_s = [sample for event in only(SamplesMeasured, events) for sample in event.samples_s]
    result, summary = events[-1], summarize(samples_s)
    assert isinstance(result, RunFinished)
    assert result.samples == len(samples_s) > 0
    assert result.median_s == summary.median_s
    assert result.iqr_s == summary.iqr_s
    assert 2 <= len(result.rounds_s) <= 12  # a stall may take the time of several
    assert result.ci95_s[0] <= result.median_s <= result.ci95_s[1]
    assert result.throughput == result.details.bytes_per_call / result.median_s
    assert result.calls_per_sample == only(SamplesMeasured, events)[0].calls_per_sample


def test_the_load_of_other_programs_before_the_run_is_in_the_result(
    monkeypatch: pytest.MonkeyPatch,
):
    """On soft cards it comes from the driver; the CPU has none, so it is given here."""
    load = OtherLoad(percent=97.0, program="game.exe")
    monkeypatch.setattr(WorkloadRun, "_other_load", lambda _run: load)
    result = ask(run_request())[-1]
    assert isinstance(result, RunFinished)
    assert result.conditions.other_load == load
    assert result.conditions.other_processes is True
    assert "busy CPU" in [doubt.word for doubt in doubts_of(result)]


def test_a_result_says_where_and_how_it_was_obtained(monkeypatch):
    monkeypatch.setattr("gpu_studio.engine.sensor._SHORTEST_WATCH_S", 3600.0)  # too short to say
    dispatcher = Dispatcher(cpu_name="Ryzen 7 5700G")
    result = ask(run_request(), dispatcher)[-1]
    assert isinstance(result, RunFinished)
    assert result.device_name == "Ryzen 7 5700G"
    assert result.conditions.cpu_threads == torch.get_num_threads()
    assert result.conditions.torch_version == torch.__version__
    assert (result.conditions.throttled, result.conditions.other_processes) == (None, None)


def test_a_large_result_is_checked_small_and_whole_then_by_rows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(admission, "_LONGEST_CHECK_S", 3600.0)
    events = ask(run_request(size=600, workload="matmul"))
    result = events[-1]
    assert isinstance(result, RunFinished)
    assert "all of 512 × 512" in result.verification
    assert "16 rows of 600" in result.verification
    warm_up = only(RunPhaseChanged, events)[2]
    assert warm_up.expected_call_s > 0  # a long call is announced before the first one


def test_a_large_result_that_would_take_long_to_check_is_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(admission, "_LONGEST_CHECK_S", 0.0)
    result = ask(run_request(size=600, workload="matmul"))[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is None
    assert "too long to check" in result.verification
    assert "all of 512 × 512" in result.verification
    assert "not checked" in [doubt.word for doubt in doubts_of(result)]


def test_a_wrong_small_result_condemns_a_large_one_that_takes_long(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(admission, "_LONGEST_CHECK_S", 0.0)
    wrong = Verification(False, "off by 3", ("all of it",))
    monkeypatch.setattr(Elementwise, "verify", lambda *arguments: wrong)
    result = ask(run_request(workload="elementwise", size=600))[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is False


def test_a_wrong_result_ends_the_run_as_not_verified(monkeypatch: pytest.MonkeyPatch):
    wrong = Verification(False, "off by 3", ("all of it",))
    monkeypatch.setattr(Elementwise, "verify", lambda *arguments: wrong)
    result = ask(run_request())[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is False
    assert result.verification == "off by 3: all of it"


# ── the budget ───────────────────────────────────────────────────────────────────────────────────


def test_the_whole_budget_goes_to_the_timed_part():
    events = ask(run_request(budget_s=0.1))
    spent_s = [event.spent_s for event in only(SamplesMeasured, events)]
    assert spent_s == sorted(spent_s)
    assert spent_s[-1] >= 0.1 > max(spent_s[:-1], default=0.0)
    result = events[-1]
    timed_s = sum(
        sample * event.calls_per_sample
        for event in only(SamplesMeasured, events)
        for sample in event.samples_s
    )
    assert timed_s == pytest.approx(spent_s[-1])
    assert result.times.elapsed_s >= spent_s[-1] + result.times.warm_up_s


@pytest.mark.parametrize(("chosen", "batch"), [(1, 1), (3, 3), (7, 10), (21, 30), (400, 60)])
def test_a_run_makes_exactly_the_calls_that_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, chosen: int, batch: int
):
    monkeypatch.setattr(rounds, "choose_calls", lambda *arguments: chosen)
    timed: list[int] = []

    class Counting:
        def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
            timed.append(calls)
            return calls * 1.0, calls * 1.0

    monkeypatch.setattr(WorkloadRun, "_stopwatch", lambda run, call: Counting())
    events = ask(run_request(budget_s=0.01, calls=60))
    result = events[-1]
    assert isinstance(result, RunFinished)
    assert timed == [batch] * (60 // batch)
    assert result.samples * result.calls_per_sample == 60
    assert result.times.timed_s == 60.0
    assert sum(len(line.samples_s) for line in only(SamplesMeasured, events)) == result.samples


def test_an_interval_that_is_met_ends_a_run_early():
    events = ask(run_request(budget_s=3600.0, stop_at_relative_interval=10.0))
    assert isinstance(events[-1], RunFinished)
    assert only(SamplesMeasured, events)[-1].spent_s < 3600.0


def test_a_shown_run_rests_after_each_line(monkeypatch: pytest.MonkeyPatch):
    now_s = [0.0]
    story: list[str] = []

    class TwoMilliseconds:
        def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
            now_s[0] += 2e-3
            story.append("batch")
            return 2e-3, 2e-3

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout == 0.04
            now_s[0] += timeout
            story.append("rest")
            return False

    monkeypatch.setattr(rounds.time, "perf_counter", lambda: now_s[0])
    monkeypatch.setattr(WorkloadRun, "_stopwatch", lambda run, call: TwoMilliseconds())
    monkeypatch.setattr(WorkloadRun, "_time_once", lambda run, call: 2e-3)
    monkeypatch.setattr(rounds, "warm_up", lambda *_arguments, **_options: 2e-3)
    monkeypatch.setattr(rounds, "warm_up_again", lambda *_arguments: 2e-3)
    monkeypatch.setattr(rounds, "choose_calls", lambda *arguments: 1)
    events = []
    for event in Dispatcher().run(run_request(budget_s=12.0, rest_s=0.04), Stop()):
        if isinstance(event, SamplesMeasured):
            story.append("line")
        events.append(event)
    lines = only(SamplesMeasured, events)
    # A quarter of a second of samples each; the batch after a rest is in none of them.
    assert [len(line.samples_s) for line in lines[:4]] == [125] * 4
    assert lines[-1].spent_s == pytest.approx(12.0)
    turn = ["batch"] * 125 + ["line"]
    first_round = turn + ["rest", "batch", *turn] * 3
    assert story[: len(first_round) + 1] == [*first_round, "batch"]  # no rest before the next one
    assert isinstance(events[-1], RunFinished)
    assert events[-1].samples == 6000


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────


def failure_of(**changes: object):
    events = ask(run_request(**changes))
    assert isinstance(events[-1], RunFailed)
    assert events[-1].run_id == "r1"
    return events[-1].failure


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"workload": "crunch"}, FailureKind.BAD_REQUEST, ["crunch", "elementwise, matmul"]),
        ({"dtype": "float8"}, FailureKind.BAD_REQUEST, ["float8", "bfloat16"]),
        ({"size": 0}, FailureKind.BAD_REQUEST, ["size 0", "1048576"]),
        ({"size": -5}, FailureKind.BAD_REQUEST, ["-5"]),
        ({"size": 1 << 40}, FailureKind.BAD_REQUEST, [str(1 << 40)]),
        ({"budget_s": 0.0}, FailureKind.BAD_REQUEST, ["Time per run", "3600"]),
        ({"rest_s": -0.1}, FailureKind.BAD_REQUEST, ["rest"]),
        ({"rest_s": 2.0}, FailureKind.BAD_REQUEST, ["rest"]),
        ({"budget_s": float("nan")}, FailureKind.BAD_REQUEST, ["Time per run", "3600"]),
        ({"calls": 0}, FailureKind.BAD_REQUEST, ["0 calls", "1 to 1000000"]),
        ({"calls": 1_000_001}, FailureKind.BAD_REQUEST, ["1000001 calls"]),
        ({"device": "gpu"}, FailureKind.NO_SUCH_DEVICE, ["There is no gpu here", "cpu"]),
        ({"device": "cpu:1"}, FailureKind.NO_SUCH_DEVICE, ["There is no cpu:1 here"]),
    ],
)
def test_a_bad_request_gets_a_sentence_that_says_what_is_possible(
    changes: dict[str, object], kind: FailureKind, words: list[str]
):
    failure = failure_of(**changes)
    assert failure.kind is kind
    assert not failure.fatal
    for word in words:
        assert word in failure.message


def test_what_cannot_fit_is_refused_before_anything_is_allocated(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Elementwise, "verify", lambda *arguments: pytest.fail("allocated"))
    monkeypatch.setattr(admission, "free_bytes", lambda device: 23 << 30)
    failure = failure_of(size=1 << 20)
    assert failure.kind is FailureKind.TOO_LARGE
    message = failure.message.replace("\u202f", " ")
    assert "1,048,576 × 1,048,576 in float32 needs 44 TiB, 23 GiB are free" in message


def test_a_workload_without_a_dtype_says_so(monkeypatch: pytest.MonkeyPatch):
    description = msgspec.structs.replace(Matmul.description, dtypes=("float32",))
    monkeypatch.setattr(Matmul, "description", description)
    failure = failure_of(workload="matmul", dtype="float16")
    assert failure.kind is FailureKind.DTYPE_UNSUPPORTED
    assert "choose float32" in failure.message


def test_an_unexpected_error_is_a_value_with_its_trace_for_the_log(
    monkeypatch: pytest.MonkeyPatch,
):
    def broken(*arguments: object) -> object:
        raise ZeroDivisionError("by design")

    monkeypatch.setattr(Elementwise, "prepare", broken)
    failure = failure_of()
    assert failure.kind is FailureKind.INTERNAL
    assert failure.message == "ZeroDivisionError: by design"
    assert "in broken" in failure.traceback_text
    assert "Traceback" not in failure.message
