from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpu_studio.core.devices import Telemetry
from gpu_studio.core.protocol import MemoryRead
from gpu_studio.core.tank import tank_of_card, tank_of_ram, tank_of_sensors
from tests.fakes import memory_read, no_context

MIB = 1 << 20


def sizes(tank):
    return {part.key: part.size_bytes // MIB for part in tank.parts}


def test_a_card_sums_to_what_nvml_calls_its_size():
    tank = tank_of_card(memory_read(allocated=1024, reserved=1260), 2048 * MIB)
    assert tank.total_bytes == 2048 * MIB
    assert sizes(tank) == {"others": 390, "tensors": 1024, "holes": 236, "free": 398}


def test_a_card_without_nvml_sums_to_what_cuda_calls_its_size():
    tank = tank_of_card(memory_read(allocated=1024, reserved=1260))
    assert tank.total_bytes == 1996 * MIB
    assert sizes(tank)["others"] == 338


def test_a_slice_of_a_card_is_not_summed_to_the_whole_card():
    tank = tank_of_card(memory_read(allocated=1, reserved=2), 80 << 30)
    assert tank.total_bytes == 1996 * MIB


def test_without_a_context_there_is_no_tank_of_pytorch():
    assert tank_of_card(no_context(), 2048 * MIB) is None


def test_sensors_alone_tell_used_and_free():
    tank = tank_of_sensors(Telemetry(memory_free_bytes=1700 * MIB), 2048 * MIB)
    assert sizes(tank) == {"others": 348, "free": 1700}
    used_only = tank_of_sensors(Telemetry(memory_used_bytes=48 * MIB), 2048 * MIB)
    assert sizes(used_only) == {"others": 48, "free": 2000}
    assert tank_of_sensors(Telemetry(), 2048 * MIB) is None
    assert tank_of_sensors(Telemetry(memory_free_bytes=1), None) is None


def test_the_pc_has_the_engine_in_it():
    tank = tank_of_ram(memory_read("cpu"))
    assert sizes(tank) == {"others": 12 * 1024 - 350, "engine": 350, "free": 20 * 1024}
    assert tank_of_ram(no_context("cpu")) is None


amounts = st.integers(-(1 << 20), 1 << 45)


@given(total=st.integers(1, 1 << 44), free=amounts, allocated=amounts, reserved=amounts)
def test_the_parts_always_sum_to_the_whole(total, free, allocated, reserved):
    read = MemoryRead(
        device="cuda:0", taken_at_s=0.0, total_bytes=total, free_bytes=free,
        allocated_bytes=allocated, reserved_bytes=reserved,
    )  # fmt: skip
    tank = tank_of_card(read)
    assert sum(part.size_bytes for part in tank.parts) == tank.total_bytes == total
    assert all(part.size_bytes >= 0 for part in tank.parts)


def test_sentence_and_table_say_the_same():
    tank = tank_of_card(memory_read(allocated=1024, reserved=1260), 2048 * MIB)
    for label, memory, _share, meaning in tank.rows():
        assert f"{label} {memory}" in tank.sentence
        assert meaning
    assert tank.rows()[1][2].startswith("50")
