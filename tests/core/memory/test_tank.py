from hypothesis import given
from hypothesis import strategies as st

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.core.memory.oom_text import GpuProcessBytes, OomNumbers
from gpu_studio.core.memory.tank import (
    card_users,
    tank_of_card,
    tank_of_error,
    tank_of_ram,
    tank_of_sensors,
    with_programs,
)
from gpu_studio.core.messages.memory_messages import MemoryRead
from gpu_studio.core.telemetry import Telemetry
from tests.fakes.memory_answers import memory_read, no_context

MIB = 1 << 20


def sizes(tank):
    return {part.key: part.size_bytes // MIB for part in tank.parts}


def test_a_card_sums_to_what_nvml_calls_its_size():
    tank = tank_of_card(memory_read(allocated=1024, reserved=1260), 2048 * MIB)
    assert tank.total_bytes == 2048 * MIB
    assert sizes(tank) == {
        "driver": 52, "not_told": 338, "tensors": 1024, "holes": 236, "free": 398,
    }  # fmt: skip


def test_a_slice_of_a_card_is_not_summed_to_the_whole_card():
    tank = tank_of_card(memory_read(allocated=1, reserved=2), 80 << 30)
    assert tank.total_bytes == 1996 * MIB


def test_sensors_alone_report_used_and_free():
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


def process(pid, mib):
    return GpuProcess(pid=pid, name="a", memory_bytes=None if mib is None else mib * MIB)


def used_by(*processes, others=None):
    users = card_users(processes, 11, others or {})
    read = memory_read(allocated=1024, reserved=1260)
    return sizes(tank_of_card(read, 2048 * MIB, users))


def test_processes_are_told_apart_and_the_engines_own_is_its_context():
    parts = used_by(process(11, 1260 + 200), process(12, 60), process(13, 40))
    assert parts == {
        "driver": 52, "others": 100, "not_told": 38, "context": 200, "tensors": 1024,
        "holes": 236, "free": 398,
    }  # fmt: skip


def test_where_windows_gives_no_numbers_the_rest_is_not_reported():
    assert used_by(process(11, None), process(12, None)) == {
        "driver": 52, "not_told": 338, "tensors": 1024, "holes": 236, "free": 398,
    }  # fmt: skip
    # One process without a number: the others' sum would be too small.
    assert "others" not in used_by(process(11, 1300), process(12, 60), process(13, None))


def test_where_the_engine_is_not_listed_the_list_is_not_believed():
    """As in a container: its own memory may stand there under another number."""
    assert "others" not in used_by(process(12, 300))


def error(**numbers):
    return OomNumbers(**{key: value * MIB for key, value in numbers.items()})


def test_an_error_describes_a_tank_and_the_rest_is_not_reported():
    tank = tank_of_error(
        error(total_bytes=1996, free_bytes=140, allocated_bytes=1500, unallocated_bytes=100)
    )
    assert sizes(tank) == {"not_told": 256, "tensors": 1500, "holes": 100, "free": 140}
    assert tank_of_error(error(tried_bytes=256)) is None


def test_an_error_that_names_processes_reports_more():
    numbers = OomNumbers(
        total_bytes=1996 * MIB, free_bytes=140 * MIB, allocated_bytes=1400 * MIB,
        reserved_bytes=1500 * MIB, in_use_bytes=1560 * MIB,
        processes=(GpuProcessBytes(12, 200 * MIB),),
    )  # fmt: skip
    assert sizes(tank_of_error(numbers)) == {
        "others": 200, "not_told": 96, "context": 60, "tensors": 1400, "holes": 100, "free": 140,
    }  # fmt: skip


def test_programs_that_say_more_than_is_in_use_get_no_more_than_that():
    tank = tank_of_sensors(Telemetry(memory_used_bytes=600), 1000)
    named = with_programs(tank, [("a", 500), ("b", 400), ("c", 50)], 0)
    assert [(part.label, part.size_bytes) for part in named.parts] == [
        ("a", 500), ("b", 100), ("Free", 400),
    ]  # fmt: skip
