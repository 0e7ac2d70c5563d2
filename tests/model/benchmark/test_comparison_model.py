from __future__ import annotations

import pytest

from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.run_messages import RunInTurns, RunWorkload, WorkloadOption
from gpu_studio.model.benchmark.comparison_model import ComparisonModel
from gpu_studio.model.pages import AMP
from tests.fakes.descriptions import described, described_with_cuda, elementwise
from tests.fakes.run_answers import run_events, started
from tests.fakes.scripted_engine import Pause

OPTIONS = (
    WorkloadOption(name="amp", title="AMP", sentence="Mixed.", values=("off", "on")),
    WorkloadOption(name="workers", title="Workers", sentence="Some.", values=("0", "2")),
)


@pytest.fixture
def workload():
    import msgspec

    return msgspec.structs.replace(elementwise(), name="train_step", options=OPTIONS)


@pytest.fixture
def engines(engines, workload):
    engines.scripts[DescribeEngine] = [described(workloads=(workload,))]
    return engines


@pytest.fixture
def model(engines, ready_studio):
    return ComparisonModel(ready_studio, "train_step", AMP)


def test_every_combination_is_run_in_turn(model, engines, qtbot):
    model.start("cpu", 256, 0.5, {"amp": ["off", "on"], "workers": ["2"]})
    assert model.is_running
    assert not model.can_start
    qtbot.waitUntil(lambda: not model.is_running)
    asked = [request for request in engines.requests if isinstance(request, RunWorkload)]
    assert [request.options for request in asked] == [
        {"amp": "off", "workers": "2"}, {"amp": "on", "workers": "2"},
    ]  # fmt: skip
    assert {(r.workload, r.device, r.size, r.dtype, r.budget_s) for r in asked} == {
        ("train_step", "cpu", 256, "float32", 0.5)
    }
    assert len({request.run_id for request in asked}) == 2
    assert [run.state for run in model.runs] == [RunState.FINISHED] * 2


def test_an_option_without_a_value_is_left_to_its_default(model):
    assert model.combinations({"amp": ["on"], "workers": []}) == [{"amp": "on"}]
    assert model.combinations({}) == [{}]


def test_a_stop_ends_the_run_and_forgets_the_others(model, engines, qtbot):
    engines.scripts[RunWorkload] = lambda _engine, request: [started(request), Pause()]
    model.start("cpu", 256, 0.5, {"amp": ["off", "on"]})
    qtbot.waitUntil(engines.latest.paused.is_set)
    model.stop()
    qtbot.waitUntil(lambda: not model.is_running)
    assert [run.state for run in model.runs] == [RunState.STOPPED] * 2
    assert len([one for one in engines.latest.requests if isinstance(one, RunInTurns)]) == 1


def test_what_others_run_is_not_shown_here(model, ready_studio, qtbot):
    request = RunWorkload(
        run_id="other", workload="train_step", device="cpu", size=1, dtype="float32"
    )
    ready_studio.session.submit(request)
    qtbot.waitUntil(lambda: ready_studio.session.is_free)
    assert model.runs == []


@pytest.mark.parametrize(
    ("kinds", "devices"), [(("cpu", "cuda"), ["cuda:0", "cuda:1", "cpu"]), (("cpu",), ["cpu"])]
)
def test_the_devices_are_those_the_workload_can_use(
    engines, studio, qtbot, workload, kinds, devices
):
    import msgspec

    able = msgspec.structs.replace(workload, device_kinds=kinds)
    engines.scripts[DescribeEngine] = [described_with_cuda(device_count=2, workloads=(able,))]
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free)
    rows = ComparisonModel(studio, "train_step", AMP).devices
    assert [row.address for row in rows] == devices


def test_what_cannot_run_here_does_not_start(engines, studio, qtbot, workload):
    import msgspec

    skipped = msgspec.structs.replace(workload, skipped="It needs two cards.")
    engines.scripts[DescribeEngine] = [described(workloads=(skipped,))]
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free)
    model = ComparisonModel(studio, "train_step", AMP)
    assert not model.can_start
    model.start("cpu", 1, 0.5, {})
    assert model.runs == []
    assert ComparisonModel(studio, "unknown", AMP).devices == ()


def test_a_run_is_read_while_it_goes(model, engines, qtbot):
    def events(_engine, request):
        for event in run_events(request):
            yield event
            if type(event).__name__ == "SamplesMeasured":
                yield Pause()

    engines.scripts[RunWorkload] = events
    model.start("cpu", 256, 0.5, {})
    qtbot.waitUntil(lambda: bool(model.runs[0].summary))
    assert model.runs[0].state is RunState.TIMING
    model.stop()
    qtbot.waitUntil(lambda: not model.is_running)


def test_the_same_combinations_run_again(model, engines, qtbot):
    model.run_again()
    assert not model.is_running  # there was none
    model.start("cpu", 256, 0.5, {"amp": ["off", "on"]})
    qtbot.waitUntil(lambda: not model.is_running)
    model.run_again()
    qtbot.waitUntil(lambda: not model.is_running)
    asked = [request for request in engines.requests if isinstance(request, RunWorkload)]
    assert [request.options for request in asked] == [{"amp": "off"}, {"amp": "on"}] * 2
    assert len({request.run_id for request in asked}) == 4
