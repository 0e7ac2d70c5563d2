"""A race over an engine that answers from a script."""

from pathlib import Path

import pytest

from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.race.race import Race
from gpu_studio.model.studio import Studio
from tests.fakes.race_answers import race_run
from tests.fakes.scripted_engine import Engines


@pytest.fixture
def racing(engines: Engines, tmp_path: Path) -> Engines:
    """Engines that finish every run of a race."""
    engines.scripts[RunWorkload] = lambda _engine, request: race_run(request)
    return engines


@pytest.fixture
def race(racing: Engines, ready_studio: Studio) -> Race:
    """A race on a ready PC."""
    return Race(ready_studio, ready_studio)
