"""The real window over a soft PC: its engine and its sensor reader are children that see the cards.

The window's own process needs no stand-in, since it never calls CUDA or the driver: what it starts
inherits the soft PC's environment.
"""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import psutil
import pytest
from pytestqt.qtbot import QtBot

from gpu_studio.app import build_window
from gpu_studio.core import limits
from gpu_studio.hardware.client import SensorReader
from gpu_studio.model.settings import Settings
from tests.conftest import nothing_left_behind as nothing_left_behind  # a fixture for all here
from tests.conftest import pytest_runtest_protocol as pytest_runtest_protocol
from tests.patience import PATIENCE_S, UNHURRIED
from tests.soft.conftest import MakePc
from tests.soft.window.person import Person
from tests.softcards.cards import Card, SoftPc

# A reading in a second is the program's own pace; the tests wait for many.
_PERIOD_S = 0.2


class SitDown(Protocol):
    """Opens the window on a soft PC; it is closed after the test."""

    def __call__(self, pc: SoftPc, **choices: Any) -> Person: ...


class SitDownAt(Protocol):
    """Makes a PC with these cards and opens the window on it, ready to be used."""

    def __call__(self, *cards: Card, **choices: Any) -> tuple[SoftPc, Person]: ...


@pytest.fixture
def no_orphans() -> Iterator[None]:
    """Fail a test after which a process or a thread of the program is left."""
    own = psutil.Process()
    processes, threads = set(own.children(recursive=True)), set(threading.enumerate())
    yield
    left = [one for one in own.children(recursive=True) if one not in processes]
    _, alive = psutil.wait_procs(left, timeout=PATIENCE_S)
    assert not alive, f"processes outlive the window: {alive}"
    running = [one for one in threading.enumerate() if one not in threads]
    assert not running, f"threads outlive the window: {running}"


@pytest.fixture
def sit_down(
    qtbot: QtBot, no_orphans: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[SitDown]:
    opened: list[Person] = []

    def open_on(pc: SoftPc, **choices: Any) -> Person:
        for key, value in pc.env.items():
            monkeypatch.setenv(key, value)
        for key in os.environ.keys() - pc.env.keys():
            if not key.startswith("PYTEST"):
                monkeypatch.delenv(key)
        settings = Settings(None)
        settings.change(**{"budget_s": 0.5, "sizes": "256", **choices})
        log = tmp_path / "log"
        reader = SensorReader(period_s=_PERIOD_S, log_path=log)
        window = build_window(
            sensor_source=reader, settings=settings, log_path=log, data_folder=tmp_path / "data"
        )
        qtbot.addWidget(window)
        window.resize(1280, 800)  # the screen of the platform offscreen has 800 pixels
        window.show()
        opened.append(Person(qtbot, window))
        return opened[-1]

    # No machine is too busy for the window: no engine that hears a stop is ended or silent.
    monkeypatch.setattr(limits, "current", UNHURRIED)
    yield open_on
    for person in opened:
        person.window.close()


@pytest.fixture
def sit_down_at(soft_pc: MakePc, sit_down: SitDown) -> SitDownAt:
    def sit(*cards: Card, **choices: Any) -> tuple[SoftPc, Person]:
        pc = soft_pc(*cards)
        person = sit_down(pc, **choices)
        person.until_ready()
        return pc, person

    return sit
