from __future__ import annotations

import pytest

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.model.memory.engine_memory import EngineMemory, Tanks
from tests.fakes.memory_answers import memory_read
from tests.fakes.pc import gt_1030_card

MIB = 1 << 20
CARD = gt_1030_card(torch_index=0)


class Listed:
    """Stands in for the sensors: one process on the card."""

    def __init__(self, pid, mib):
        self.listed = (GpuProcess(pid=pid, name="python", memory_bytes=mib * MIB),)

    def processes(self, _device):
        return self.listed


@pytest.fixture
def clock():
    return [100.0]


@pytest.fixture
def memory(qapp, clock):
    memory = EngineMemory(lambda: clock[0], lambda _address: CARD.identity, {})
    memory.pid = 7
    return memory


def receive(memory, reserved, at_s):
    memory._receive(memory_read(reserved=reserved, taken_at_s=at_s))


def context_of(tanks, memory):
    read = memory.latest(CARD.identity)
    tank = tanks.of(read, CARD, memory.pid)
    return {part.key: part.size_bytes // MIB for part in tank.parts}.get("context")


def test_the_context_is_what_the_process_has_besides_what_pytorch_reserved(memory):
    tanks = Tanks(Listed(7, 512 + 90))
    receive(memory, 512, 0.0)
    tanks.learn(CARD.identity, CARD, memory)
    assert context_of(tanks, memory) == 90


def test_nothing_is_learned_while_memory_is_taken_and_what_is_known_stays(memory, clock):
    tanks = Tanks(Listed(7, 512 + 90))
    receive(memory, 256, 0.0)
    receive(memory, 512, 0.1)
    clock[0] += 0.2
    tanks.learn(CARD.identity, CARD, memory)
    assert context_of(tanks, memory) is None
    clock[0] += 1.0
    tanks.learn(CARD.identity, CARD, memory)
    assert context_of(tanks, memory) == 90
    receive(memory, 768, 1.3)  # the driver has not told of this yet
    tanks.learn(CARD.identity, CARD, memory)
    assert context_of(tanks, memory) == 90


def test_what_the_driver_reported_the_engine_itself_counts_before_all_else(memory):
    """Of the same moment, and to the byte: at the end of an experiment too short to be listed."""
    tanks = Tanks(Listed(7, 512 + 90))
    read = memory_read(reserved=512, engine_bytes=(512 + 87) * MIB)
    memory._receive(read)
    assert context_of(tanks, memory) == 87
    tanks.learn(CARD.identity, CARD, memory)
    assert context_of(tanks, memory) == 87
