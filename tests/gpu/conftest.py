"""Every usable card of this PC, and engines on it; skips all with the reason if there is none.

    python -m pytest tests/gpu

Nothing of the window is needed: pytest, torch, numpy, psutil, nvidia-ml-py and msgspec are enough.
"""

import os
from typing import Protocol

from gpu_studio.core.engine import EngineEnvironment

# As for every engine, and before CUDA reads it.
os.environ.update(EngineEnvironment().variables())

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.engine.device import accelerator_state, addresses, prove_kernels, resolve
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.hardware.engine_sensor import EngineSensor
from tests.engine.engine_child import EngineChild

_HAS_SOFT_CARDS = "SOFT_CARDS_DIR" in os.environ


class Ask(Protocol):
    def __call__(self, request: Request) -> list[Event]: ...


class StartEngine(Protocol):
    """Starts an engine in a process of its own that is ended after the test."""

    def __call__(self, environment: EngineEnvironment = ..., prelude: str = ...) -> EngineChild: ...


def _usable_cards() -> tuple[list[str], str]:
    """Return the cards that PyTorch has code for, and why there are none."""
    state = accelerator_state()
    if not state.is_available:
        return [], f"there is no CUDA card: {state.reason}"
    usable, reasons = [], []
    for address in addresses()[1:]:
        try:
            prove_kernels(resolve(address))
            usable.append(address)
        except (StudioError, RuntimeError) as error:
            reasons.append(f"{address}: {error}")
    return usable, "no card can be used: " + " ".join(reasons)


_CARDS, _WHY_NONE = _usable_cards()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "card" in metafunc.fixturenames:
        metafunc.parametrize("card", _CARDS or ["cuda:0"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.gpu)
        if not _CARDS:
            item.add_marker(pytest.mark.skip(reason=_WHY_NONE))
        elif _HAS_SOFT_CARDS and item.get_closest_marker("real_kernels"):
            item.add_marker(pytest.mark.skip(reason="kernels of soft cards compute nothing"))


def pytest_report_header() -> str:
    cards = [f"{address} {torch.cuda.get_device_name(resolve(address))}" for address in _CARDS]
    return f"torch {torch.__version__}, {', '.join(cards) or _WHY_NONE}"


@pytest.fixture(scope="session")
def dispatcher() -> Dispatcher:
    return Dispatcher(EngineSensor())


@pytest.fixture
def ask(dispatcher: Dispatcher) -> Ask:
    from tests.engine.answers import ask as ask_dispatcher

    return lambda request: ask_dispatcher(request, dispatcher)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineChild]:
    """An engine in a process of its own, for tests that do not mind what was done before."""
    one = EngineChild(tmp_path_factory.mktemp("engine") / "log")
    yield one
    one.kill()


@pytest.fixture
def start_engine(tmp_path: Path) -> Iterator[Callable[..., EngineChild]]:
    started: list[EngineChild] = []

    def start(environment: EngineEnvironment | None = None, prelude: str = "") -> EngineChild:
        variables = (environment or EngineEnvironment()).variables()
        log = tmp_path / f"log{len(started)}"
        started.append(EngineChild(log, prelude, env={**os.environ, **variables}))
        return started[-1]

    yield start
    for one in started:
        one.kill()
