"""The CPU's readings for a check: only what the system measures."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from gpu_studio.core.telemetry import ClockReason, Telemetry
from gpu_studio.hardware import cpu
from gpu_studio.hardware.cpu import CpuHeat, describe_cpu

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


@pytest.mark.parametrize("error", [NotImplementedError, OSError, RuntimeError])
def test_a_clock_that_cannot_be_read_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: type[Exception]
) -> None:
    def fail(percpu: bool = False) -> None:
        raise error

    system(monkeypatch, tmp_path, degrees=61.5, has_clock=True)
    monkeypatch.setattr("psutil.cpu_freq", fail)
    assert CpuHeat(NO_COUNTERS).read() == Telemetry(temperature_c=61.5)


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
