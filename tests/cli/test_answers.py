import signal
import threading
from pathlib import Path

import pytest

from gpu_studio.cli import pc
from gpu_studio.cli.answers import CommandEngine, Interrupt, Printer, answers
from gpu_studio.cli.output import Progress
from gpu_studio.cli.pc import (
    HeldEngineError,
    check_device,
    describe,
    describe_beside,
    read_inventory,
)
from gpu_studio.core.devices.devices import (
    CardReading,
    Device,
    Driver,
    GpuProcess,
    Inventory,
    Reading,
)
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import Failure, FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.run_messages import RunStopped, RunWorkload
from gpu_studio.core.telemetry import Telemetry
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.run_answers import run_events, started
from tests.fakes.scripted_engine import Pause, ScriptedEngine
from tests.patience import PATIENCE_S, limit, until

REQUEST = RunWorkload(run_id="1", workload="matmul", device="cpu", size=64, dtype="float32")


def engine_with(script):
    return ScriptedEngine({RunWorkload: script, DescribeEngine: [described()]}, EngineEnvironment())


def work_of(engine):
    return CommandEngine(engine, Interrupt(), Progress())


def events_until_the_end(engine):
    """Return the answer of a run during whose first event Ctrl-C is pressed."""
    interrupt, events = Interrupt(), []
    with interrupt.recorded():
        for event in answers(engine, REQUEST, interrupt):
            events.append(event)
            if len(events) == 1:
                signal.raise_signal(signal.SIGINT)
    return events


def test_ctrl_c_stops_the_run_and_its_end_still_comes(monkeypatch):
    limit(monkeypatch, terminal_stop_s=3600.0)
    engine = engine_with([started(REQUEST), Pause()])
    events = events_until_the_end(engine)
    assert isinstance(events[-1], RunStopped)
    assert engine.was_stopped
    assert not engine.was_abandoned


def test_a_long_call_that_hears_no_stop_is_abandoned(monkeypatch):
    limit(monkeypatch, terminal_stop_s=0.05)
    engine = engine_with([started(REQUEST), Pause(deaf=True)])
    events = events_until_the_end(engine)
    assert events[-1] == EngineEnded(exit_code=None, stopped=True)
    assert engine.was_abandoned


def test_after_ctrl_c_no_other_request_of_a_plan_begins():
    engine = engine_with(lambda _engine, request: run_events(request))
    work = work_of(engine)

    class Pressing(Printer):
        def apply(self, event):
            work.interrupt.is_asked = True
            return ""

    assert not work.run([REQUEST, REQUEST], Pressing())
    assert engine.requests == [REQUEST]


def test_a_second_ctrl_c_breaks_off_at_once():
    interrupt = Interrupt()
    with interrupt.recorded():
        signal.raise_signal(signal.SIGINT)
        assert interrupt.is_asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ("cards", "words"), [(0, "there is cpu."), (2, "there are cpu, cuda:0, cuda:1.")]
)
def test_a_device_that_is_not_there_is_refused_with_those_that_are(cards, words):
    there = described_with_cuda(device_count=cards) if cards else described()
    check_device("cpu", there)
    with pytest.raises(StudioError, match="no cuda:7 here") as refused:
        check_device("cuda:7", there)
    assert words in str(refused.value)
    assert refused.value.kind is FailureKind.NO_SUCH_DEVICE


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (RequestFailed(failure=Failure(FailureKind.INTERNAL, "No torch here.")), "No torch"),
        (EngineEnded(exit_code=-11), "signal 11"),
        (EngineEnded(exit_code=-9), "memory"),
    ],
)
def test_an_engine_that_does_not_start_is_a_failure(last, words):
    engine = ScriptedEngine({DescribeEngine: [last]}, EngineEnvironment())
    with pytest.raises(StudioError, match=words) as raised:
        describe(work_of(engine))
    assert not isinstance(raised.value, HeldEngineError)
    assert not engine.was_stopped


CPU = Device(kind="cpu", name="CPU")
CARD = Device(kind="cuda", name="Card", uuid="GPU-1")
LOST = Device(kind="cuda", name="Lost", uuid="GPU-2", telemetry=Telemetry(fan_percent=1.0))
FOUND = Inventory(devices=(CPU, CARD, LOST))


class Reader:
    """Stands in for the sensor reader: yields a script, then waits to be closed."""

    script: tuple = ()
    hangs = False

    def __init__(self, period_s, log_path):
        self.closed = threading.Event()

    def readings(self):
        yield from self.script
        if self.hangs:
            self.closed.wait(2 * PATIENCE_S)

    def close(self):
        self.closed.set()


def inventory_of(monkeypatch, *script, hangs=False):
    kind = type("Scripted", (Reader,), {"script": script, "hangs": hangs})
    monkeypatch.setattr(pc, "SensorReader", kind)
    return read_inventory(Path("log"))


def test_the_inventory_has_the_first_reading(monkeypatch):
    process = GpuProcess(pid=7, name="python")
    reading = Reading(
        taken_at_s=1.0,
        cpu=Telemetry(utilization_percent=5.0),
        cards=(
            CardReading(uuid="GPU-1", telemetry=Telemetry(pstate=0), processes=(process,)),
            CardReading(uuid="GPU-2", telemetry=Telemetry(), error="lost"),
        ),
    )
    cpu, card, lost = inventory_of(monkeypatch, FOUND, reading, hangs=True).devices
    assert cpu.telemetry.utilization_percent == 5.0
    assert (card.telemetry.pstate, card.processes) == (0, (process,))
    assert lost.telemetry.fan_percent == 1.0


def test_a_driver_that_never_answers_is_a_failure(monkeypatch):
    limit(monkeypatch, terminal_sensors_s=0.05)
    with pytest.raises(StudioError, match="driver"):
        inventory_of(monkeypatch, hangs=True)


def test_a_reader_that_dies_at_once_is_a_failure_and_not_the_drivers(monkeypatch):
    with pytest.raises(StudioError, match=r"reader.*log") as raised:
        inventory_of(monkeypatch)
    assert "driver" not in str(raised.value)


def test_an_engine_that_does_not_answer_is_told_of_and_given_up(monkeypatch, capsys):
    limit(monkeypatch, terminal_slow_s=0.01, terminal_load_s=0.0, terminal_driver_s=0.05)
    engine = ScriptedEngine({DescribeEngine: [Pause(deaf=True)]}, EngineEnvironment())
    with pytest.raises(HeldEngineError) as raised:
        describe(work_of(engine))
    assert "not answered yet" in capsys.readouterr().err
    assert "can be the reason" in str(raised.value), "nothing shows that it is the driver"
    assert engine.was_abandoned
    engine.close()


BESIDE = Inventory(devices=(Device(kind="cpu", name="CPU"),), driver=Driver(version="580.95.05"))


def test_a_driver_is_given_less_time_than_the_loading_of_pytorch(monkeypatch):
    limit(monkeypatch, terminal_driver_s=0.05)
    loaded = MemoryRead(device="cpu", taken_at_s=0.0)
    scripts = {ReadMemory: [loaded], DescribeEngine: [Pause(deaf=True)]}
    engine = ScriptedEngine(scripts, EngineEnvironment())
    with pytest.raises(HeldEngineError):
        describe_beside(BESIDE, work_of(engine))
    until(lambda: len(engine.requests) == 2)  # its thread may be late
    engine.close()
    assert engine.requests == [ReadMemory(device="cpu"), DescribeEngine()]


def test_pytorch_that_does_not_load_is_not_the_drivers_fault(monkeypatch):
    limit(monkeypatch, terminal_load_s=0.05)
    scripts = {ReadMemory: [Pause(deaf=True)], DescribeEngine: [described()]}
    engine = ScriptedEngine(scripts, EngineEnvironment())
    with pytest.raises(StudioError, match="PyTorch") as raised:
        describe_beside(BESIDE, work_of(engine))
    engine.close()
    assert not isinstance(raised.value, HeldEngineError)


def test_an_engine_that_loads_in_time_gives_its_account():
    scripts = {ReadMemory: [MemoryRead(device="cpu", taken_at_s=0.0)],
               DescribeEngine: [described()]}  # fmt: skip
    engine = ScriptedEngine(scripts, EngineEnvironment())
    assert describe_beside(BESIDE, work_of(engine)) == described()
    assert engine.requests[-1] == DescribeEngine(wakes_cards=True)
    describe_beside(BESIDE, work_of(engine), wakes_cards=False)
    assert engine.requests[-1] == DescribeEngine(wakes_cards=False)
    assert not engine.was_stopped
