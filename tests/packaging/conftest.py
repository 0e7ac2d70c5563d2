"""The setup is not a package of the program: its folder goes on the path here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))


class RecordingConsole:
    """Keeps what the setup says."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.details: list[tuple[str, float | None]] = []

    def step(self, number: int, count: int, text: str) -> None:
        self.lines.append(f"{number}/{count} {text}")

    def note(self, text: str) -> None:
        self.lines.append(text)

    def detail(self, text: str, fraction: float | None) -> None:
        self.details.append((text, fraction))

    def stops_with(self, stop: Callable[[], None]) -> None:
        self.stop = stop


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def console() -> Any:
    """A console that keeps what is said."""
    return RecordingConsole()
