"""A check over an engine that answers from a script."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_studio.model.check.card_check import CardCheck
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from tests.driving.window import wait_until
from tests.fakes.check_answers import checking_engines
from tests.fakes.pc import SteadySensors
from tests.fakes.scripted_engine import Engines


@pytest.fixture
def engines(inventory: Any) -> Engines:
    return checking_engines(inventory)


@pytest.fixture
def make_check(
    qapp: object,
    engines: Engines,
    inventory: Any,
    settings: Settings,
    tmp_path: Path,
) -> Iterator[Callable[..., CardCheck]]:
    """Make a check in a studio of its own, as a start of the program does."""
    studios: list[Studio] = []

    def make(boot: str = "one") -> CardCheck:
        sensors = SteadySensors(inventory)
        studio = Studio(engines, sensors, settings, data_folder=tmp_path, boot=boot)
        studios.append(studio)
        check = CardCheck(studio, studio)
        studio.start()
        wait_until(lambda: studio.session.is_free and studio.sensors.inventory)
        wait_until(lambda: not check._files.is_busy)  # what is kept is found
        return check

    yield make
    for studio in studios:
        studio.close()
        studio.deleteLater()


@pytest.fixture
def check(make_check: Callable[..., CardCheck]) -> CardCheck:
    return make_check()
