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


def test_a_run_is_marked_and_keeps_its_card_when_its_number_changes(
    qtbot, paused_runs, ready_studio, sensor_source
):
    marks, sensors = ready_studio.runs, ready_studio.sensors
    before = reading(gt_1030(), time.monotonic(), temperature_c=26.0, pstate=8)
    with qtbot.waitSignal(sensors.reading_taken):
        sensor_source.send(before)
    sensors.want("window", False)
    assert not sensors.is_polled
    earlier_s = time.monotonic()
    mark = run(qtbot, ready_studio, paused_runs, marks, request())
    assert sensors.is_polled
    assert mark.ended_s is None
    assert marks.running_title == mark.title
    assert earlier_s <= mark.began_s <= time.monotonic()
    sensors.number_for("GPU-another")  # as an engine that sees only another card
    (card,) = sensors.inventory.cards
    assert (card.address, mark.identity) == (None, card.identity)
    with qtbot.waitSignal(marks.marks_changed):
        paused_runs.latest.go()
    assert marks.running_title == ""
    assert marks.marks[-1].ended_s is not None
    late = msgspec.structs.replace(before, taken_at_s=mark.began_s - 1.0)  # was on its way
    after = reading(gt_1030(), time.monotonic(), temperature_c=40.0, pstate=0)
    said = []
    marks.effect_changed.connect(said.append)
    with qtbot.waitSignal(marks.effect_changed):
        sensor_source.send(late)
        sensor_source.send(after)
    (effect,) = said
    assert effect.startswith("P8 → P0, +14\u202f°C, ")
    assert effect.endswith(f" in {mark.title}.")
    assert not sensors.is_polled
