"""``gpu-studio bench`` over a PC with a card, whose engine answers from a script."""

from functools import partial

import pytest

from gpu_studio.core.messages.engine_messages import DescribeEngine
from tests.cli.bench.terminal import WORKLOADS
from tests.fakes.descriptions import described_with_cuda


@pytest.fixture
def engines(engines_of):
    """A PC with a card."""
    return engines_of({DescribeEngine: [described_with_cuda(workloads=WORKLOADS)]})


@pytest.fixture
def type_in(engines, typed):
    return partial(typed, "bench")
