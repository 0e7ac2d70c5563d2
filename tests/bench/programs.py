"""How much of a core it costs to read the programs on a card once a second, with 300 of them.

Real processes (``sleep``) stand on stand-ins of a card: NVML's lists, the files of fdinfo, and
Windows' counters of two adapters, whose own time inside of Windows is not in it.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from gpu_studio.hardware.linux.fdinfo import CardClients, Descriptors
from gpu_studio.hardware.nvidia.nvidia import NvidiaCard
from gpu_studio.hardware.nvidia.nvml import Nvml
from gpu_studio.hardware.processes import ProcessBook
from gpu_studio.hardware.windows.counters import GraphicsCounters
from tests.hardware.fake_nvml import GT_1030, FakeNvml, process
from tests.hardware.fake_windows import FakeAdapter, FakePdh, counted

COUNT = 300
READINGS = 20
TARGET_PERCENT = 2.0
_DESCRIPTORS = 40
_SLOTS = ("0000:03:00.0", "0000:09:00.0")


class PreparedPdh(FakePdh):
    """Windows' answers as blocks of memory that are only copied."""

    def prepare(self):
        self._blocks = {}
        for number in range(1, len(self.paths) + 1):
            size, count = ctypes.c_uint32(0), ctypes.c_uint32(0)
            counter = ctypes.c_void_p(number)
            super().PdhGetFormattedCounterArrayW(
                counter, 0, ctypes.byref(size), ctypes.byref(count), None
            )
            room = ctypes.create_string_buffer(max(size.value, 1))
            super().PdhGetFormattedCounterArrayW(
                counter, 0, ctypes.byref(size), ctypes.byref(count), room
            )
            self._blocks[number] = (room.raw, size.value, count.value)

    def PdhGetFormattedCounterArrayW(self, counter, form, size, count, room):
        if not hasattr(self, "_blocks"):
            self.prepare()
        block, size._obj.value, count._obj.value = self._blocks[counter.value]
        if room is None:
            return ctypes.c_int32(0x800007D2).value
        ctypes.memmove(room, block, size._obj.value)
        return 0


def on_windows(pids):
    clock = [0.0]
    loads = dict.fromkeys(("Compute_0", "VideoEncode", "Security", "Overlay", "Timer"), 0.0)
    here = {pid: (5 << 20, 1 << 20, {**loads, "3D": 1.0 if pid % 9 == 0 else 0.0}) for pid in pids}
    adapters = FakeAdapter(low=1), FakeAdapter(low=2)
    values: dict[str, dict[str, float]] = {}
    for adapter in adapters:
        for path, rows in counted(adapter, here).items():
            values.setdefault(path, {}).update(rows)
    counters = GraphicsCounters(PreparedPdh(values), lambda: clock[0])
    answers = dict(GT_1030)
    answers["GraphicsRunningProcesses"] = [process(pid, None) for pid in pids]
    whole = 6 << 30
    memory = SimpleNamespace(total=whole, used=len(pids) * (5 << 20), free=0, reserved=0)
    answers["MemoryInfo"] = answers["MemoryInfo", 0x02000028] = memory
    card = NvidiaCard(
        Nvml(FakeNvml(answers)).card(0), None, lambda _slot: counters.use_of(adapters[0].luid)
    )

    def read():
        clock[0] += 1.0
        return card.processes(with_load=True)

    return read


def on_nvidia(pids):
    answers = dict(GT_1030)
    answers["ComputeRunningProcesses"] = [process(pid, 5 << 20) for pid in pids]
    samples = [SimpleNamespace(pid=pid, smUtil=1, timeStamp=5_000_000) for pid in pids]
    card = NvidiaCard(Nvml(FakeNvml(answers)).card(0))

    def read():
        answers["ProcessUtilization", card._seen_us] = samples
        return card.processes(with_load=True)

    return read


def on_linux(pids, folder: Path):
    """Two cards; each program has one of them open, among its other files."""
    for pid in pids:
        for name in ("fd", "fdinfo"):
            (folder / str(pid) / name).mkdir(parents=True)
        for number in range(_DESCRIPTORS):
            (folder / str(pid) / "fd" / str(number)).symlink_to("/dev/null")
        (folder / str(pid) / "fd/99").symlink_to("/dev/dri/renderD128")
        engines = "".join(
            f"drm-engine-{one}:\t123456789 ns\n"
            for one in ("gfx", "compute", "dma", "dec", "enc", "jpeg")
        )
        memory = "".join(
            f"drm-{word}-{one}:\t5120 KiB\n"
            for word in ("total", "shared", "active", "resident", "memory")
            for one in ("vram", "gtt", "cpu")
        )
        (folder / str(pid) / "fdinfo/99").write_text(
            f"pos:\t0\nflags:\t02\nmnt_id:\t25\nino:\t1\ndrm-driver:\tamdgpu\ndrm-client-id:\t{pid}\n"
            f"drm-pdev:\t{_SLOTS[pid % 2]}\n{memory}{engines}"
        )
    clock = [0.0]
    shared = Descriptors(folder)
    cards = [CardClients(slot, False, shared, lambda: clock[0]) for slot in _SLOTS]

    def read():
        clock[0] += 1.0
        found = []
        for card in cards:
            card.read()
            found += card.processes()
        return found

    return read


def share_percent(read, pids) -> float:
    """Return the share of a core of one reading a second."""
    book = ProcessBook()
    for _ in range(3):  # each process is looked up once
        found = book.of_card("card", read())
    assert len(found) == len(pids)
    began_s = time.process_time()
    for _ in range(READINGS):
        book.of_card("card", read())
    return 100 * (time.process_time() - began_s) / READINGS


def main() -> None:
    print(f"Load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    children = [subprocess.Popen(["sleep", "600"]) for _ in range(COUNT)]
    pids = [one.pid for one in children]
    try:
        with tempfile.TemporaryDirectory() as folder:
            reads = {
                "Windows, NVIDIA and another card": on_windows(pids),
                "Linux, NVIDIA": on_nvidia(pids),
                "Linux, two other cards": on_linux(pids, Path(folder)),
            }
            for name, read in reads.items():
                percent = share_percent(read, pids)
                verdict = "" if percent <= TARGET_PERCENT else "  over the target"
                print(f"{name:<34} {percent:5.2f} % of a core with {COUNT} programs{verdict}")
    finally:
        for one in children:
            one.kill()
            one.wait()


if __name__ == "__main__":
    if os.name != "posix":
        sys.exit("This bench needs the processes of Linux.")
    main()
