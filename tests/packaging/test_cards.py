from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from studio_setup import cards, nvml_lines
from studio_setup.fingerprint import hardware_fingerprint, nvidia_pci_devices

from gpu_studio.core.wheels import CudaCard

if TYPE_CHECKING:
    import ctypes
    from pathlib import Path

needs_sh = pytest.mark.skipif(sys.platform == "win32", reason="uses a shell script")


def test_cards_are_read_from_what_nvidia_smi_prints() -> None:
    report = "6.1, 580.95.05, NVIDIA GeForce GT 1030\n12.0, 580.95.05, NVIDIA, with a comma\n"
    found, driver_version = cards.cards_in(report)
    assert found == (
        CudaCard("NVIDIA GeForce GT 1030", (6, 1)),
        CudaCard("NVIDIA, with a comma", (12, 0)),
    )
    assert driver_version == "580.95.05"


@pytest.mark.parametrize(
    "report",
    [
        "",
        "No devices were found\n",
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library: 580.65\n",
        'Field "compute_cap" is not a valid field to query.\n',
        "[N/A], 580.95.05, NVIDIA GeForce GT 1030",
        "6.1, [Unknown Error], NVIDIA GeForce GT 1030",
        "6.1, 580.95.05, ",
        "6, 580.95.05, NVIDIA GeForce GT 1030",
        "61.1234, 580.95.05, NVIDIA GeForce GT 1030",
        "\x00\ufffd\n,,\n",
    ],
)
def test_anything_else_is_no_card(report: str) -> None:
    assert cards.cards_in(report) == ((), None)


def test_a_good_line_among_garbage_is_found() -> None:
    report = "warning: infoROM is corrupted at gpu 0000:01:00.0\r\n 8.6, 535.1, RTX 3060 \r\n"
    assert cards.cards_in(report) == ((CudaCard("RTX 3060", (8, 6)),), "535.1")


def _tool(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = folder / "nvidia-smi"
    script.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")


@needs_sh
def test_nvidia_smi_is_asked_for_all_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _tool(tmp_path, f'echo "$@" > {tmp_path}/asked; echo "8.9, 570.86, RTX 4090"', monkeypatch)
    sighting = cards.find_cards()
    assert sighting == cards.Sighting((CudaCard("RTX 4090", (8, 9)),), "570.86", None)
    asked = (tmp_path / "asked").read_text(encoding="utf-8")
    assert "--query-gpu=compute_cap,driver_version,name --format=csv,noheader" in asked


@needs_sh
def test_a_driver_that_waits_for_a_restart_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _tool(
        tmp_path, "echo 'Failed to initialize NVML: Driver/library version mismatch'", monkeypatch
    )
    monkeypatch.setattr(cards, "_NVML", "no_such_script.py")
    sighting = cards.find_cards()
    assert sighting.cards == ()
    assert sighting.trouble is not None
    assert "restart the PC" in sighting.trouble


@needs_sh
def test_a_hanging_driver_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tool(tmp_path, "exec sleep 60", monkeypatch)
    monkeypatch.setattr(cards, "_TIMEOUT_S", 0.2)
    sighting = cards.find_cards()
    assert (sighting.cards, sighting.timed_out) == ((), True)


def test_a_tool_that_is_not_there_says_nothing() -> None:
    assert cards.answer_of(["/no/such/tool"], 1.0) == ""


class _Nvml:
    """The driver's library with two cards, of which the second refuses."""

    def __init__(self, init_status: int = 0) -> None:
        self._init_status = init_status

    def nvmlInit_v2(self) -> int:
        return self._init_status

    def nvmlSystemGetDriverVersion(self, buffer: Any, size: int) -> int:
        buffer.value = b"470.256.02"
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:
        handle._obj.value = index + 1
        return 0

    def nvmlDeviceGetCudaComputeCapability(
        self, handle: ctypes.c_void_p, major: Any, minor: Any
    ) -> int:
        major._obj.value, minor._obj.value = 3, 5
        return 0 if handle.value == 1 else 15

    def nvmlDeviceGetName(self, handle: ctypes.c_void_p, buffer: Any, size: int) -> int:
        buffer.value = b"GeForce GT 710"
        return 0


def test_the_driver_library_answers_in_the_same_form() -> None:
    lines = nvml_lines.card_lines(_Nvml())
    assert lines == ["3.5, 470.256.02, GeForce GT 710"]
    assert cards.cards_in("\n".join(lines))[0] == (CudaCard("GeForce GT 710", (3, 5)),)
    assert nvml_lines.card_lines(_Nvml(init_status=9)) == []


def _pci_device(root: Path, address: str, vendor: str, kind: str, device: str) -> None:
    folder = root / "sys/bus/pci/devices" / address
    folder.mkdir(parents=True)
    for name, text in (("vendor", vendor), ("class", kind), ("device", device)):
        (folder / name).write_text(f"{text}\n", encoding="ascii")


def test_the_fingerprint_changes_with_cards_and_driver(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert hardware_fingerprint("linux", root) == ""
    _pci_device(tmp_path, "0000:00:02.0", "0x8086", "0x030000", "0x9bc8")
    _pci_device(tmp_path, "0000:01:00.1", "0x10de", "0x040300", "0x0fb8")
    assert hardware_fingerprint("linux", root) == ""
    _pci_device(tmp_path, "0000:01:00.0", "0x10de", "0x030000", "0x1d01")
    _pci_device(tmp_path, "0000:02:00.0", "0x10de", "0x030200", "0x2b85")
    assert nvidia_pci_devices(root) == ["10de:1d01", "10de:2b85"]
    without_driver = hardware_fingerprint("linux", root)
    module = tmp_path / "sys/module/nvidia"
    module.mkdir(parents=True)
    (module / "version").write_text("570.86.16\n", encoding="ascii")
    older = hardware_fingerprint("linux", root)
    (module / "version").write_text("580.65.06\n", encoding="ascii")
    newer = hardware_fingerprint("linux", root)
    assert len({"", without_driver, older, newer}) == 4


def test_the_fingerprint_sees_the_driver_of_wsl(tmp_path: Path) -> None:
    library = tmp_path / "usr/lib/wsl/lib/libcuda.so.1"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"one")
    first = hardware_fingerprint("linux", str(tmp_path))
    library.write_bytes(b"three")
    assert first.startswith("wsl ")
    assert hardware_fingerprint("linux", str(tmp_path)) != first


class Key(dict[str, Any]):
    """A key of the registry: its subkeys or its values; None is a subkey that may not be opened."""

    def __enter__(self) -> Key:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Registry:
    """Stands in for the module winreg, with one key for the display adapters, or without it."""

    HKEY_LOCAL_MACHINE = "HKEY_LOCAL_MACHINE"

    def __init__(self, adapters: dict[str, Any] | None) -> None:
        self._adapters = adapters

    def OpenKey(self, parent: Any, name: str) -> Key:
        found = self._adapters if parent == self.HKEY_LOCAL_MACHINE else parent[name]
        if found is None:
            raise OSError(name)
        return Key(found)

    def EnumKey(self, key: Key, index: int) -> str:
        if index >= len(key):
            raise OSError("No more data is available")
        return list(key)[index]

    def QueryValueEx(self, key: Key, name: str) -> tuple[str, int]:
        if name not in key:
            raise FileNotFoundError(name)
        return key[name], 1


def adapter(device: str, version: str) -> dict[str, str]:
    return {"MatchingDeviceId": device, "DriverVersion": version}


def test_a_card_behind_a_gap_in_the_registry_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    gt_1030, rtx_3060 = r"PCI\VEN_10DE&DEV_1D01", r"PCI\VEN_10DE&DEV_2504"
    keys = {
        "Properties": None,  # Windows keeps it from all programs
        "0002": {"MatchingDeviceId": gt_1030},  # its driver was removed
        "0003": adapter(rtx_3060, "32.0.15.7602"),
        "0000": adapter(r"PCI\VEN_8086&DEV_3E92", "31.0.101.2111"),
        "0120": adapter(gt_1030, "32.0.15.7602"),
    }
    monkeypatch.setitem(sys.modules, "winreg", Registry(keys))
    seen = f"{rtx_3060} 32.0.15.7602;{gt_1030} 32.0.15.7602"
    assert hardware_fingerprint("win32") == seen


@pytest.mark.parametrize("adapters", [None, {}])
def test_a_registry_without_adapters_has_no_card(
    monkeypatch: pytest.MonkeyPatch, adapters: dict[str, Any] | None
) -> None:
    monkeypatch.setitem(sys.modules, "winreg", Registry(adapters))
    assert hardware_fingerprint("win32") == ""
