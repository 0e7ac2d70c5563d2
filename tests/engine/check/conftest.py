"""A check's stages with less to do than on a card."""

from __future__ import annotations

import pytest

from gpu_studio.engine.check import bursts, compute, layouts, link, load
from gpu_studio.engine.check.known_answers import KNOWN, KnownAnswer


@pytest.fixture(autouse=True)
def little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the stages copy and multiply little: the clocks of these tests tick alone."""
    monkeypatch.setattr(load, "_LARGEST_BYTES", 1 << 20)
    monkeypatch.setattr(load, "_SIDE", load._CPU_SIDE)
    monkeypatch.setattr(bursts, "_LARGEST_SIDE", bursts._SMALLEST_SIDE)
    monkeypatch.setattr(bursts, "_COPY_BYTES", 1 << 20)
    monkeypatch.setattr(compute, "_FILLING_CPU", 1 << 18)
    monkeypatch.setattr(compute, "_FILLING", (1 << 24) + 4099)
    few = [KnownAnswer(known, known.dtypes[0]) for known in KNOWN[::6]]
    monkeypatch.setattr(layouts, "OPERATIONS", layouts.OPERATIONS[::5])
    monkeypatch.setattr(layouts, "known_parts", lambda: list(few))
    for name, size_mib in (
        ("_CARD_COPY_BYTES", 2),
        ("_RAM_COPY_BYTES", 1),
        ("_LARGE_COPY_BYTES", 4),
    ):
        monkeypatch.setattr(link, name, size_mib << 20)
