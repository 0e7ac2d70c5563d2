"""“Measure this PC”: its order, a stop, an engine's end, and the record that is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.notice import Tone
from gpu_studio.model.benchmark.standard_measurement import StandardMeasurement
from gpu_studio.model.run_queue import WorkState
from tests.fakes.run_answers import started
from tests.fakes.scripted_engine import Pause
from tests.fakes.standard_answers import measured

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.model.studio import Studio
    from tests.fakes.scripted_engine import Engines
    from tests.patient_qtbot import PatientQtBot


@pytest.fixture
def measurement(engines: Engines, ready_studio: Studio, tmp_path: Path) -> StandardMeasurement:
    engines.scripts[RunWorkload] = lambda _engine, request: measured(request)
    ready_studio.data_folder = tmp_path
    return StandardMeasurement(ready_studio)


def test_a_second_press_while_it_measures_starts_nothing(
    measurement: StandardMeasurement, engines: Engines, qtbot: PatientQtBot
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: [started(request), Pause()]
    measurement.start()
    qtbot.waitUntil(lambda: any(isinstance(one, RunWorkload) for one in engines.requests))
    measurement.start()
    measurement.stop()
    qtbot.waitUntil(lambda: bool(measurement.notice.sentence) and not measurement.state.is_busy)
    ids = [one.run_id for one in engines.requests if isinstance(one, RunWorkload)]
    assert len(set(ids)) == len(ids)


def test_a_stop_keeps_what_was_measured(
    measurement: StandardMeasurement, engines: Engines, qtbot: PatientQtBot
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: (
        measured(request) if request.workload == "copy" else [started(request), Pause()]
    )
    measurement.start()
    qtbot.waitUntil(lambda: "Product" in measurement.sentence)
    measurement.stop()
    assert measurement.state is WorkState.STOPPING
    qtbot.waitUntil(lambda: measurement.run is not None)
    (cpu,) = measurement.run.devices
    assert [one.key for one in cpu.figures if one.result] == ["bandwidth"]
    assert "kept" in measurement.notice.sentence


def test_an_engine_that_ends_ends_the_run(
    measurement: StandardMeasurement, engines: Engines, qtbot: PatientQtBot
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: (
        measured(request) if request.workload == "copy" else [EngineEnded(exit_code=-11)]
    )
    measurement.start()
    qtbot.waitUntil(lambda: measurement.run is not None)
    assert measurement.notice.tone is Tone.FAILURE
    assert "PyTorch ended" in measurement.notice.sentence
    assert not measurement.state.is_busy
