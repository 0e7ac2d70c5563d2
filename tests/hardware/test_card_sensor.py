from __future__ import annotations

import pytest

from gpu_studio.hardware.card_sensor import CardSensor
from tests.hardware.fake_nvml import GT_1030, GT_1030_UUID, FakeNvml, NVMLError, process


def answers(sensor: CardSensor):
    return (
        sensor.clock_event_reasons(),
        sensor.sm_clock_mhz(),
        sensor.sm_clock_max_mhz(),
        sensor.has_other_processes(1),
    )


@pytest.mark.parametrize("uuid", [GT_1030_UUID, GT_1030_UUID.removeprefix("GPU-")])
def test_a_card_is_found_by_its_uuid(uuid):
    assert answers(CardSensor(uuid, FakeNvml(GT_1030))) == (1, 139, 1911, False)


@pytest.mark.parametrize(
    ("compute", "graphics", "own_pid", "others"),
    [
        ([1], [], 1, False),
        ([1, 2], [], 1, True),
        ([1], [2], 1, False),
        ([1, 2], [2], 1, False),  # Windows lists what draws as computing too
        ([2], [], 1, True),  # this process has no context yet
        ([9], [], 1, None),  # a number of the host's, this process's own perhaps
        ([1, 9], [], 1, True),
    ],
)
def test_other_processes_are_those_that_compute(compute, graphics, own_pid, others, monkeypatch):
    monkeypatch.setattr("psutil.pid_exists", lambda pid: pid != 9)
    card = GT_1030 | {
        "ComputeRunningProcesses": [process(pid, 1) for pid in compute],
        "GraphicsRunningProcesses": [process(pid, 1) for pid in graphics],
    }
    assert CardSensor(GT_1030_UUID, FakeNvml(card)).has_other_processes(own_pid) is others


@pytest.mark.parametrize(
    "library",
    [
        FakeNvml(init=NVMLError(12)),
        FakeNvml(),
        FakeNvml(dict.fromkeys(GT_1030, NVMLError(15)) | {"UUID": GT_1030_UUID}),
    ],
)
def test_without_a_driver_or_a_card_nothing_is_known(library):
    sensor = CardSensor(GT_1030_UUID, library)
    assert answers(sensor) == (None, None, None, None)
    sensor.close()


def test_a_closed_sensor_has_given_its_session_back():
    library = FakeNvml(GT_1030)
    sensor = CardSensor(GT_1030_UUID, library)
    sensor.close()
    assert library.open_sessions == 0
    assert sensor.sm_clock_mhz() is None
