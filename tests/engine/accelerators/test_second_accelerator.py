"""A second kind of card needs its own file and a place in the table of `engine.device`, no more."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.messages.engine_messages import DescribeEngine, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory, ReadSegments
from gpu_studio.core.messages.placement_messages import DeviceUsed, UseDevice
from gpu_studio.core.messages.run_messages import RunFinished, RunStarted
from gpu_studio.core.protocol import decode_event, encode
from tests.engine.answers import only, run_request
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from gpu_studio.core.messages.message import Event

BACKENDS = importlib.util.find_spec("torch.utils.backend_registration")
pytestmark = pytest.mark.skipif(
    BACKENDS is None
    or b"privateuseone_for_python" not in BACKENDS.loader.get_data(BACKENDS.origin),
    reason="this PyTorch lets no Python stand in for a device",
)
REQUESTS = (
    DescribeEngine(),
    UseDevice(device="fake:0"),
    ReadMemory(device="fake:0"),
    ReadSegments(device="fake:0"),
    run_request(device="fake:0", workload="launch", size=1),
    run_request(device="fake:0", workload="matmul"),
    run_request(device="fake:0", workload="custom_kernel"),
    run_request(device="cuda:0"),
)


@pytest.fixture(scope="module")
def events() -> list[Event]:
    lines = [encode(request).decode() for request in REQUESTS]
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.accelerators.fake_accelerator", *lines],
        capture_output=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr.decode()
    return [decode_event(line) for line in done.stdout.splitlines()]


def test_the_engine_lists_its_cards(events):
    described = events[0]
    assert described.accelerator == "fake"
    assert described.card_addresses == ["fake:0"]
    (card,) = described.cards
    assert (card.address, card.name) == ("fake:0", "Fake card 0")


def test_it_can_be_the_current_device(events):
    (used,) = only(DeviceUsed, events)
    assert (used.device, used.name, used.uuid) == ("fake:0", "Fake card 0", "FAKE-0")
    assert "torch.fake.set_device(0)" in used.snippet


def test_its_memory_is_read_and_what_it_lacks_is_reported(events):
    assert {read.device for read in only(MemoryRead, events)} == {"fake:0"}
    (failed,) = only(RequestFailed, events)
    assert failed.failure.message == "Fake cards have no segments."


def test_a_workload_runs_on_it_and_is_verified(events):
    finished = {event.workload: event for event in only(RunFinished, events)}
    assert set(finished) == {"launch", "matmul"}
    for run in finished.values():
        assert (run.device, run.device_name, run.verified) == ("fake:0", "Fake card 0", True)


def test_a_snippet_waits_for_it_with_its_own_part_of_pytorch(events):
    snippets = {event.workload: event.snippet for event in only(RunStarted, events)}
    assert 'torch.fake.synchronize("fake:0")' in snippets["launch"]


def test_what_is_not_its_own_is_refused_with_the_reason(events):
    messages = [one.failure.message for one in events if hasattr(one, "failure")]
    assert "Fake cards have no custom kernels." in messages
    assert "There is no cuda:0 here; there are cpu, fake:0." in messages
