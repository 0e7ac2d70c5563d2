from __future__ import annotations

import pytest

from gpu_studio.core.devices.card_programs import (
    busiest_other,
    do_others_compute,
    memory_by_program,
)
from gpu_studio.core.devices.devices import GpuProcess


def test_processes_of_one_program_are_added_and_the_small_ones_share_a_row():
    processes = [
        GpuProcess(pid=1, name="/usr/bin/a", memory_bytes=1),
        GpuProcess(pid=2, name="b", memory_bytes=5),
        GpuProcess(pid=3, name=r"C:\bin\a", memory_bytes=2),
        GpuProcess(pid=4, name="c", memory_bytes=2),
        GpuProcess(pid=5, name="d", memory_bytes=1),
        GpuProcess(pid=6, name="silent"),
    ]
    assert memory_by_program(processes, 2) == [("b", 5), ("a", 3), ("2 others", 3)]
    assert memory_by_program(processes, 4) == [("b", 5), ("a", 3), ("c", 2), ("d", 1)]
    assert memory_by_program(processes[5:], 2) == []


def on_card(compute, graphics, busy=None) -> list[GpuProcess]:
    def kind(pid: int) -> str:
        both = "compute and graphics" if pid in graphics else "compute"
        return both if pid in compute else "graphics"

    pids = sorted({*compute, *graphics})
    return [GpuProcess(pid=pid, kind=kind(pid), busy_percent=(busy or {}).get(pid)) for pid in pids]


@pytest.mark.parametrize(
    ("compute", "graphics", "others"),
    [
        ([1], [], False),
        ([1, 2], [], True),
        ([1], [2], False),
        ([1, 2], [2], False),  # Windows lists what draws as computing too
        ([1, 2], [1, 2], False),
        ([2], [], False),  # this process under another number, in a container
        ([2, 3], [], True),
        ([], [], None),
    ],
)
def test_other_processes_are_those_that_compute_and_do_not_draw(compute, graphics, others):
    assert do_others_compute(on_card(compute, graphics), own_pid=1) is others


@pytest.mark.parametrize(
    ("busy", "compute", "graphics", "busiest"),
    [
        ({1: 90.0, 2: 20.0, 3: 60.0}, [1], [2, 3], 3),  # 1 is us
        ({}, [1], [2], 2),
        ({}, [1, 2, 3], [2, 3], None),  # Windows lists its whole desktop
        ({}, [], [], None),
        ({2: 90.0}, [7], [2], None),  # in a container, the numbers are the host's
    ],
)
def test_the_program_that_keeps_a_card_busy_is_named_if_known(busy, compute, graphics, busiest):
    assert busiest_other(on_card(compute, graphics, busy), own_pid=1) == busiest
