import time
from typing import Any

import pytest
import torch

from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.engine_messages import Stop
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
    WorkloadDescription,
)
from gpu_studio.core.protocol import encode
from gpu_studio.core.race.contestant import Contestant, race_requests
from gpu_studio.core.race.pictures import LEARN, PICTURES
from gpu_studio.core.race.verdict import judge
from gpu_studio.core.tensors import DTYPES
from gpu_studio.engine.device import accelerator_of, resolve, synchronize, time_once, uuid_of
from gpu_studio.engine.serve import EXIT_FATAL
from gpu_studio.engine.workloads.case import Case, dtype_eps, make_case, product_dtype
from gpu_studio.engine.workloads.learn import (
    LearnDrawing,
    photo_of,
    reference_curve,
    sharpness_curve,
    tolerance_db,
)
from gpu_studio.engine.workloads.registry import WORKLOADS, find_workload
from gpu_studio.hardware.engine_sensor import EngineSensor
from tests.engine.answers import only, run_request
from tests.engine.engine_child import EngineChild
from tests.gpu.conftest import Ask, StartEngine

_NAMES = [workload.description.name for workload in WORKLOADS]
_SQUARE = ("elementwise", "matmul")
# The event clock's steps, and that two clocks drift a little.
_CLOCK_STEP_S = 5e-6
_DRIFT = 1e-3

# An index out of bounds trips an assertion inside the kernel: the card's context is lost for good.
_BREAKS_THE_CONTEXT = """
import torch
from gpu_studio.engine.workloads.elementwise import Elementwise
from gpu_studio.engine.workloads.call import FunctionCall
def prepare(self, case):
    a = torch.zeros(8, device=case.device)
    index = torch.full((8,), 1000, device=case.device)
    return FunctionCall(lambda: a[index])
Elementwise.prepare = prepare
"""


def run_on(card: str, **changes: Any) -> RunWorkload:
    return run_request(device=card, **{"size": 256, "budget_s": 0.1, **changes})


def quickest_on(card: str, name: str, **changes: Any) -> RunWorkload:
    """Return a run of a workload at its quickest size; skips what cannot run here."""
    workload = find_workload(name)
    if workload.skipped():
        pytest.skip(workload.skipped())
    description = workload.description
    dtype = "float32" if "float32" in description.dtypes else description.dtypes[0]
    # An epoch is quickest in few batches, all else with little to do.
    size = max(description.sizes) if name == "dataloader" else min(description.sizes)
    return run_on(card, **{"workload": name, "size": size, "dtype": dtype, **changes})


def finished(events: list[Event]) -> RunFinished:
    assert isinstance(events[-1], RunFinished), events[-1]
    return events[-1]


@pytest.mark.parametrize("workload", _NAMES)
def test_a_run_ends_with_the_card_it_was_asked_for(card: str, workload: str, ask: Ask) -> None:
    result = finished(ask(quickest_on(card, workload)))
    device = resolve(card)
    assert (result.device, result.device_name) == (card, torch.cuda.get_device_name(device))
    assert result.conditions.torch_version == torch.__version__
    assert result.verified is not None
    is_ampere = torch.cuda.get_device_capability(device) >= (8, 0)
    # cuDNN, which computes convolutions, has a switch of its own.
    switch = torch.backends.cudnn if workload == "conv2d" else torch.backends.cuda.matmul
    assert (result.conditions.computed_in == "tf32") is (is_ampere and switch.allow_tf32)


@pytest.mark.real_kernels
@pytest.mark.parametrize("size", [64, 1024])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("workload", _SQUARE)
def test_results_are_right_in_every_dtype(
    card: str, workload: str, dtype: str, size: int, ask: Ask
) -> None:
    events = ask(run_on(card, workload=workload, dtype=dtype, size=size, budget_s=0.02))
    if isinstance(events[-1], RunFailed):  # a card too old for it says so, and not by a number
        assert events[-1].failure.kind is FailureKind.DTYPE_UNSUPPORTED
        pytest.skip(events[-1].failure.message)
    result = finished(events)
    assert result.verified is True, result.verification
    assert f"{size} × {size}" in result.verification


@pytest.mark.real_kernels
@pytest.mark.parametrize("workload", _NAMES)
def test_the_smallest_and_a_larger_one_are_right(card: str, workload: str, ask: Ask) -> None:
    for size in find_workload(workload).description.sizes[:2]:
        result = finished(ask(quickest_on(card, workload, size=size, budget_s=0.02)))
        assert result.verified is not False, result.verification


@pytest.mark.real_kernels
@pytest.mark.parametrize("workload", _SQUARE)
def test_a_proof_notices_one_wrong_number(
    card: str, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that cannot fail proves nothing: one number of the card's is made wrong."""
    from gpu_studio.engine.workloads import elementwise, matmul, proof

    right = proof.fetch_rows

    def wrong(*arguments: Any) -> Any:
        rows = right(*arguments).copy()
        rows[-1, -1] += 1.0
        return rows

    for module in (elementwise, matmul):
        monkeypatch.setattr(module, "fetch_rows", wrong)
    check = find_workload(workload).verify(Case(device=resolve(card), size=64))
    assert check.verified is False


def test_a_batch_is_no_longer_by_its_events_than_on_the_wall(card: str) -> None:
    device = resolve(card)
    call = find_workload("elementwise").prepare(Case(device=device, size=512))
    time_once(call, device)
    stopwatch = accelerator_of(device).stopwatch(device)
    for calls in (1, 10, 100):
        card_s, wall_s = stopwatch.time(call, calls)
        assert 0 < card_s <= wall_s * (1 + _DRIFT) + _CLOCK_STEP_S


def test_a_batch_is_timed_until_the_card_has_done_it(card: str) -> None:
    """Launches return at once, so the time to launch is no time of the work."""
    device = resolve(card)
    call = find_workload("elementwise").prepare(Case(device=device, size=2048))
    stopwatch = accelerator_of(device).stopwatch(device)
    time_once(call, device)
    one_s = min(stopwatch.time(call, 1)[0] for _ in range(5))
    waited_s = []
    for _ in range(5):
        hundred_s, _ = stopwatch.time(call, 100)
        assert hundred_s > 20 * one_s
        start_s = time.perf_counter()
        synchronize(device)
        waited_s.append(time.perf_counter() - start_s)
    # The stopwatch leaves an idle card behind; a busy PC may interrupt some of these.
    assert min(waited_s) < 0.1 * hundred_s


@pytest.mark.real_kernels
def test_more_work_takes_longer(card: str, ask: Ask) -> None:
    medians_s = [
        finished(ask(run_on(card, workload="matmul", size=size))).median_s for size in (64, 4096)
    ]
    assert medians_s[1] > 10 * medians_s[0]


def test_samples_are_batches_within_the_budget(card: str, ask: Ask) -> None:
    events = ask(run_on(card, budget_s=0.3))
    result = finished(events)
    lines = only(SamplesMeasured, events)
    samples_s = [sample for line in lines for sample in line.samples_s]
    assert result.samples == len(samples_s)
    assert result.median_s * result.calls_per_sample >= 1e-3
    timed_s = sum(samples_s) * result.calls_per_sample
    assert timed_s <= lines[-1].spent_s * (1 + _DRIFT) + _CLOCK_STEP_S * len(samples_s)
    assert lines[-1].spent_s >= 0.3
    assert result.times.first_call_s > 0
    assert result.times.warm_up_s >= 0.3


def test_a_run_reads_its_own_cards_memory_and_leaves_nothing(card: str, ask: Ask) -> None:
    finished(ask(run_on(card)))  # what stays with the first work of all is there now
    (before,) = ask(ReadMemory(device=card))
    reads = only(MemoryRead, ask(run_on(card, size=512)))
    assert reads
    for read in reads:
        assert read.device == card
        # Three operands and nothing else is left between batches.
        assert read.allocated_bytes == before.allocated_bytes + 3 * 512 * 512 * 4
        assert read.total_bytes == torch.cuda.mem_get_info(resolve(card))[1]
    (after,) = ask(ReadMemory(device=card))
    assert after.allocated_bytes == before.allocated_bytes


def test_the_stamp_has_what_the_driver_reports(card: str, ask: Ask) -> None:
    now = EngineSensor().read(uuid_of(resolve(card)))
    assert now is not None
    result = finished(ask(run_on(card)))
    is_told = now.clock_event_reasons is not None or now.sm_clock_mhz is not None
    assert (result.conditions.throttled is not None) == is_told


def test_a_stop_ends_a_run_between_two_calls(card: str, engine: EngineChild) -> None:
    asked: list[Event] = []

    def stop_at_samples(event: Event) -> None:
        if isinstance(event, SamplesMeasured) and not asked:
            asked.append(event)
            engine.send(encode(Stop()))

    events = engine.ask(run_on(card, budget_s=3600.0), stop_at_samples)
    assert isinstance(events[-1], RunStopped)
    assert events[-1].samples == sum(len(e.samples_s) for e in only(SamplesMeasured, events))
    assert isinstance(engine.ask(run_on(card))[-1], RunFinished)


@pytest.mark.real_kernels
def test_a_broken_context_ends_the_engine_after_its_answer(
    card: str, start_engine: StartEngine
) -> None:
    one = start_engine(prelude=_BREAKS_THE_CONTEXT)
    events = one.ask(run_on(card))
    assert isinstance(events[-1], RunFailed)
    assert events[-1].failure.kind is FailureKind.CUDA_ERROR
    assert events[-1].failure.fatal
    assert [event.phase for event in only(RunPhaseChanged, events)][-1] == "warm-up"
    assert one.wait() == EXIT_FATAL
    assert isinstance(start_engine().ask(run_on(card))[-1], RunFinished)


def test_what_cannot_fit_the_card_is_refused(card: str, ask: Ask) -> None:
    events = ask(run_on(card, size=1 << 18))
    assert isinstance(events[-1], RunFailed)
    assert events[-1].failure.kind is FailureKind.TOO_LARGE
    assert card in events[-1].failure.message


@pytest.mark.parametrize("workload", _NAMES)
def test_every_snippet_runs_as_it_stands(
    card: str, workload: str, capfd: pytest.CaptureFixture[str]
) -> None:
    request = quickest_on(card, workload)
    one = find_workload(workload)
    case = make_case(one.description, resolve(card), request.size, request.dtype)
    exec(compile(one.snippet(case), "<snippet>", "exec"), {"__name__": "__main__"})
    assert "s a call" in capfd.readouterr().out


on_real_kernels = pytest.mark.real_kernels


@on_real_kernels
@pytest.mark.parametrize("picture", PICTURES, ids=lambda one: one.name)
def test_a_race_is_verified_and_reaches_its_line(
    ask: Ask, card: str, picture: WorkloadDescription
) -> None:
    for dtype in picture.dtypes:
        (request,) = race_requests(
            picture, picture.race.default_size, [Contestant(device=card, dtype=dtype)], 120.0
        )
        result = ask(request)[-1]
        if isinstance(result, RunFailed):  # bfloat16 products on an old card
            assert result.failure.kind is FailureKind.DTYPE_UNSUPPORTED, result
            continue
        assert isinstance(result, RunFinished)
        assert result.verified, (dtype, result.verification)
        assert result.outcome.reached, (dtype, result.outcome)
        assert set(result.details.parts_s) == {"launch", "compute"}


@on_real_kernels
def test_a_card_learns_over_steps_like_float64(card: str) -> None:
    case = Case(device=resolve(card), size=64)
    photo = photo_of(Case(device=torch.device("cpu"), size=64))
    found = sharpness_curve(LearnDrawing(case, photo), 100)
    expected = reference_curve(case, photo, 100)
    allowed = tolerance_db(dtype_eps(product_dtype(case)), 100)
    assert max(abs(a - b) for a, b in zip(found, expected, strict=True)) <= allowed
    torch.cuda.synchronize(case.device)


@on_real_kernels
def test_a_race_of_the_cpu_and_a_card_ends_with_a_sentence(ask: Ask, card: str) -> None:
    runs = []
    for request in race_requests(
        LEARN, 64, [Contestant(device="cpu"), Contestant(device=card)], 60.0
    ):
        run = Run(request)
        for event in ask(request):
            run.apply(event)
        runs.append(run)
    finished = judge(LEARN, runs).finished
    assert all(one.verified for one in finished.contestants)
    assert finished.sentence
