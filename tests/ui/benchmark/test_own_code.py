"""The user's own code on the page Run: asked for once, then run as every workload."""

import msgspec
import pytest
from PySide6.QtWidgets import QPlainTextEdit, QPushButton

from gpu_studio.core.benchmark.own_code import own_code
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.messages.run_messages import (
    OpenOwnCode,
    OwnCodeOpened,
    OwnCodePrinted,
    RunFinished,
    RunWorkload,
)
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.pages import BENCHMARK, LESSONS, RACE, RUN, Destination
from tests.driving.benchmark import headline, wait_over
from tests.driving.window import click, find, sees, text
from tests.fakes.descriptions import matmul
from tests.fakes.run_answers import run_events
from tests.fakes.scripted_engine import Pause
from tests.ui.benchmark.answers import with_a_card

WORKLOAD = msgspec.structs.replace(
    matmul(), name="mine.py", title="mine.py", sizes=(8, 16), dtypes=("float16",),
    size_text="size {size}",
)  # fmt: skip
OPENED = [OwnCodePrinted(text="hello\x1b\n"), OwnCodeOpened(workload=WORKLOAD, call_s=0.001)]


def answers(_engine, request):
    for event in run_events(request):
        if isinstance(event, RunFinished):
            details = msgspec.structs.replace(
                event.details, findings=("Line 3 copies.",), lessons=("starved_gpu",)
            )
            event = msgspec.structs.replace(event, details=details)
        yield event


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("import torch\n")
    return path


@pytest.fixture
def opening(engines):
    engines.scripts[OpenOwnCode] = OPENED
    engines.scripts[RunWorkload] = answers
    return engines


def drop(qtbot, tab, script):
    tab.go_to(Destination(page=BENCHMARK, paths=(script,)))
    qtbot.waitUntil(lambda: tab.model.is_own and tab.model.own.code.text == script.read_text())


def asked(engines, kind):
    return [one for one in engines.requests if isinstance(one, kind)]


def wait_done(qtbot, tab):
    qtbot.waitUntil(lambda: bool(tab.benchmark.results) and not tab.model.is_busy)


@with_a_card
def test_it_is_asked_for_once_and_runs_as_a_workload(qtbot, ready, opening, script):
    drop(qtbot, ready, script)
    assert str(script) in text(ready, "benchmark.warning")
    assert asked(opening, OpenOwnCode) == []
    click(ready, "benchmark.run")
    wait_done(qtbot, ready)
    runs = asked(opening, RunWorkload)
    assert {(run.workload, run.dtype, run.code.text) for run in runs} == {
        ("mine.py", "float16", "import torch\n")
    }
    assert [(run.size, run.device) for run in runs] == [
        (8, "cpu"), (8, "cuda:0"), (16, "cpu"), (16, "cuda:0"),
    ]  # fmt: skip
    assert "faster" in headline(ready)
    assert text(ready, "benchmark.own.findings") == "Line 3 copies."
    assert find(ready, "benchmark.own.printed", QPlainTextEdit).toPlainText() == "hello "
    qtbot.waitUntil(lambda: ready.model.own.session.state is EngineState.ABSENT)
    drop(qtbot, ready, script)
    wait_over(ready)
    qtbot.waitUntil(lambda: len(asked(opening, OpenOwnCode)) == 2)
    wait_done(qtbot, ready)
    script.write_text("import torch  # changed\n")
    drop(qtbot, ready, script)
    assert str(script) in text(ready, "benchmark.warning")
    assert len(asked(opening, OpenOwnCode)) == 2


def test_why_it_does_not_run_is_said_and_it_may_be_tried_again(qtbot, ready, opening, script):
    failure = Failure(FailureKind.OWN_CODE, "Line 2: nothing is called “model”.")
    opening.scripts[OpenOwnCode] = [RequestFailed(failure=failure)]
    drop(qtbot, ready, script)
    click(ready, "benchmark.run")
    qtbot.waitUntil(lambda: headline(ready) == "Your code does not run yet")
    assert "nothing is called “model”" in text(ready, "benchmark.hero.work")
    opening.scripts[OpenOwnCode] = OPENED
    click(ready, "benchmark.run")
    wait_done(qtbot, ready)
    assert headline(ready) != "Your code does not run yet"


def test_its_first_run_can_be_stopped_and_another_workload_follows(
    qtbot, ready, opening, script, studio
):
    opening.scripts[OpenOwnCode] = [Pause(deaf=True), *OPENED]
    drop(qtbot, ready, script)
    click(ready, "benchmark.run")
    qtbot.waitUntil(lambda: find(ready, "benchmark.stop", QPushButton).isEnabled())
    click(ready, "benchmark.stop")
    qtbot.waitUntil(lambda: find(ready, "benchmark.run", QPushButton).isEnabled())
    assert ready.benchmark.results == []
    ready.model.choose(workload="matmul")
    click(ready, "benchmark.run")
    wait_done(qtbot, ready)
    assert {run.code for run in asked(opening, RunWorkload)} == {None}
    assert studio.settings.choices.workload == "matmul"


def test_its_lesson_and_its_race_are_a_click_away_once_it_has_run(
    qtbot, ready, opening, script, studio
):
    drop(qtbot, ready, script)
    assert not sees(ready, "benchmark.own.race")
    click(ready, "benchmark.run")
    wait_done(qtbot, ready)
    with qtbot.waitSignal(studio.destination_wanted) as wanted:
        click(ready, "benchmark.own.lesson.starved_gpu")
    assert wanted.args == [Destination(page=LESSONS, lesson="starved_gpu")]
    with qtbot.waitSignal(studio.destination_wanted) as wanted:
        click(ready, "benchmark.own.race")
    code = ready.model.own.code
    assert wanted.args == [Destination(page=RACE, code=code, workload=WORKLOAD)]


def test_pasted_code_says_that_it_was_pasted(qtbot, ready, opening):
    ready.go_to(Destination(page=RUN, code=own_code("x = 1")))
    qtbot.waitUntil(lambda: ready.model.is_own)
    assert "the code that you pasted" in text(ready, "benchmark.warning")
    assert not sees(ready, "benchmark.own")


def test_a_file_that_cannot_be_read_is_named(qtbot, ready, opening, tmp_path, studio):
    path = tmp_path / "broken.py"
    path.write_bytes(b"\xff")
    ready.go_to(Destination(page=BENCHMARK, paths=(path,)))
    qtbot.waitUntil(lambda: studio.headlines.headline is not None)
    assert "broken.py cannot be opened" in studio.headlines.headline.sentence
    assert not ready.model.is_own
