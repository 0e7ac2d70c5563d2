"""Soft PCs and children for the tests of this folder; skips them all if none can be made.

These tests run in an environment with a CUDA build of PyTorch, which
``python3 packaging/bootstrap.py test --soft-cards`` makes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from gpu_studio.core.engine import EngineEnvironment
from tests.engine.engine_child import EngineChild
from tests.soft.child import Child
from tests.softcards.build import torch_cuda, why_not
from tests.softcards.cards import Card, SoftPc, soft_cards


def _reason() -> str | None:
    cuda = torch_cuda()
    if cuda is None:
        return "the CUDA build of PyTorch is not installed in this environment"
    return why_not(int(cuda.split(".")[0]))


# What differs with the card's age or with PyTorch's; the rest is the same code in every PyTorch.
_OLD_CARDS_PART = {
    "test_devices.py",
    "test_engine.py",
    "test_engine_memory.py",
    "test_memory.py",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = _reason()
    major = int((torch_cuda() or "0").split(".")[0])
    for item in items:
        item.add_marker(pytest.mark.soft)
        if item.path.parent.name == "window":
            # A window, an engine and a sensor reader: beside others they take too long.
            item.add_marker(pytest.mark.alone)
        is_part = item.path.parent == Path(__file__).parent and item.path.name in _OLD_CARDS_PART
        if is_part or item.get_closest_marker("cuda12"):
            item.add_marker(pytest.mark.old_cards)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))
        for wanted in (12, 13):
            if item.get_closest_marker(f"cuda{wanted}") and major != wanted:
                item.add_marker(pytest.mark.skip(reason=f"PyTorch here is built with CUDA {major}"))


class MakePc(Protocol):
    """Makes a soft PC that is taken away after the test."""

    def __call__(self, *cards: Card, **options: Any) -> SoftPc: ...


class MakeChild(Protocol):
    """Starts a child on a soft PC that is ended after the test."""

    def __call__(self, pc: SoftPc, **env: str) -> Child: ...


class StartEngine(Protocol):
    """Starts an engine on a soft PC that is ended after the test."""

    def __call__(self, pc: SoftPc, environment: EngineEnvironment = ...) -> EngineChild: ...


@pytest.fixture
def soft_pc() -> Iterator[MakePc]:
    collected: list[SoftPc] = []

    def make(*cards: Card, **options: Any) -> SoftPc:
        collected.append(soft_cards(cards, **options))
        return collected[-1]

    yield make
    for pc in collected:
        pc.close()


@pytest.fixture
def child() -> Iterator[MakeChild]:
    started: list[Child] = []

    def start(pc: SoftPc, **env: str) -> Child:
        started.append(Child(pc, env))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[StartEngine]:
    started: list[EngineChild] = []

    def start(pc: SoftPc, environment: EngineEnvironment | None = None) -> EngineChild:
        variables = (environment or EngineEnvironment()).variables()
        log = tmp_path / f"log{len(started)}"
        started.append(EngineChild(log, env={**pc.env, **variables}))
        return started[-1]

    yield start
    for one in started:
        one.kill()
