"""An engine that gets no more memory of the system: its process has a limit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished
from tests.engine.answers import run_request
from tests.engine.engine_child import EngineChild

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpu_studio.core.messages.run_messages import RunWorkload

# The small one is large enough for the buffers of all threads of numpy's OpenBLAS, which ends a
# process that has no room for them. Each of the three tensors of the large one takes 64 MiB.
_SMALL, _LARGE = 512, 4096
_REST_BYTES = 32 << 20


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineChild]:
    child = EngineChild(tmp_path / "log")
    yield child
    child.kill()


def multiply(size: int) -> RunWorkload:
    return run_request(workload="matmul", size=size, budget_s=0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process that runs")
def test_a_run_without_ram_fails_in_words_and_the_engine_stays(engine: EngineChild) -> None:
    assert isinstance(engine.ask(multiply(_SMALL))[-1], RunFinished)
    process = psutil.Process(engine.process.pid)
    limit_bytes = process.memory_info().vms + _REST_BYTES
    _, hard = process.rlimit(psutil.RLIMIT_AS)
    process.rlimit(psutil.RLIMIT_AS, (limit_bytes, hard))
    failed = engine.ask(multiply(_LARGE))[-1]
    assert isinstance(failed, RunFailed)
    assert failed.failure.kind is FailureKind.OUT_OF_MEMORY
    assert failed.failure.message.startswith("The PC ran out of memory (RAM): ")
    assert not failed.failure.fatal
    process.rlimit(psutil.RLIMIT_AS, (hard, hard))
    assert isinstance(engine.ask(multiply(_SMALL))[-1], RunFinished)
