"""A recording that is opened and played in the window's benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.benchmark.recording import read_recording
from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.protocol import encode_all
from gpu_studio.engine.recorded_engine import RecordedEngine
from gpu_studio.model.benchmark.history_model import HistoryModel
from gpu_studio.model.benchmark.recording import AT_ONCE, RecordingPlayer
from gpu_studio.model.studio import Studio
from tests.fakes.recording_header import recording_header
from tests.fakes.run_answers import run_events, samples_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.settings import Settings
    from tests.fakes.pc import SteadySensors
    from tests.fakes.scripted_engine import Engines

HEADER = recording_header()
CARD, CPU = (
    RunWorkload(
        run_id=f"theirs-{device}", workload="elementwise", device=device, size=64, dtype="float32",
        budget_s=budget_s,
    )
    for device, budget_s in (("cuda:0", 2.0), ("cpu", 1000.0))
)  # fmt: skip


@pytest.fixture
def speeds() -> list[float]:
    return []


@pytest.fixture
def studio(
    qapp: object, engines: Engines, sensor_source: SteadySensors, settings: Settings,
    speeds: list[float], tmp_path: Path,
) -> Iterator[Studio]:  # fmt: skip
    def recorded(recording: object, speed: float) -> RecordedEngine:
        speeds.append(speed)
        return RecordedEngine(recording, speed=speed)  # type: ignore[arg-type]

    studio = Studio(
        engines, sensor_source, settings, recorded_factory=recorded, data_folder=tmp_path
    )
    yield studio
    studio.close()
    studio.deleteLater()


@pytest.fixture
def player(ready_studio: Studio, benchmark: Benchmark) -> RecordingPlayer:
    return RecordingPlayer(ready_studio, benchmark, ready_studio)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "theirs.jsonl"
    path.write_bytes(encode_all([HEADER, *run_events(CARD), *run_events(CPU)]))
    return path


def test_it_is_played_by_an_engine_of_its_own_and_labelled_from_the_start(
    qtbot: QtBot, player: RecordingPlayer, benchmark: Benchmark, engines: Engines, path: Path
) -> None:
    theirs = read_recording(path)
    assert player.can_play
    player.play(theirs, AT_ONCE)
    qtbot.waitUntil(lambda: not benchmark.state.is_busy)
    named = [(run.recording, run.device_name) for run in benchmark.runs]
    assert named == [(HEADER.title, "NVIDIA GeForce GT 1030"), (HEADER.title, "Ryzen 7 5700G")]
    card, cpu = benchmark.runs
    assert (card.state, cpu.state) == (RunState.FINISHED, RunState.FINISHED)
    assert card.series.values.tolist() == list(samples_of(CARD))
    assert {result.recording for result in benchmark.results} == {HEADER.title}
    assert not any(isinstance(request, RunWorkload) for request in engines.requests)
    # The window's own engine goes on afterwards, and its runs are its own.
    player.play(theirs, AT_ONCE)
    qtbot.waitUntil(lambda: len(benchmark.results) == 4 and not benchmark.state.is_busy)
    assert len({run.request.run_id for run in benchmark.runs}) == 4


def test_it_takes_its_time_unless_asked_and_can_be_stopped(
    qtbot: QtBot, player: RecordingPlayer, benchmark: Benchmark, speeds: list[float], path: Path
) -> None:
    theirs = read_recording(path)
    player.play(theirs)
    qtbot.waitUntil(lambda: bool(benchmark.runs) and benchmark.runs[0].has_begun)
    assert not player.can_play
    player.play(theirs, AT_ONCE)  # one at a time
    benchmark.stop()
    qtbot.waitUntil(lambda: not benchmark.state.is_busy)
    assert speeds == [1.0]
    assert len(benchmark.runs) == 1
    assert benchmark.runs[0].state is RunState.STOPPED


def test_a_recording_is_not_kept_as_if_it_was_measured_here(
    qtbot: QtBot, ready_studio: Studio, player: RecordingPlayer, benchmark: Benchmark, path: Path
) -> None:
    history = HistoryModel(ready_studio, benchmark, ready_studio)
    player.play(read_recording(path), AT_ONCE)
    qtbot.waitUntil(lambda: len(benchmark.results) == 2 and not history.is_busy)
    history.refresh()
    qtbot.waitUntil(lambda: not history.is_busy)
    assert history.entries == ()
