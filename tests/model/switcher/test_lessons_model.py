"""Lessons: mistakes broken and fixed, experiments run, and what came of each."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import (
    DescribeEngine,
    EngineEnded,
    RequestFailed,
    TorchCard,
)
from gpu_studio.core.messages.pitfall_messages import (
    Figure,
    PitfallFailed,
    PitfallOutcome,
    RunPitfall,
)
from gpu_studio.core.messages.run_messages import RunWorkload, WorkloadOption
from gpu_studio.core.notice import Tone
from gpu_studio.model.switcher.lessons_model import LessonsModel
from tests.driving.window import plain
from tests.fakes.descriptions import described, described_with_cuda, elementwise
from tests.fakes.run_answers import kept_busy, run_events, started
from tests.fakes.scripted_engine import Pause
from tests.fakes.switching_answers import pitfall, pitfall_finished

PITFALLS = (
    pitfall("mixed_devices", otherwise="It costs time."), pitfall("tiny_model"),
)  # fmt: skip
WORKLOADS = tuple(
    msgspec.structs.replace(
        elementwise(), name=name, sizes=(32, 64, 128), takes_turns=name != "data_parallel",
        options=(
            WorkloadOption(name=option, title=option.capitalize(), sentence="", values=values),
            WorkloadOption(name="workers", title="Workers", sentence="", values=("0", "2")),
        ),
    )
    for name, option, values in (
        ("dataloader", "way", ("batch_by_batch", "pinned_non_blocking")),
        ("data_parallel", "way", ("DataParallel",)),
    )
)  # fmt: skip


@pytest.fixture
def cards():
    """How many cards PyTorch sees."""
    return 1


@pytest.fixture
def engines(engines, cards):
    known = {"pitfalls": PITFALLS, "workloads": WORKLOADS}
    engines.scripts |= {
        DescribeEngine: [
            described_with_cuda(device_count=cards, **known) if cards else described(**known)
        ],
        RunPitfall: lambda _engine, request: [pitfall_finished(request)],
        RunWorkload: lambda _engine, request: run_events(request),
    }
    return engines


@pytest.fixture
def model(engines, ready_studio):
    return LessonsModel(ready_studio)


def run_both(model, qtbot):
    for does in (model.break_it, model.fix_it):
        does()
        qtbot.waitUntil(lambda: model.can_run)


def measures(broken_s, fixed_s, **changes):
    """Return an engine's answer with a time that the fix should make less."""

    def answer(_engine, request):
        value_s = {"broken": broken_s, "fixed": fixed_s}[request.part]
        figure = Figure(name="call_s", title="A call", value=value_s, unit="s", aim="less")
        shown = PitfallOutcome(part=request.part, sentence="", figures=(figure,), **changes)
        return [pitfall_finished(request, **{request.part: shown})]

    return answer


@pytest.mark.parametrize("cards", [0, 1, 2])
def test_several_cards_are_a_lesson_only_where_there_are_several(model, cards):
    names = [one.name for one in model.lessons]
    several = ["data_parallel"] if cards == 2 else []
    assert names == ["mixed_devices", "tiny_model", "dataloader", *several]
    addresses = ["cuda:0", "cuda:1"][:cards]
    assert [row.address for row in model.rows] == (addresses or ["cpu"])
    model.choose(lesson="dataloader")
    assert [row.address for row in model.rows] == [*addresses, "cpu"]


def test_a_card_without_code_in_this_pytorch_is_not_tried(engines, studio, qtbot):
    cards = (
        TorchCard(torch_index=0, name="NVIDIA GeForce GT 1030", compute_capability="6.1"),
        TorchCard(torch_index=1, name="NVIDIA GeForce RTX 3060", compute_capability="8.6"),
    )
    engines.scripts[DescribeEngine] = [
        described_with_cuda(device_count=2, cards=cards, arch_list=("sm_75", "sm_86"))
    ]
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free)
    assert [row.address for row in LessonsModel(studio).rows] == ["cuda:1"]


@pytest.mark.parametrize(
    ("fixed_s", "is_disturbed", "words", "tone"),
    [
        (0.001, False, "With the fix: a call 1.00 ms instead of 2.00 ms.", Tone.GOOD),
        (0.004, False, "The fix did not help here: a call 4.00 ms", Tone.AMBER),
        (0.001, True, "With the fix: a call 1.00 ms instead of 2.00 ms. Doubtful", Tone.AMBER),
        (0.004, True, "Whether the fix helps here cannot be told: other programs", Tone.AMBER),
    ],
)
def test_the_answer_says_what_the_fix_changed_and_whether_that_is_sure(
    model, engines, qtbot, fixed_s, is_disturbed, words, tone
):
    engines.scripts[RunPitfall] = measures(0.002, fixed_s, is_disturbed=is_disturbed)
    model.fix_it()
    qtbot.waitUntil(lambda: model.can_run)
    assert not model.answer.sentence
    model.break_it()
    qtbot.waitUntil(lambda: model.can_run)
    assert plain(model.answer.sentence).startswith(words)
    assert model.answer.tone is model.part("fixed").tone is tone
    ((title, bars),) = model.figures
    assert title == "A call"
    assert [(bar.name, bar.value) for bar in bars] == [("Broken", 0.002), ("Fixed", fixed_s)]
    assert bars[1].role == ("good" if fixed_s < 0.002 else "amber")


@pytest.mark.parametrize("cards", [0])
def test_what_stood_in_for_a_card_is_told_beside_the_code_of_a_card(model, engines, qtbot):
    engines.scripts[RunPitfall] = measures(2, 1, stand_in="The CPU stands in for it.")
    model.break_it()
    qtbot.waitUntil(lambda: model.can_run)
    assert model.part("broken").title == "Broken, on a stand-in"
    assert model.stand_in == "The code is for a card. The CPU stands in for it."


@pytest.mark.parametrize("cards", [2])
def test_what_ran_on_another_device_is_not_set_beside_it(model, engines, qtbot):
    for does, device in ((model.break_it, 0), (model.fix_it, 1)):
        model.choose(device=model.devices[device][1])
        does()
        qtbot.waitUntil(lambda: model.can_run)
    assert engines.requests[-1].device == "cuda:1"
    assert (model.part("broken").title, model.part("fixed").title) == ("", "Fixed, on cuda:1")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            PitfallFailed(name="mixed_devices", failure=Failure(FailureKind.NO_KERNEL, "No code.")),
            "No code. The Devices tab",  # the next step
        ),
        (EngineEnded(exit_code=-9), "ran out of memory (RAM)"),
    ],
)
def test_beside_a_failure_an_earlier_result_is_marked_and_it_goes_with_the_next_try(
    model, engines, qtbot, answer, words
):
    works = engines.scripts[RunPitfall]
    run_both(model, qtbot)
    engines.scripts[RunPitfall] = [answer]
    model.fix_it()
    qtbot.waitUntil(lambda: model.can_run)
    assert words in model.answer.sentence
    assert model.answer.tone is Tone.FAILURE
    assert not model.figures
    assert model.part("fixed").title == "Fixed, on cuda:0 (earlier run)"
    assert model.part("fixed").tone is model.part("broken").tone is Tone.PLAIN
    engines.scripts[RunPitfall] = works
    model.break_it()
    assert not model.answer.sentence
    qtbot.waitUntil(lambda: model.can_run)


def test_how_long_the_device_worked_is_a_bar(model, engines, qtbot):
    busy = Figure(name="busy", title="Share of time working", value=0.25, unit="share")
    shown = PitfallOutcome(part="broken", sentence="", figures=(busy,))
    engines.scripts[RunPitfall] = lambda _engine, request: [pitfall_finished(request, broken=shown)]
    model.break_it()
    qtbot.waitUntil(lambda: model.can_run)
    (bar,) = model.busy
    assert bar.parts == (("computing", 0.25), ("waiting", 0.75))
    assert plain(bar.text) == "25 % at work"
    assert model.other_figures == []


# ── experiments ──────────────────────────────────────────────────────────────────────────────────


def test_every_way_of_an_experiment_is_run_and_compared(model, engines, qtbot):
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request,
        parts_s={"loading": 0.003, "computing": 0.001},
        curves={"loss": (2.0, 1.0)},
        findings=(f"{request.options['way']} was tried.",),
        peak_allocated_bytes=1 << 20,
    )
    model.choose(lesson="dataloader")
    model.run()
    assert model.progress == "0 of 2"
    qtbot.waitUntil(lambda: model.can_run)
    asked = [one for one in engines.requests if isinstance(one, RunWorkload)]
    assert [one.options for one in asked] == [
        {"way": "batch_by_batch"}, {"way": "pinned_non_blocking"},
    ]  # fmt: skip
    assert {(one.workload, one.device, one.size, one.budget_s <= 1) for one in asked} == {
        ("dataloader", "cuda:0", 64, True)
    }
    ((_, bars),) = model.figures
    names = ["batch by batch", "pinned without waiting"]
    assert [bar.name for bar in bars] == names
    assert "1 MiB" in plain(bars[0].text)
    assert bars[0].verdict
    assert "All options take about the same time" in model.answer.sentence
    assert [(bar.name, plain(bar.text)) for bar in model.busy] == [
        (name, "25 % at work") for name in names
    ]
    assert "overlap" in model.busy_note
    assert list(model.losses) == names
    assert [line.split()[-3] for line in model.findings.splitlines()] == [
        "batch_by_batch", "pinned_non_blocking",
    ]  # fmt: skip
    assert "dataloader" in model.done


def test_a_way_that_fails_says_so_and_the_lesson_is_not_done(model, engines, qtbot):
    failure = Failure(FailureKind.TOO_LARGE, "That does not fit.")
    engines.scripts[RunWorkload] = [RequestFailed(failure=failure)]
    model.choose(lesson="dataloader")
    model.run()
    qtbot.waitUntil(lambda: model.can_run)
    assert model.answer.sentence == failure.message
    assert "dataloader" not in model.done


@pytest.mark.parametrize("cards", [2])
def test_a_stop_ends_the_run_and_forgets_the_others(model, engines, qtbot):
    engines.scripts[RunWorkload] = lambda _engine, request: [started(request), Pause()]
    model.choose(lesson="data_parallel")
    model.run()
    qtbot.waitUntil(engines.latest.paused.is_set)
    model.stop()
    qtbot.waitUntil(lambda: model.can_run)
    ((_, bars),) = model.figures
    assert [bar.verdict for bar in bars] == [RunState.STOPPED.value] * 3
    assert len([one for one in engines.requests if isinstance(one, RunWorkload)]) == 1


def test_ways_without_a_verdict_beside_other_programs_run_again(model, engines, qtbot):
    answers = iter([kept_busy(2e-3), {}, {}, {}])
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request, **next(answers))
    model.choose(lesson="dataloader")
    model.run()
    qtbot.waitUntil(lambda: model.can_run)
    assert model.answer.sentence.startswith("Which is the fastest cannot")
    assert model.offers_again
    model.run()
    qtbot.waitUntil(lambda: model.can_run)
    assert not model.offers_again


def test_what_cannot_run_here_says_why(engines, studio, qtbot):
    skipped = msgspec.structs.replace(WORKLOADS[0], skipped="It needs a compiler.")
    engines.scripts[DescribeEngine] = [described(workloads=(skipped,))]
    model = LessonsModel(studio)
    assert model.reason
    assert model.lesson is None
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free)
    assert model.reason == "It needs a compiler."
    model.run()
    assert not model.is_running
