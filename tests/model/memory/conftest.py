"""The memory of a GT 1030 as the window knows it, with an engine that answers from a script."""

import pytest

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.memory_messages import ReadMemory, RunMemoryExperiment
from gpu_studio.model.memory.memory_model import MemoryModel
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.memory_answers import (
    memory_read,
    oom_finished,
    segments_read,
)
from tests.fakes.pc import gt_1030
from tests.fakes.scripted_engine import Pause
from tests.model.memory.looks import breaking


@pytest.fixture
def inventory():
    return gt_1030()


@pytest.fixture
def scripts(engines):
    engines.scripts |= {
        DescribeEngine: [described_with_cuda(device_count=2)],
        ReadMemory: lambda _engine, request: [
            memory_read(request.device, allocated=100, reserved=120)
        ],
    }
    return engines.scripts


@pytest.fixture
def model(scripts, ready_studio):
    return MemoryModel(ready_studio, ready_studio)


@pytest.fixture
def broken(scripts):
    """An experiment that breaks, holds, and ends."""
    scripts[RunMemoryExperiment] = lambda engine, request: breaking(
        segments_read(memory_read(allocated=1024, reserved=1024, mark="oom", taken_at_s=10.5)),
        Pause(),
        memory_read(reserved=1024, mark="freed", taken_at_s=10.6),
        oom_finished(),
    )
    return scripts
