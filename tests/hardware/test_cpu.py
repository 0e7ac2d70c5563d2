from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from gpu_studio.core.check.check_folder import is_same_boot
from gpu_studio.core.telemetry import ClockReason, Telemetry
from gpu_studio.hardware import cpu
from gpu_studio.hardware.cpu import (
    CpuHeat,
    boot_mark,
    describe_cpu,
    has_secure_boot,
    name_in_cpuinfo,
)
from gpu_studio.hardware.nvidia.nvml import is_library_replaced, library_version
from tests.hardware.test_pci import FakeRegistry


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


@pytest.mark.parametrize("error", [NotImplementedError, OSError, RuntimeError])
def test_an_unknown_clock_is_none(error, monkeypatch, tmp_path):
    def fail(percpu=False):
        raise error

    system(monkeypatch, tmp_path, degrees=61.5, has_clock=True)
    monkeypatch.setattr("psutil.cpu_freq", fail)
    assert describe_cpu(Telemetry()).clock_max_mhz is None
    assert CpuHeat(NO_COUNTERS).read() == Telemetry(temperature_c=61.5)


NO_COUNTERS = Path("there is no such folder")


def system(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *, degrees: float | None, has_clock: bool
) -> None:
    """Let the system report these; psutil always has some \"current\" clock."""
    monkeypatch.setattr(cpu, "_CPUFREQ", folder)
    if has_clock:
        (folder / "policy0").mkdir()
    cores = [SimpleNamespace(current=clock) for clock in (1400.0, 3890.5, 0.0)]
    monkeypatch.setattr("psutil.cpu_freq", lambda percpu=False: cores if percpu else None)
    entries = (
        []
        if degrees is None
        else [SimpleNamespace(label="Tctl", current=degrees, high=70.0, critical=95.0)]
    )
    monkeypatch.setattr("psutil.sensors_temperatures", lambda: {"k10temp": entries}, raising=False)


def test_heat_and_the_clock_of_the_fastest_core_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    system(monkeypatch, tmp_path, degrees=61.5, has_clock=True)
    assert CpuHeat(NO_COUNTERS).read() == Telemetry(temperature_c=61.5, sm_clock_mhz=3890.5)


def test_a_nominal_clock_is_no_reading(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    system(monkeypatch, tmp_path, degrees=61.5, has_clock=False)
    assert CpuHeat(NO_COUNTERS).read() == Telemetry(temperature_c=61.5)
    system(monkeypatch, tmp_path, degrees=None, has_clock=False)
    assert CpuHeat(NO_COUNTERS).read() is None


@pytest.mark.parametrize("degrees", [-55.0, 255.9, float("nan")])
def test_a_sensor_that_is_not_connected_is_no_reading(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, degrees: float
) -> None:
    system(monkeypatch, tmp_path, degrees=degrees, has_clock=False)
    assert CpuHeat(NO_COUNTERS).read() is None


def test_a_count_of_slowdowns_that_rises_is_a_brake(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    system(monkeypatch, tmp_path, degrees=97.0, has_clock=False)
    counter = tmp_path / "cpu0" / "thermal_throttle" / "package_throttle_count"
    counter.parent.mkdir(parents=True)
    heat, received = CpuHeat(tmp_path), []
    for count in ("812", "812", "815", "815"):
        counter.write_text(count)
        vitals = heat.read()
        assert vitals is not None
        received.append(vitals.clock_event_reasons)
    none = ClockReason(0)
    assert received == [none, none, ClockReason.HARDWARE_HEAT, none]


def test_a_laptop_and_the_limit_of_its_cpu_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    system(monkeypatch, tmp_path, degrees=61.5, has_clock=False)
    monkeypatch.setattr("psutil.sensors_battery", lambda: SimpleNamespace(percent=80))
    facts = describe_cpu(Telemetry())
    assert (facts.is_laptop, facts.slowdown_c) == (True, 95.0)
    monkeypatch.setattr("psutil.sensors_battery", lambda: None)
    assert not describe_cpu(Telemetry()).is_laptop


@pytest.mark.parametrize(
    ("value", "is_on"),
    [(b"\x06\0\0\0\x01", True), (b"\x06\0\0\0\0", False), (b"\x01", False), (b"", False)],
)
def test_secure_boot_is_the_byte_behind_the_attributes(value, is_on, tmp_path):
    path = tmp_path / "SecureBoot"
    path.write_bytes(value)
    assert has_secure_boot(path) is is_on
    assert not has_secure_boot(tmp_path / "none")


LIBRARY = "7f0 r-xp 00000000 08:01 12 /usr/lib/lib"


@pytest.mark.parametrize(
    ("name", "version", "is_replaced"),
    [("nvidia-ml.so.595.71.05 (deleted)", "595.71.05", True),
     ("nvidia-ml.so.595.71.05", "595.71.05", False), ("nvidia-ml.so.1 (deleted)", None, True),
     ("c.so.6 (deleted)", None, False)],
)  # fmt: skip
def test_the_loaded_library_has_a_version_and_may_be_gone_from_the_disk(
    name, version, is_replaced, tmp_path
):
    path = tmp_path / "maps"
    path.write_text(f"{LIBRARY}m.so.6\n{LIBRARY}{name}\n")
    assert (library_version(path), is_library_replaced(path)) == (version, is_replaced)
    assert (library_version(tmp_path / "none"), is_library_replaced(tmp_path / "none")) == (
        None, False,
    )  # fmt: skip


def test_a_start_of_the_pc_has_its_mark(tmp_path: Path) -> None:
    (tmp_path / "boot_id").write_text("1a2b-3c4d\n")
    assert boot_mark(tmp_path / "boot_id") == "1a2b-3c4d"
    assert is_same_boot(boot_mark(tmp_path / "missing"), str(int(psutil.boot_time())))
