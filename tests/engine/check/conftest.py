"""A check's stages with less to do than on a card."""

from __future__ import annotations

import pytest

from gpu_studio.engine.check import load


@pytest.fixture(autouse=True)
def little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a CPU that passes for a card copy and multiply little: these clocks tick alone."""
    monkeypatch.setattr(load, "_LARGEST_BYTES", 1 << 20)
    monkeypatch.setattr(load, "_SIDE", load._CPU_SIDE)
