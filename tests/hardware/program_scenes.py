"""Scenes of programs on a card, from stand-ins of PDH, D3DKMT, NVML, amdkfd and fdinfo.

A scene is a PC over some seconds; what the program says of it comes from the real readers.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

from gpu_studio.core.devices.card_programs import CardState
from gpu_studio.hardware import processes as processes_module
from gpu_studio.hardware.card_reader import CardUnreadableError
from gpu_studio.hardware.linux.fdinfo import CardClients, Descriptors
from gpu_studio.hardware.linux.reader import computing_on, kfd_node
from gpu_studio.hardware.linux.sys_tree import SysTree
from gpu_studio.hardware.nvidia.nvidia import NvidiaCard
from gpu_studio.hardware.nvidia.nvml import Nvml
from gpu_studio.hardware.processes import ProcessBook
from gpu_studio.hardware.windows import counters as counters_module
from gpu_studio.hardware.windows.counters import GraphicsCounters, SlotUse
from gpu_studio.hardware.windows.d3dkmt import open_adapters
from gpu_studio.hardware.windows.reader import WindowsReader
from tests.hardware.fake_nvml import GT_1030, FakeNvml, NVMLError, process
from tests.hardware.fake_windows import FakeAdapter, FakeGdi32, FakePdh, counted

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
ME = "me"


@dataclass(frozen=True)
class P:
    """A program; sizes are MiB, loads per cent.

    Attributes:
        own: on the card.
        shared: in the PC's RAM, through the card.
        load: by engine.
        nvml: in which of NVML's lists it is: "c", "g" or both.
        began: tells it from another one with its id.
        is_hidden: the system tells nothing about it.
        is_gone: it has ended, and a counter still has it.
        kfd: its memory for amdkfd; None if amdkfd does not have it.
    """

    pid: int
    name: str
    own: int | None = 0
    shared: int = 0
    load: dict[str, float] = field(default_factory=dict)
    nvml: str = ""
    user: str = ME
    unit: str = ""
    began: int = 1
    is_hidden: bool = False
    is_gone: bool = False
    kfd: int | None = None
    other_card: bool = False

    def at(self, **changes) -> P:
        return replace(self, **changes)


@dataclass(frozen=True)
class Scene:
    """A PC for some seconds.

    Attributes:
        system: "nvidia on windows", "windows", "nvidia on linux" or "linux".
        seconds: the programs at each second; one entry lasts for eleven.
        total: the card's memory, MiB.
        used: of it; None is what the programs have, and what the desktop takes.
        is_integrated: the card is a part of the processor, beside an RTX 3060.
        on_better: the processes on that one.
    """

    system: str
    seconds: tuple[tuple[P, ...], ...]
    total: int = 6144
    used: int | None = None
    is_integrated: bool = False
    on_better: tuple[int, ...] = ()
    lost_at: int = 999
    is_tcc: bool = False
    restarts_at: int = -1  # when the driver started anew, and the adapter got another LUID

    def state(self, last: tuple[P, ...]) -> CardState:
        return CardState(
            total_bytes=self.total * MIB,
            used_bytes=self._used_bytes(last),
            better="RTX 3060" if self.is_integrated else "",
            on_better=self.on_better,
        )

    def _used_bytes(self, programs: tuple[P, ...]) -> int:
        if self.used is not None:
            return self.used * MIB
        return sum(min(one.own or 0, self.total) for one in programs if not one.other_card) * MIB

    def every_second(self) -> tuple[tuple[P, ...], ...]:
        return self.seconds * 11 if len(self.seconds) == 1 else self.seconds


class Stage:
    """Plays scenes: a clock, the processes of the system, and a folder.

    Args:
        monkeypatch: pytest's.
        folder: an empty one.
    """

    def __init__(self, monkeypatch, folder: Path) -> None:
        self.now_s = 100.0
        self._folder = folder
        self._programs: dict[int, P] = {}
        self._there: set[int] = set()
        platform = SimpleNamespace(platform="linux")
        self._platform = platform
        monkeypatch.setattr(processes_module, "sys", platform)
        monkeypatch.setattr(processes_module, "_began", self._began)
        monkeypatch.setattr(processes_module, "_unit_of", lambda pid: self._programs[pid].unit)
        monkeypatch.setattr(processes_module.psutil, "Process", self._process)
        monkeypatch.setattr(processes_module.psutil, "pid_exists", self._exists)

    def play(self, scene: Scene):
        """Return the processes at the end of a scene, and the state of the card."""
        self._platform.platform = "win32" if "windows" in scene.system else "linux"
        read = self._reader_of(scene)
        book = ProcessBook(now_s=lambda: self.now_s)
        found, programs = (), ()
        for second, programs in enumerate(scene.every_second()):
            there = [one for one in programs if not one.is_gone]
            self._there = {one.pid for one in there}
            self._programs = {one.pid: one for one in there if not one.is_hidden}
            try:
                found = book.of_card("card", read(programs, second))
            except CardUnreadableError:
                found = ()
            self.now_s += 1.0
        return found, scene.state(programs)

    def _reader_of(self, scene: Scene):
        return {
            "nvidia on windows": self._nvidia_on_windows,
            "windows": self._windows,
            "nvidia on linux": self._nvidia_on_linux,
            "linux": self._linux,
        }[scene.system](scene)

    # ── the systems ──────────────────────────────────────────────────────────────────────────

    @staticmethod
    def _sizes(programs):
        return {one.pid: ((one.own or 0) * MIB, one.shared * MIB, one.load) for one in programs}

    def _pdh(self, scene: Scene, adapter: FakeAdapter, pdh: FakePdh, programs) -> None:
        here = [one for one in programs if not one.other_card]
        other = adapter._replace(low=adapter.low + 1)
        values = counted(adapter, self._sizes(here))
        elsewhere = [one for one in programs if one.other_card]
        there = counted(
            other,
            {one.pid: ((one.own or 0) * MIB, one.shared * MIB, one.load) for one in elsewhere},
        )
        pdh.values = {path: {**rows, **there[path]} for path, rows in values.items()}
        place = f"{adapter.luid}_phys_0"
        pdh.values[counters_module._OWN] = {place: float(scene._used_bytes(tuple(here)))}
        shared = sum(one.shared for one in here) * MIB
        pdh.values[counters_module._SHARED] = {place: float(shared)}

    def _nvidia_on_windows(self, scene: Scene):
        adapter = FakeAdapter(bus=1, vendor=0x10DE, device=0x1C03, dedicated=scene.total * MIB)
        gdi32, pdh = FakeGdi32(adapter._replace(bus=9) if scene.is_tcc else adapter), FakePdh({})
        answers = dict(GT_1030)
        library = FakeNvml(answers)
        counters = GraphicsCounters(pdh, lambda: self.now_s)
        windows = SlotUse(lambda: open_adapters(gdi32), counters, lambda: self.now_s)
        card = NvidiaCard(Nvml(library).card(0), None, windows.at)

        def read(programs, second):
            if second >= scene.restarts_at >= 0:
                gdi32.adapters = [adapter._replace(low=0xBEEF)]
            self._pdh(scene, gdi32.adapters[0], pdh, programs)
            used = scene._used_bytes(programs)
            whole = scene.total * MIB
            memory = SimpleNamespace(total=whole, used=used, free=whole - used, reserved=0)
            answers["MemoryInfo"] = answers["MemoryInfo", 0x02000028] = memory
            for letter, name in (("c", "Compute"), ("g", "Graphics")):
                listed = [one for one in programs if letter in one.nvml]
                answers[f"{name}RunningProcesses"] = [process(one.pid, None) for one in listed]
            return card.processes(with_load=True)

        return read

    def _windows(self, scene: Scene):
        if scene.is_integrated:
            adapter = FakeAdapter(
                vendor=0x8086, device=0x3E92, name="UHD 630", dedicated=128 * MIB,
                shared=scene.total * MIB - 128 * MIB,
            )  # fmt: skip
        else:
            adapter = FakeAdapter(dedicated=scene.total * MIB)
        pdh = FakePdh({})
        counters = GraphicsCounters(pdh, lambda: self.now_s)
        reader = WindowsReader(lambda: open_adapters(FakeGdi32(adapter)), counters)
        card = reader.card(adapter.slot)

        def read(programs, _second):
            self._pdh(scene, adapter, pdh, programs)
            return card.processes(with_load=True)

        return read

    def _nvidia_on_linux(self, scene: Scene):
        answers = dict(GT_1030)
        card = NvidiaCard(Nvml(FakeNvml(answers)).card(0))
        seen = [0]

        def read(programs, second):
            whole = scene.total * MIB
            if second >= scene.lost_at:
                answers["ComputeRunningProcesses"] = NVMLError(15)
                return card.processes()
            answers["MemoryInfo"] = answers["MemoryInfo", 0x02000028] = SimpleNamespace(
                total=whole, used=scene._used_bytes(programs), free=0, reserved=0
            )
            card._card.memory()
            for letter, name in (("c", "Compute"), ("g", "Graphics")):
                listed = [one for one in programs if letter in one.nvml]
                answers[f"{name}RunningProcesses"] = [
                    process(one.pid, None if one.own is None else one.own * MIB) for one in listed
                ]
            at_us = 1_000_000 * (second + 5)
            samples = [
                SimpleNamespace(pid=one.pid, smUtil=int(one.load["sm"]), timeStamp=at_us)
                for one in programs
                if one.load.get("sm")
            ]
            refused = NVMLError(3 if any("old" in one.load for one in programs) else 6)
            answers["ProcessUtilization", seen[0]] = samples or refused
            seen[0] = at_us if samples else seen[0]
            return card.processes(with_load=True)

        return read

    def _linux(self, scene: Scene):
        slot = "0000:03:00.0"
        proc, sys_folder = self._folder / "proc", self._folder / "sys"
        node = sys_folder / "class/kfd/kfd/topology/nodes/1"
        node.mkdir(parents=True, exist_ok=True)
        (node / "properties").write_text("gfx_target_version 100302\nlocation_id 768\ndomain 0\n")
        (node / "gpu_id").write_text("4711\n")
        descriptors = Descriptors(proc)
        clients = CardClients(slot, scene.is_integrated, descriptors, lambda: self.now_s)
        worked: dict[tuple[int, str], int] = {}

        def read(programs, _second):
            shutil.rmtree(proc, ignore_errors=True)
            shutil.rmtree(sys_folder / "class/kfd/kfd/proc", ignore_errors=True)
            for one in programs:
                if one.kfd is not None:
                    held = sys_folder / f"class/kfd/kfd/proc/{one.pid}/vram_4711"
                    held.parent.mkdir(parents=True)
                    held.write_text(str(one.kfd * MIB))
                if one.is_hidden or one.own is None:
                    continue
                for folder in ("fd", "fdinfo"):
                    (proc / str(one.pid) / folder).mkdir(parents=True)
                (proc / str(one.pid) / "fd/3").symlink_to("/dev/dri/renderD128")
                lines = [
                    f"drm-client-id: {one.pid}", "drm-driver: amdgpu",
                    f"drm-pdev: {'0000:09:00.0' if one.other_card else slot}",
                    f"drm-memory-vram: {one.own * 1024} KiB",
                    f"drm-memory-gtt: {one.shared * 1024} KiB",
                ]  # fmt: skip
                for engine, percent in one.load.items():
                    key = (one.pid, engine)
                    worked[key] = worked.get(key, 0) + int(percent * 1e7)
                    lines.append(f"drm-engine-{engine}: {worked[key]} ns")
                (proc / str(one.pid) / "fdinfo/3").write_text("\n".join(lines))
            descriptors._looked_at_s = None  # as after five seconds
            clients.read()
            tree = SysTree(sys_folder)
            return clients.processes(computing_on(tree, kfd_node(tree, "00000000:03:00.0")))

        return read

    # ── the processes of the system ──────────────────────────────────────────────────────────

    def _exists(self, pid: int) -> bool:
        return pid in self._there

    def _began(self, pid: int) -> object:
        one = self._programs.get(pid)
        return None if one is None else one.began

    def _process(self, pid: int):
        one = self._programs.get(pid)
        if pid == os.getpid():
            return SimpleNamespace(username=lambda: ME)
        if one is None:
            raise processes_module.psutil.NoSuchProcess(pid)
        return SimpleNamespace(
            name=lambda: one.name,
            username=lambda: one.user,
            parents=lambda: [SimpleNamespace(pid=1)],
        )
