"""Runs that are not long in warming up."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def short_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_studio.engine.benchmark.timing.WARM_UP_S", 0.02)
