"""The allocator of the card that is looked at: asked for while somebody looks, and only then."""

from __future__ import annotations

import pytest

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import EmptyCache, ReadMemory
from tests.fakes.descriptions import described
from tests.fakes.pc import gt_1030, two_cards
from tests.fakes.scripted_engine import Pause
from tests.model.devices.looking import row, start


def questions(engines):
    return [request.device for request in engines.requests if isinstance(request, ReadMemory)]


@pytest.mark.parametrize("inventory", [two_cards()])
def test_pytorchs_memory_is_read_while_it_is_shown(qtbot, studio, with_cuda, model):
    start(qtbot, studio)
    assert row(model, "allocated").reason == "Not read yet."
    model._memory._timer.setInterval(60_000)
    model.see(is_seen=True)
    qtbot.waitUntil(lambda: row(model, "allocated").is_known)
    assert row(model, "allocated").value.startswith("1")
    assert row(model, "reserved").value.startswith("2")
    model.select(two_cards().cards[1].identity)
    qtbot.waitUntil(lambda: questions(with_cuda)[-1] == "cuda:1")
    model.see(is_seen=False)
    assert not model._memory._timer.isActive()
    qtbot.waitUntil(lambda: studio.session.is_free)
    with qtbot.assertNotEmitted(studio.session.request_submitted):
        model.select(two_cards().cards[0].identity)  # by another tab


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_the_first_answer_comes_with_the_engine(qtbot, studio, with_cuda, model):
    model._memory._timer.setInterval(60_000)
    model.see(is_seen=True)
    studio.start()
    qtbot.waitUntil(lambda: model.device is not None and row(model, "allocated").is_known)
    assert questions(with_cuda) == ["cuda:0"]
    model.see(is_seen=False)


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_it_is_asked_again_and_again_but_not_twice_at_once(
    qtbot, studio, with_cuda, model, monkeypatch
):
    submitted = []
    submit = studio.session.submit
    monkeypatch.setattr(
        studio.session, "submit", lambda request: submitted.append(request) or submit(request)
    )
    answers = with_cuda.scripts[ReadMemory]
    with_cuda.scripts[ReadMemory] = lambda engine, request: [Pause(), *answers(engine, request)]
    start(qtbot, studio)
    model._memory._timer.setInterval(5)
    model.see(is_seen=True)
    qtbot.waitUntil(with_cuda.latest.paused.is_set)
    for _ in range(5):
        with qtbot.waitSignal(model._memory._timer.timeout):
            pass
    assert submitted.count(ReadMemory(device="cuda:0")) == 1
    with_cuda.latest.go()
    qtbot.waitUntil(lambda: len(questions(with_cuda)) == 2)
    qtbot.waitUntil(with_cuda.latest.paused.is_set)
    with_cuda.latest.go()
    model.see(is_seen=False)
    qtbot.waitUntil(lambda: studio.session.state.is_idle)


@pytest.mark.parametrize("inventory", [gt_1030()])
@pytest.mark.parametrize("is_usable", [True, False])
def test_neither_a_cpu_nor_a_card_without_pytorch_is_asked(
    qtbot, studio, with_cuda, model, is_usable
):
    if not is_usable:
        with_cuda.scripts[DescribeEngine] = [described()]
    start(qtbot, studio)
    if is_usable:
        model.select("cpu")
    model._memory._timer.setInterval(5)
    model.see(is_seen=True)
    with qtbot.assertNotEmitted(studio.session.request_submitted, wait=50):
        pass
    assert questions(with_cuda) == []


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_working_engine_is_not_disturbed(qtbot, studio, with_cuda, model):
    refused = RequestFailed(failure=Failure(FailureKind.CUDA_ERROR, "No."))
    with_cuda.scripts[EmptyCache] = [Pause(), refused]
    start(qtbot, studio)
    work = EmptyCache(device="cuda:0")
    studio.session.submit(work)
    qtbot.waitUntil(with_cuda.latest.paused.is_set)
    model._memory._timer.setInterval(5)
    model.see(is_seen=True)
    with qtbot.assertNotEmitted(studio.session.request_submitted, wait=50):
        pass
    model.see(is_seen=False)
    with_cuda.latest.go()
    qtbot.waitUntil(lambda: studio.session.state.is_idle)
    assert questions(with_cuda) == []


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_fresh_engine_holds_nothing(qtbot, studio, with_cuda, model):
    start(qtbot, studio)
    model.see(is_seen=True)
    qtbot.waitUntil(lambda: row(model, "allocated").is_known)
    model.see(is_seen=False)
    with qtbot.waitSignal(studio.session.engine_described):
        studio.session.restart()
    assert row(model, "allocated").reason == "Not read yet."


@pytest.mark.parametrize("inventory", [gt_1030()])
@pytest.mark.parametrize(
    ("end", "starts"),
    [
        (EngineEnded(exit_code=-11), 2),
        (RequestFailed(failure=Failure(FailureKind.CUDA_ERROR, "No.", fatal=True)), 2),
        (RequestFailed(failure=Failure(FailureKind.CUDA_ERROR, "No.")), 1),
    ],
)
def test_a_question_that_an_engine_failed_over_is_not_asked_again(
    qtbot, studio, with_cuda, model, end, starts
):
    answers = with_cuda.scripts[ReadMemory]
    with_cuda.scripts[ReadMemory] = [end]
    start(qtbot, studio)
    model._memory._timer.setInterval(5)
    with qtbot.waitSignal(studio.session.request_submitted):
        model.see(is_seen=True)
    qtbot.waitUntil(lambda: [type(r) for r in with_cuda.requests].count(DescribeEngine) == starts)
    qtbot.waitUntil(lambda: studio.session.state.is_idle)
    for _ in range(5):
        with qtbot.waitSignal(model._memory._timer.timeout):
            pass
    assert len(questions(with_cuda)) == 1
    with_cuda.scripts[ReadMemory] = answers
    model.select("cpu")
    model.select(gt_1030().cards[0].identity)
    qtbot.waitUntil(lambda: row(model, "allocated").is_known)
    model.see(is_seen=False)
    qtbot.waitUntil(lambda: studio.session.state.is_idle)
