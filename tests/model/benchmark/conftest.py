"""A benchmark over a scripted engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.model.benchmark.benchmark import Benchmark

if TYPE_CHECKING:
    from gpu_studio.model.studio import Studio


@pytest.fixture
def benchmark(ready_studio: Studio) -> Benchmark:
    return Benchmark(ready_studio, ready_studio)
