"""What the tests of the models share."""

from collections.abc import Iterator

import pytest

from gpu_studio.model.engine_session import EngineSession
from tests.fakes.scripted_engine import Engines
from tests.model.session_watcher import Watcher


@pytest.fixture
def session(qapp: object, engines: Engines) -> Iterator[EngineSession]:
    session = EngineSession(engines)
    yield session
    session.close()


@pytest.fixture
def watcher(session: EngineSession) -> Watcher:
    return Watcher(session)
