from __future__ import annotations

from types import SimpleNamespace

import psutil
import pytest

from gpu_studio.core.telemetry import Telemetry
from gpu_studio.hardware import cpu
from gpu_studio.hardware.cpu import CpuSensor, cpu_name, describe_cpu, name_in_cpuinfo
from tests.hardware.test_pci import FakeRegistry


def test_this_pc_has_a_cpu():
    device = describe_cpu(Telemetry())
    assert device.address == "cpu"
    assert device.name.strip()
    assert device.threads == psutil.cpu_count()
    assert device.memory_total_bytes == psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("model\t\t: 80\nmodel name\t: AMD Ryzen 7 5700G with Radeon Graphics\n",
         "AMD Ryzen 7 5700G with Radeon Graphics"),
        ("processor\t: 0\nmodel\t\t: 80\nmodel name\t: \n", ""),
        ("processor : 0\nHardware\t: BCM2711\nModel\t\t: Raspberry Pi 4 Model B\n",
         "Raspberry Pi 4 Model B"),
        ("", ""),
    ],
)  # fmt: skip
def test_the_name_is_found_in_cpuinfo(text, name):
    assert name_in_cpuinfo(text) == name


def test_the_name_is_found_in_the_registry():
    registry = FakeRegistry({"0": {"ProcessorNameString": "Intel(R) Core(TM) i5-9600K"}})
    assert cpu.name_in_registry(registry) == "Intel(R) Core(TM) i5-9600K"
    assert cpu.name_in_registry(FakeRegistry({})) == ""


@pytest.mark.skipif(not hasattr(psutil, "LINUX") or not psutil.LINUX, reason="reads /proc")
@pytest.mark.parametrize("given", ["", "unknown", "  Not Specified "])
def test_an_unnamed_virtual_cpu_is_described(given, monkeypatch):
    text = f"model name\t: {given}\nflags\t: fpu hypervisor sse2\n"
    monkeypatch.setattr(cpu, "text_of", lambda path: text if path.name == "cpuinfo" else "")
    monkeypatch.setattr("gpu_studio.core.operating_system.machine", lambda: "x86_64")
    assert cpu_name() == "Virtual CPU (x86-64)"


@pytest.mark.skipif(not hasattr(psutil, "LINUX") or not psutil.LINUX, reason="reads /proc")
def test_a_board_without_a_name_in_cpuinfo_has_one_in_its_device_tree(monkeypatch):
    texts = {"cpuinfo": "processor : 0\n", "model": "Raspberry Pi 5 Model B\0"}
    monkeypatch.setattr(cpu, "text_of", lambda path: texts[path.name])
    assert cpu_name() == "Raspberry Pi 5 Model B"


@pytest.mark.parametrize("error", [NotImplementedError, OSError, RuntimeError])
def test_an_unknown_clock_is_none(error, monkeypatch):
    def fail():
        raise error

    monkeypatch.setattr("psutil.cpu_freq", fail)
    assert describe_cpu(Telemetry()).clock_max_mhz is None


@pytest.mark.parametrize(("highest", "expected"), [(0.0, None), (4600.0, 4600.0)])
def test_a_clock_of_zero_is_none(highest, expected, monkeypatch):
    monkeypatch.setattr("psutil.cpu_freq", lambda: SimpleNamespace(max=highest))
    assert describe_cpu(Telemetry()).clock_max_mhz == expected


def test_the_temperature_is_the_whole_package(monkeypatch):
    entries = [
        SimpleNamespace(label="Core 0", current=70.0),
        SimpleNamespace(label="Package id 0", current=61.0),
    ]
    monkeypatch.setattr(
        "psutil.sensors_temperatures", lambda: {"nvme": [], "coretemp": entries}, raising=False
    )
    assert CpuSensor().read().temperature_c == 61.0


def test_memory_in_use_and_free_make_the_whole():
    telemetry = CpuSensor().read()
    total = telemetry.memory_used_bytes + telemetry.memory_free_bytes
    assert total == psutil.virtual_memory().total
