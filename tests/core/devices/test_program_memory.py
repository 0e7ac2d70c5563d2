from __future__ import annotations

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.core.devices.program_memory import memory_by_program


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
