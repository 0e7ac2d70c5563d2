"""What the tests of the models share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.model.engine_session import EngineSession
from tests.model.session_watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.scripted_engine import Engines


@pytest.fixture
def session(qapp: object, engines: Engines) -> Iterator[EngineSession]:
    session = EngineSession(engines)
    yield session
    session.close()


@pytest.fixture
def watcher(session: EngineSession) -> Watcher:
    return Watcher(session)
