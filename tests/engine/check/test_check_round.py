import threading
from collections.abc import Callable, Generator
from typing import Any

import msgspec
import pytest
import torch

from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.devices.devices import Device
from gpu_studio.core.messages.check_messages import (
    STAGE_NAMES,
    CheckFindingMade,
    CheckProgressed,
    CheckRoundFinished,
    CheckStageBegan,
    CheckStageFinished,
    CheckStarted,
    CheckVitalsRead,
    RunCheck,
)
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.messages.message import Event
from gpu_studio.core.protocol import decode_event, encode
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.engine.check import check_round
from gpu_studio.engine.check.check_round import CheckRound, checked_card, ecc_text
from gpu_studio.engine.check.stage_run import StageRun
from gpu_studio.engine.dispatcher import Dispatcher
from tests.engine.check.stage_runs import TickingClock
from tests.fakes.check_answers import STARTED_AT


def short_stages(monkeypatch: pytest.MonkeyPatch, **during: Callable[[StageRun], None]) -> None:
    """Let each stage have three steps; some do something in their second one."""

    def steps(run: StageRun) -> Generator[str, None, bool]:
        for number in range(3):
            if number == 1 and run.stage in during:
                during[run.stage](run)
            run.tested = f"{number} steps"
            yield f"step {number}"
        return not run.is_stopped

    monkeypatch.setattr(CheckRound, "stages", dict.fromkeys(STAGE_NAMES, steps))


def request(**changes: Any) -> RunCheck:
    options: dict[str, Any] = {"device": "cpu", "round_s": 60.0, **changes}
    return RunCheck(**options)


def events_of(asked: RunCheck, stop: threading.Event | None = None, **options: Any) -> list[Event]:
    clock = TickingClock(0.3)
    round_ = CheckRound(asked, stop or threading.Event(), clock=clock, **options)
    events = list(round_.events())
    assert [decode_event(encode(event)) for event in events] == events
    return events


def only(kind: type, events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_a_round_reports_its_stages_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    short_stages(monkeypatch)
    events = events_of(request(stages=("memory", "load")), cpu_name="Ryzen 7")
    assert isinstance(events[0], CheckStarted)
    assert events[0].device.name == "Ryzen 7"
    assert events[0].fingerprint == "cpu"
    assert [event.stage for event in only(CheckStageBegan, events)] == ["load", "memory"]
    assert [event.verdict for event in only(CheckStageFinished, events)] == ["passed", "passed"]
    assert only(CheckProgressed, events)
    assert events[-1] == CheckRoundFinished()


def test_a_finding_and_its_errors_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(run: StageRun) -> None:
        for _ in range(1000):
            run.report("wrong_bits", "error", "Three bits.", count=3)

    short_stages(monkeypatch, memory=fail)
    events = events_of(request())
    made, *more = only(CheckFindingMade, events)
    assert (made.finding.stage, made.finding.count) == ("memory", 3)
    assert len(more) == 4, "all are counted, and a few are told"
    ends = {
        event.stage: (event.verdict, event.errors) for event in only(CheckStageFinished, events)
    }
    assert ends["memory"] == ("failed", 3000)
    assert ends["link"] == ("passed", 0)
    assert events.index(made) < events.index(
        next(event for event in only(CheckProgressed, events) if event.errors == 3000)
    )


def test_a_stop_ends_the_round_with_a_partial_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()
    short_stages(monkeypatch, compute=lambda _run: stop.set())
    events = events_of(request(), stop)
    ends = [(event.stage, event.verdict) for event in only(CheckStageFinished, events)]
    assert ends == [("load", "passed"), ("compute", "partial")]
    assert events[-1] == CheckRoundFinished(is_stopped=True)


def test_a_stage_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out(_run: StageRun) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    short_stages(monkeypatch, memory=run_out)
    events = events_of(request())
    ends = {event.stage: event.verdict for event in only(CheckStageFinished, events)}
    assert ends["memory"] == "inconclusive"
    assert ends["link"] == ends["layouts"] == "passed"
    (made,) = only(CheckFindingMade, events)
    assert made.finding.kind == "could_not_run"
    assert "2 GiB" in made.finding.sentence.replace("\u202f", " ")


def test_a_card_that_breaks_ends_the_round_and_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def break_card(_run: StageRun) -> None:
        raise RuntimeError("CUDA error: unspecified launch failure\nCompile with ...")

    short_stages(monkeypatch, compute=break_card)
    run = CheckRun(CheckPlan(device="cpu", minutes=1), STARTED_AT)
    asked = run.next_request()
    assert asked is not None
    events = list(Dispatcher().run(asked, threading.Event()))
    for event in events:
        run.apply(event)
    last = events[-1]
    assert isinstance(last, RequestFailed)
    assert last.failure.fatal
    assert run.record().verdict == "failed"
    assert "unspecified launch failure" in run.findings[-1].sentence


class Sensor:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def read(self, identity: str, wanted: object) -> Telemetry:
        self.asked.append(identity)
        return Telemetry(temperature_c=61.0, sm_clock_mhz=3900.0)

    def device(self, identity: str) -> Device:
        return Device(kind=identity, name="CPU", slowdown_c=95.0, is_laptop=True)


def test_the_sensors_are_read_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    short_stages(monkeypatch)
    sensor = Sensor()
    events = events_of(request(), sensor=sensor)
    times = [event.elapsed_s for event in only(CheckVitalsRead, events)]
    assert len(times) >= len(STAGE_NAMES)
    assert times == sorted(times)
    assert {event.vitals.temperature_c for event in only(CheckVitalsRead, events)} == {61.0}
    assert set(sensor.asked) == {"cpu"}
    device = only(CheckStarted, events)[0].device
    assert (device.slowdown_c, device.is_laptop) == (95.0, True)


def test_a_fingerprint_does_not_hold_the_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    short_stages(monkeypatch)
    received = []
    for uuid in ("GPU-1", "GPU-2", "GPU-1"):
        monkeypatch.setattr(check_round, "uuid_of", lambda _device, uuid=uuid: uuid)
        started = events_of(request(stages=("load",)))[0]
        assert isinstance(started, CheckStarted)
        assert "GPU-" not in encode(started).decode()
        received.append(started.fingerprint)
    assert received[0] == received[2] != received[1]


# ── the device ───────────────────────────────────────────────────────────────────────────────────

KNOWN_CARD = Device(
    kind="cuda", maker="NVIDIA", name="NVIDIA GeForce GT 1030", uuid="GPU-1111",
    pci_device_id=0x1D01, compute_capability="6.1", memory_bus_width_bits=64, vbios="86.08",
    slowdown_c=94.0, sm_clock_max_mhz=1911.0, driver_version="580.95.05",
    telemetry=Telemetry(power_limit_w=30.0),
)  # fmt: skip


def test_the_facts_name_no_copy_of_the_card() -> None:
    facts = checked_card(KNOWN_CARD, "cuda:0")
    assert (facts.address, facts.silicon, facts.contradiction) == ("cuda:0", "GP108 (1d01)", "")
    assert (facts.vbios, facts.driver_version, facts.slowdown_c) == ("86.08", "580.95.05", 94.0)
    assert facts.power_limit_w == 30.0
    assert "GPU-1111" not in repr(facts)


@pytest.mark.parametrize(
    ("enabled", "rows", "words"),
    [(None, None, "no ECC"), (True, 3, "is on. Rows of it replaced so far: 3."), (False, 0, "off")],
)
def test_ecc_is_reported_where_there_is_some(
    enabled: bool | None, rows: int | None, words: str
) -> None:
    now = Telemetry(remapped_rows=rows)
    assert words in ecc_text(
        msgspec.structs.replace(KNOWN_CARD, ecc_enabled=enabled, telemetry=now)
    )
