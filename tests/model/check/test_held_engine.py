"""A real engine of a check whose process a signal holds up, which is no fault of its device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil
from PySide6.QtCore import QTimer

from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.messages.check_messages import CheckStageBegan
from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.model.engine_session import EngineSession
from tests.driving.window import wait_until
from tests.patience import outliving

if TYPE_CHECKING:
    from gpu_studio.core.engine import EngineEnvironment
    from gpu_studio.core.messages.message import Event


def test_an_engine_that_is_held_is_a_pause_and_is_ended(qapp: object) -> None:
    started: list[ProcessEngine] = []
    held: list[psutil.Process] = []
    events: list[Event] = []
    run = CheckRun(CheckPlan(device="cpu", minutes=1, stages=("layouts", "link")), "")

    def make(environment: EngineEnvironment) -> ProcessEngine:
        started.append(ProcessEngine(environment))
        return started[-1]

    def receive(event: Event) -> None:
        events.append(event)
        run.apply(event)
        if isinstance(event, CheckStageBegan) and not held:
            held.append(psutil.Process(started[0].pid))
            held[0].suspend()
        if held:
            silence.start(200)

    def give_up() -> None:
        if session.is_held:
            run.pause(0.2)
        session.restart()

    silence = QTimer(singleShot=True)
    silence.timeout.connect(give_up)
    session = EngineSession(make, describes=False)
    session.start()
    request = run.next_request()
    assert request is not None
    reply = session.submit(request)
    reply.event_received.connect(receive)
    try:
        wait_until(lambda: reply.is_finished)
    finally:
        silence.stop()
        session.close()

    assert isinstance(events[-1], EngineEnded)
    record = run.record()
    assert [stage.verdict for stage in record.stages] == ["skipped", "skipped"]
    assert len(record.pauses) == 1
    again = run.next_request()
    assert again is not None
    assert again.stages == request.stages
    alive = outliving(held)
    assert alive == []
