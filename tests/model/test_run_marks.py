import time

import msgspec
import pytest

from gpu_studio.core.messages.check_messages import RunCheck
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.run_messages import RunWorkload
from tests.fakes.check_answers import check_round
from tests.fakes.descriptions import described_with_cuda, matmul
from tests.fakes.pc import gt_1030, reading
from tests.fakes.run_answers import finished, samples_of, started
from tests.fakes.scripted_engine import Pause
from tests.patience import limit

BATCH_OF = "batch of {size}"


@pytest.fixture
def inventory():
    return gt_1030()


def request(number=1):
    return RunWorkload(
        run_id=f"run-{number}", workload="matmul", device="cuda:0", size=512, dtype="float32",
        budget_s=0.1,
    )  # fmt: skip


@pytest.fixture
def paused_runs(engines):
    batched = msgspec.structs.replace(matmul(), size_text=BATCH_OF)
    engines.scripts[DescribeEngine] = [described_with_cuda(workloads=(batched,))]
    engines.scripts[RunWorkload] = lambda _engine, asked: [
        started(asked), Pause(), finished(asked, samples_of(asked))
    ]  # fmt: skip
    return engines


def run(qtbot, studio, engines, marks, asked):
    studio.session.submit(asked)
    with qtbot.waitSignal(marks.marks_changed):
        pass
    qtbot.waitUntil(engines.latest.paused.is_set)
    return marks.marks[-1]


def test_a_check_is_named_while_it_runs(qtbot, paused_runs, ready_studio):
    marks = ready_studio.runs
    asked = RunCheck(device="cuda:0", round_s=60.0)
    paused_runs.scripts[RunCheck] = list(check_round(asked, pause_in="compute"))
    reply = ready_studio.session.submit(asked)
    qtbot.waitUntil(lambda: marks.running_title != "")
    assert "check" in marks.running_title
    paused_runs.latest.go()
    qtbot.waitUntil(lambda: reply.is_finished)
    assert not marks.running_title


def test_a_run_is_marked_and_its_effect_reported(qtbot, paused_runs, ready_studio, sensor_source):
    marks = ready_studio.runs
    idle = {"temperature_c": 26.0, "pstate": 8}
    before = reading(gt_1030(), time.monotonic(), **idle)
    with qtbot.waitSignal(ready_studio.sensors.reading_taken):
        sensor_source.send(before)
    earlier_s = time.monotonic()
    mark = run(qtbot, ready_studio, paused_runs, marks, request())
    assert mark.ended_s is None
    assert marks.running_title == mark.title
    assert earlier_s <= mark.began_s <= time.monotonic()
    with qtbot.waitSignal(marks.marks_changed):
        paused_runs.latest.go()
    assert marks.running_title == ""
    with (
        qtbot.assertNotEmitted(marks.effect_changed),
        qtbot.waitSignal(ready_studio.sensors.reading_taken),
    ):  # one that was on its way says nothing of the whole run
        sensor_source.send(reading(gt_1030(), before.taken_at_s - 1.0, **idle))
    after = reading(gt_1030(), time.monotonic(), temperature_c=40.0, pstate=0)
    with qtbot.waitSignal(marks.effect_changed) as changed:
        sensor_source.send(after)
    assert "P8 → P0" in changed.args[0]
    assert "40\u202f°C" in changed.args[0]
    assert marks.effect == changed.args[0]


def test_a_mark_stays_with_its_card_when_its_number_changes(
    qtbot, paused_runs, ready_studio, sensor_source, monkeypatch
):
    limit(monkeypatch, last_reading_ms=10)
    marks = ready_studio.runs
    mark = run(qtbot, ready_studio, paused_runs, marks, request())
    ready_studio.sensors.number_for("GPU-another")  # as an engine that sees only another card
    (card,) = ready_studio.sensors.inventory.cards
    assert (card.address, mark.identity) == (None, card.identity)
    with qtbot.waitSignal(marks.effect_changed):
        paused_runs.latest.go()


def test_sensors_are_read_while_a_run_is_under_way(qtbot, paused_runs, ready_studio):
    marks = ready_studio.runs
    ready_studio.sensors.want("window", False)
    assert not ready_studio.sensors.is_polled
    run(qtbot, ready_studio, paused_runs, marks, request())
    assert ready_studio.sensors.is_polled


def test_sensors_that_say_nothing_more_are_not_waited_for(
    qtbot, paused_runs, ready_studio, monkeypatch
):
    limit(monkeypatch, last_reading_ms=10)
    ready_studio.sensors.want("window", False)
    marks = ready_studio.runs
    run(qtbot, ready_studio, paused_runs, marks, request())
    with qtbot.waitSignal(marks.effect_changed) as changed:
        paused_runs.latest.go()
    assert changed.args[0].endswith("too short for a sensor reading.")
    assert not ready_studio.sensors.is_polled
