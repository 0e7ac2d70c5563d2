"""The history of a benchmark, in a folder of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.model.benchmark.history_model import HistoryModel
from gpu_studio.model.studio import Studio

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpu_studio.core.notice import Notice
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.settings import Settings
    from tests.fakes.pc import SteadySensors
    from tests.fakes.scripted_engine import Engines


@pytest.fixture
def studio(
    qapp: object, engines: Engines, sensor_source: SteadySensors, settings: Settings, tmp_path: Path
) -> Iterator[Studio]:
    """The application's state with a folder for results."""
    studio = Studio(engines, sensor_source, settings, data_folder=tmp_path / "data")
    yield studio
    studio.close()
    studio.deleteLater()


@pytest.fixture
def history(ready_studio: Studio, benchmark: Benchmark) -> HistoryModel:
    return HistoryModel(ready_studio, benchmark, ready_studio)


@pytest.fixture
def notices(history: HistoryModel) -> list[Notice]:
    received: list[Notice] = []
    history.notified.connect(received.append)
    return received
