from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

import msgspec
import pytest
import torch

from gpu_studio.core.benchmark.trust import stamp_of
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.protocol import (
    Event,
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStarted,
    RunStopped,
    SamplesMeasured,
    decode_event,
    encode,
)
from gpu_studio.core.statistics import grouped_interval, summarize
from gpu_studio.engine import admission, run, run_check
from gpu_studio.engine.dispatch import Dispatcher
from gpu_studio.engine.workloads.call import Call
from gpu_studio.engine.workloads.elementwise import Elementwise
from gpu_studio.engine.workloads.matmul import Matmul
from gpu_studio.engine.workloads.proof import Verification
from tests.engine.answers import ask, only, run_request

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def short_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_studio.engine.timing.WARM_UP_S", 0.02)


def failure_of(**changes: object):
    events = ask(run_request(**changes))
    assert isinstance(events[-1], RunFailed)
    assert events[-1].run_id == "r1"
    return events[-1].failure


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


@pytest.mark.parametrize("workload", ["elementwise", "matmul"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_workload_runs_and_is_verified_in_every_dtype(workload: str, dtype: str):
    result = ask(run_request(workload=workload, dtype=dtype))[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is True
    assert (result.workload, result.dtype, result.size) == (workload, dtype, 32)


def test_the_result_is_the_summary_of_every_sample_that_was_sent():
    events = ask(run_request(budget_s=0.4))
    samples_s = [sample for event in only(SamplesMeasured, events) for sample in event.samples_s]
    result, summary = events[-1], summarize(samples_s)
    assert isinstance(result, RunFinished)
    assert result.samples == len(samples_s) > 0
    assert result.median_s == summary.median_s
    assert result.iqr_s == summary.iqr_s
    assert result.ci95_s == grouped_interval(samples_s, result.calls_per_sample)
    assert result.p99_s == summary.p99_s
    assert result.throughput == result.bytes_per_call / result.median_s
    assert result.calls_per_sample == only(SamplesMeasured, events)[0].calls_per_sample


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
    assert result.elapsed_s >= spent_s[-1] + result.warm_up_s


@pytest.mark.parametrize(("chosen", "batch"), [(1, 1), (3, 3), (7, 10), (21, 30), (400, 60)])
def test_a_run_makes_exactly_the_calls_that_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, chosen: int, batch: int
):
    monkeypatch.setattr(run, "choose_calls", lambda *arguments: chosen)
    timed: list[int] = []

    class Counting:
        def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
            timed.append(calls)
            return calls * 1.0, calls * 1.0

    monkeypatch.setattr(run, "stopwatch_for", lambda call, device: Counting())
    events = ask(run_request(budget_s=0.01, calls=60))
    result = events[-1]
    assert isinstance(result, RunFinished)
    assert timed == [batch] * (60 // batch)
    assert result.samples * result.calls_per_sample == 60
    assert result.timed_s == 60.0
    assert sum(len(line.samples_s) for line in only(SamplesMeasured, events)) == result.samples


def test_a_run_of_many_calls_can_be_stopped_between_two():
    events = stop_when(lambda event: isinstance(event, SamplesMeasured), calls=1_000_000)
    assert isinstance(events[-1], RunStopped)
    taken = [
        event.calls_per_sample * len(event.samples_s) for event in only(SamplesMeasured, events)
    ]
    assert 0 < sum(taken) < 1_000_000


def test_an_interval_that_is_met_ends_a_run_early():
    events = ask(run_request(budget_s=3600.0, stop_at_relative_interval=10.0))
    assert isinstance(events[-1], RunFinished)
    assert only(SamplesMeasured, events)[-1].spent_s < 3600.0


def test_lines_are_at_most_sixty_a_second(monkeypatch: pytest.MonkeyPatch):
    now_s = [0.0]

    def perf_counter() -> float:
        return now_s[0]

    class TwoMilliseconds:
        def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
            now_s[0] += 2e-3
            return 2e-3, 2e-3

    monkeypatch.setattr(run.time, "perf_counter", perf_counter)
    monkeypatch.setattr(run, "stopwatch_for", lambda call, device: TwoMilliseconds())
    monkeypatch.setattr(run, "time_once", lambda call, device: 2e-3)
    monkeypatch.setattr(run, "warm_up", lambda *arguments: 2e-3)
    lines = only(SamplesMeasured, ask(run_request(budget_s=1.0)))
    assert 50 <= len(lines) <= 60
    assert sum(len(line.samples_s) for line in lines) == 500


def test_a_run_that_is_looked_at_rests_after_each_line(monkeypatch: pytest.MonkeyPatch):
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

    monkeypatch.setattr(run.time, "perf_counter", lambda: now_s[0])
    monkeypatch.setattr(run, "stopwatch_for", lambda call, device: TwoMilliseconds())
    monkeypatch.setattr(run, "time_once", lambda call, device: 2e-3)
    monkeypatch.setattr(run, "warm_up", lambda *arguments: 2e-3)
    monkeypatch.setattr(run, "choose_calls", lambda *arguments: 1)
    events = []
    for event in Dispatcher().run(run_request(budget_s=1.0, rest_s=0.04), Stop()):
        if isinstance(event, SamplesMeasured):
            story.append("line")
        events.append(event)
    lines = only(SamplesMeasured, events)
    # A quarter of a second of samples each; the batch after a rest is in none of them.
    assert [len(line.samples_s) for line in lines] == [125, 125, 125, 125]
    assert lines[-1].spent_s == pytest.approx(1.0)
    turn = ["batch"] * 125 + ["line"]
    assert story == turn + ["rest", "batch", *turn] * 3
    assert isinstance(events[-1], RunFinished)
    assert events[-1].samples == 500


def test_a_stop_in_a_rest_ends_the_run():
    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            self.set()
            return True

    events = list(Dispatcher().run(run_request(budget_s=60.0, rest_s=0.04), Stop()))
    assert isinstance(events[-1], RunStopped)
    assert len(only(SamplesMeasured, events)) == 1


def test_what_the_work_doubts_is_in_the_result(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Call, "doubts", lambda call: {"odd": "It is odd."})
    result = ask(run_request())[-1]
    assert isinstance(result, RunFinished)
    assert "odd" in stamp_of(result).words


def test_a_run_survives_the_pipe():
    for event in ask(run_request()):
        assert decode_event(encode(event)) == event


def test_a_result_says_where_and_how_it_was_obtained():
    dispatcher = Dispatcher(in_window_process=True, cpu_name="Ryzen 7 5700G")
    result = ask(run_request(), dispatcher)[-1]
    assert isinstance(result, RunFinished)
    assert result.device_name == "Ryzen 7 5700G"
    assert result.in_window_process
    assert result.cpu_threads == torch.get_num_threads()
    assert result.torch_version == torch.__version__
    assert (result.throttled, result.other_processes, result.tf32) == (None, None, None)
    assert not ask(run_request())[-1].in_window_process


def test_a_large_result_is_checked_small_and_whole_then_by_rows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run_check, "_LONGEST_CHECK_S", 3600.0)
    events = ask(run_request(size=600, workload="matmul"))
    result = events[-1]
    assert isinstance(result, RunFinished)
    assert result.verification == (
        "exact for whole numbers: all of 512 × 512 and 16 rows of 600 × 600"
    )
    warm_up = only(RunPhaseChanged, events)[2]
    assert warm_up.expected_call_s > 0  # a long call is announced before the first one


def test_a_large_result_that_would_take_long_to_check_is_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run_check, "_LONGEST_CHECK_S", 0.0)
    result = ask(run_request(size=600, workload="matmul"))[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is None
    assert result.verification == (
        "too long to check at this size; exact for whole numbers: all of 512 × 512"
    )
    assert stamp_of(result).words[0] == "not checked"


def test_a_wrong_small_result_condemns_a_large_one_that_takes_long(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(run_check, "_LONGEST_CHECK_S", 0.0)
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


def stop_when(wanted: Callable[[object], bool], **changes: object) -> list[object]:
    stop = threading.Event()
    events = []
    for event in Dispatcher().run(run_request(budget_s=60.0, **changes), stop):
        events.append(event)
        if wanted(event):
            stop.set()
    return events


@pytest.mark.parametrize("phase", ["set-up", "verification", "warm-up"])
def test_a_stop_before_the_timing_ends_the_run_there(phase: str):
    events = stop_when(lambda event: isinstance(event, RunPhaseChanged) and event.phase == phase)
    assert events[-1] == RunStopped(run_id="r1", samples=0)
    assert [event.phase for event in only(RunPhaseChanged, events)][-1] == phase


def test_a_stop_in_the_timing_keeps_and_counts_the_samples():
    events = stop_when(lambda event: isinstance(event, SamplesMeasured))
    samples = sum(len(event.samples_s) for event in only(SamplesMeasured, events))
    assert samples > 0
    assert events[-1] == RunStopped(run_id="r1", samples=samples)


class Prepared:
    """Follows the operands of every product that is prepared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._operands: list[weakref.ref[torch.Tensor]] = []
        prepare = Matmul.prepare

        def noting(workload: Matmul, *arguments: object) -> object:
            call = prepare(workload, *arguments)
            self._operands.extend(weakref.ref(tensor) for tensor in call.function.args)
            return call

        monkeypatch.setattr(Matmul, "prepare", noting)

    @property
    def are_gone(self) -> bool:
        assert len(self._operands) == 2
        return all(reference() is None for reference in self._operands)


@pytest.mark.parametrize("end", [RunFinished, RunStopped, RunFailed])
def test_what_was_taken_is_free_when_the_end_is_told(
    monkeypatch: pytest.MonkeyPatch, end: type[Event]
):
    prepared = Prepared(monkeypatch)
    stop = threading.Event()
    if end is RunFailed:
        monkeypatch.setattr(run, "choose_calls", lambda *arguments: 1 / 0)
    for event in Dispatcher().run(run_request(workload="matmul"), stop):
        if isinstance(event, end):
            assert prepared.are_gone
        elif end is RunStopped and isinstance(event, SamplesMeasured):
            stop.set()
    assert isinstance(event, end)


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"workload": "crunch"}, FailureKind.BAD_REQUEST, ["crunch", "elementwise, matmul"]),
        ({"dtype": "float8"}, FailureKind.BAD_REQUEST, ["float8", "bfloat16"]),
        ({"size": 0}, FailureKind.BAD_REQUEST, ["size 0", "1048576"]),
        ({"size": -5}, FailureKind.BAD_REQUEST, ["-5"]),
        ({"size": 1 << 40}, FailureKind.BAD_REQUEST, [str(1 << 40)]),
        ({"budget_s": 0.0}, FailureKind.BAD_REQUEST, ["budget"]),
        ({"rest_s": -0.1}, FailureKind.BAD_REQUEST, ["rest"]),
        ({"rest_s": 2.0}, FailureKind.BAD_REQUEST, ["rest"]),
        ({"budget_s": float("nan")}, FailureKind.BAD_REQUEST, ["budget"]),
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
    assert "1048576 × 1048576 in float32 needs 44 TiB, 23 GiB are free" in message


def test_the_refusal_counts_the_pcs_real_memory():
    failure = failure_of(size=1 << 20)
    assert failure.kind is FailureKind.TOO_LARGE


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
