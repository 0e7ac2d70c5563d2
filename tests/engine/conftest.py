"""Runs that are not long in warming up, and not long in timing their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.engine.benchmark import timing
from gpu_studio.engine.workloads import parts

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="package")
def short_warm_up() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "WARM_UP_S", 0.02)
        patch.setattr(parts, "_BUDGET_S", 0.02)
        yield
