from types import SimpleNamespace

import pytest

from gpu_studio.core.devices.cards import chip_of_card
from gpu_studio.core.devices.gpu_chips import product_name
from gpu_studio.core.telemetry import CHECKED, COUNTERS, Telemetry
from gpu_studio.hardware.card_reader import CardUnreadableError, DriverUnavailableError
from gpu_studio.hardware.nvidia import nvidia
from gpu_studio.hardware.nvidia.nvidia import NvidiaCard
from gpu_studio.hardware.nvidia.nvml import Nvml
from tests.hardware.fake_nvml import (
    GT_1030,
    GT_1030_UUID,
    FakeNvml,
    NVMLError,
    garbage_name,
    process,
)


def card_of(changes=(), **answers):
    return NvidiaCard(Nvml(FakeNvml(GT_1030 | dict(changes) | answers)).card(0))


def device_of(**answers):
    return card_of(**answers).describe()


def telemetry_of(changes=(), **answers):
    return card_of(changes, **answers).telemetry()


def processes_of(**answers):
    return card_of(**answers).processes()


def test_every_fact_of_a_card_is_read():
    card = device_of()
    assert card.name == "NVIDIA GeForce GT 1030"
    assert card.uuid == GT_1030_UUID
    assert card.memory_total_bytes == 2048 << 20
    assert (card.compute_capability, card.architecture) == ("6.1", "Pascal")
    assert (card.cuda_cores, card.multiprocessors) == (384, 3)
    assert card.pci_bus_id == "00000000:01:00.0"
    assert (card.sm_clock_max_mhz, card.memory_clock_max_mhz) == (1911, 3004)
    assert (card.pcie_generation_max, card.pcie_width_max) == (3, 4)
    assert (card.memory_bus_width_bits, card.vbios) == (64, "86.08.0C.00.1A")
    assert (card.display_active, card.compute_mode) == (True, "default")
    assert (card.ecc_enabled, card.mig_enabled) == (None, None)
    divided = device_of(EccMode=[1, 0], MigMode=[0, 1])
    assert (divided.ecc_enabled, divided.mig_enabled) == (True, False), "its current state"
    assert card.unreadable is None


def test_a_processor_with_graphics_has_the_pcs_memory(monkeypatch):
    """A GB10 (XuehaiPan/nvitop, issue 208): NVML says that it supports no memory information."""
    ram = SimpleNamespace(total=127_600_748 << 10, available=100 << 30)
    monkeypatch.setattr(nvidia.psutil, "virtual_memory", lambda: ram)
    answers = {
        "Name": "NVIDIA GB10", "CudaComputeCapability": (12, 1), "MemoryInfo": NVMLError(3),
        ("MemoryInfo", 0x02000028): NVMLError(3),
        "PciInfo": SimpleNamespace(busId=b"0000000F:01:00.0\0", pciDeviceId=0x2E12_10DE),
    }  # fmt: skip
    card = card_of(answers)
    device = card.describe()
    assert (device.pci_bus_id, device.pci_device_id) == ("0000000F:01:00.0", 0x2E12)
    assert device.memory_total_bytes == device.shared_memory_bytes == ram.total
    assert (device.is_integrated, device.dedicated_memory_bytes) == (True, 0)
    assert chip_of_card(device).name == "GB20B"
    assert product_name(0x10DE, 0x2E12) == "GB10"
    assert card.telemetry().memory_used_bytes == ram.total - ram.available
    own = device_of(MemoryInfo=NVMLError(3), CudaComputeCapability=(12, 0))
    assert own.is_integrated is None


def test_every_sensor_of_a_card_is_read_in_its_unit():
    telemetry = telemetry_of(PowerUsage=12_500)
    assert telemetry.power_w == 12.5
    assert telemetry.power_limit_w == 19.0
    assert (telemetry.temperature_c, telemetry.fan_percent) == (26, 35)
    assert (telemetry.utilization_percent, telemetry.memory_utilization_percent) == (7, 2)
    assert (telemetry.memory_used_bytes, telemetry.memory_reserved_bytes) == (4 << 20, 44 << 20)
    assert (telemetry.pstate, telemetry.clock_event_reasons) == (8, 1)
    assert (telemetry.sm_clock_mhz, telemetry.memory_clock_mhz) == (139, 405)
    assert (telemetry.pcie_generation, telemetry.pcie_width) == (1, 4)
    assert (telemetry.pcie_rx_bytes_per_s, telemetry.pcie_tx_bytes_per_s) == (5 * 1024, 3 * 1024)


@pytest.mark.parametrize("answer", [NVMLError(3), NVMLError(999), 2**32 - 1, 2**64 - 1, None, "?"])
def test_what_a_card_refuses_or_fills_with_ones_is_none(answer):
    assert telemetry_of(PowerUsage=answer).power_w is None


NAN = float("nan")
_GIB = 1 << 30


@pytest.mark.parametrize(
    ("total", "used", "free", "reserved", "expected"),
    [
        (2 * _GIB, 1 * _GIB, 1 * _GIB, 0, (1 * _GIB, 1 * _GIB, 0)),
        (2 * _GIB, 977 * _GIB, 2**64 - 4096, 3 * _GIB, (None, None, None)),
        (12 * _GIB, 2**32 - 1, 6 * _GIB, 0, (None, 6 * _GIB, 0)),
        (2**64 - 2**40, 1 * _GIB, 1 * _GIB, 0, (None, None, None)),
        (NAN, NAN, NAN, NAN, (None, None, None)),
    ],
)
def test_memory_that_cannot_be_is_not_reported(total, used, free, reserved, expected):
    answer = SimpleNamespace(total=total, used=used, free=free, reserved=reserved)
    card = card_of({("MemoryInfo", 0x02000028): answer})
    now = card.telemetry()
    assert card.describe().memory_total_bytes == (total if total in (2 * _GIB, 12 * _GIB) else None)
    assert (now.memory_used_bytes, now.memory_free_bytes, now.memory_reserved_bytes) == expected


@pytest.mark.parametrize("answer", [2**31, 2**63, -1, NAN, float("inf")])
@pytest.mark.parametrize(
    ("question", "field"),
    [
        ("PowerUsage", "power_w"),
        ("EnforcedPowerLimit", "power_limit_w"),
        (("Temperature", 0), "temperature_c"),
        ("FanSpeed", "fan_percent"),
        ("PerformanceState", "pstate"),
        (("ClockInfo", 1), "sm_clock_mhz"),
        (("ClockInfo", 2), "memory_clock_mhz"),
        ("CurrPcieLinkGeneration", "pcie_generation"),
        ("CurrPcieLinkWidth", "pcie_width"),
    ],
)
def test_a_sensor_that_cannot_be_is_not_reported(question, field, answer):
    now = telemetry_of({"PowerManagementLimit": NVMLError(3), question: answer})
    assert getattr(now, field) is None


def test_memory_and_reasons_of_an_old_driver_come_from_the_first_version():
    old = {("MemoryInfo", 0x02000028): NVMLError(13), "CurrentClocksThrottleReasons": 0x40}
    now = telemetry_of(old, CurrentClocksEventReasons=NVMLError(13))
    assert (now.memory_used_bytes, now.memory_reserved_bytes) == (4 << 20, None)
    assert now.clock_event_reasons == 0x40


@pytest.mark.parametrize("name", [garbage_name(), b"\xf8\x01", "\x07\x03", "", b"\0\0"])
def test_a_garbage_name_gets_a_plain_one(name):
    assert device_of(Name=name).name == "NVIDIA card"


def test_a_lost_card_says_so_and_is_never_asked_again():
    library = FakeNvml(GT_1030)
    card = NvidiaCard(Nvml(library).card(0))
    card.telemetry()
    library.cards[0] = dict.fromkeys([*GT_1030, ("MemoryInfo", 0x02000028)], NVMLError(15))
    with pytest.raises(CardUnreadableError, match="lost"):
        card.telemetry()
    library.asked.clear()
    with pytest.raises(CardUnreadableError, match="lost"):
        card.telemetry()
    assert library.asked == []


@pytest.mark.parametrize(
    ("code", "sentence", "kind"),
    [(18, "Restart the PC", "driver_updated"), (999, "unknown error", "unknown")],
)
def test_a_card_that_answers_nothing_any_more_says_why(code, sentence, kind):
    """A driver that was updated while it ran, for one: blanks would say that all is well."""
    library = FakeNvml(GT_1030)
    card = NvidiaCard(Nvml(library).card(0))
    card.telemetry()
    library.cards[0] = dict.fromkeys([*GT_1030, ("MemoryInfo", 0x02000028)], NVMLError(code))
    for _ in range(2):
        with pytest.raises(CardUnreadableError, match=sentence) as raised:
            card.telemetry()
        assert raised.value.code == kind
    library.cards[0] = GT_1030
    assert card.telemetry().temperature_c == 26


@pytest.mark.parametrize(
    ("code", "problem", "words"),
    [(9, "not_running", "not running"), (12, "not_installed", "No NVIDIA driver"),
     (18, "driver_updated", "Restart the PC"), (999, "unknown", "unknown error"),
     (4, "no_permission", "may not"), (17, "unknown", "17"), (3, "unknown", "NVML error 3"),
     (12345, "unknown", "NVML error 12345")],
)  # fmt: skip
def test_a_driver_that_cannot_be_opened_has_a_code_and_a_sentence(code, problem, words):
    with pytest.raises(DriverUnavailableError) as caught:
        Nvml(FakeNvml(init=NVMLError(code)))
    assert caught.value.driver.error_code == problem
    assert caught.value.driver.evidence == f"NVML error {code}"
    assert words in caught.value.driver.error


def test_compute_and_graphics_processes_are_merged():
    found = processes_of(
        ComputeRunningProcesses=[process(30, 336 << 20), process(20, None), process(40, 9)],
        GraphicsRunningProcesses=[process(20, 2 << 20), process(10, 2**64 - 1), process(40, None)],
    )
    assert [(p.pid, p.kind, p.memory_bytes) for p in found] == [
        (10, "graphics", None),
        (20, "compute and graphics", 2 << 20),
        (30, "compute", 336 << 20),
        (40, "compute and graphics", 9),
    ]


def test_processes_of_an_old_driver_come_from_the_second_version():
    library = FakeNvml(
        GT_1030
        | {
            # What pynvml raises where the newest version of the call is missing: no NVMLError.
            "ComputeRunningProcesses": RuntimeError("versions do not match"),
            "ComputeRunningProcesses_v2": [process(5, 1)],
        }
    )
    assert [p.pid for p in NvidiaCard(Nvml(library).card(0)).processes()] == [5]


def sample(pid: int, percent: int, at_us: int = 5_000_000) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, smUtil=percent, timeStamp=at_us)


def test_how_busy_each_process_keeps_a_card_is_that_of_the_last_second():
    samples = [sample(2, 20), sample(3, 60), sample(4, 90, 3_900_000), sample(5, 2**32 - 1)]
    card = card_of(
        {("ProcessUtilization", 0): samples, "GraphicsRunningProcesses": [process(2, 1)]}
    )
    busy = {one.pid: one.busy_percent for one in card.processes(with_load=True)}
    assert busy == {2: 20.0, 3: 60.0}
    assert {one.busy_percent for one in card.processes()} == {None}
    refused = card_of({("ProcessUtilization", 0): NVMLError(3)})  # before Maxwell
    assert refused.processes(with_load=True) == ()


def test_the_counters_of_link_and_memory_are_read():
    answers = {
        "PcieReplayCounter": 3, ("TotalEccErrors", 0, 0): 5, ("TotalEccErrors", 1, 0): 1,
        "RemappedRows": (2, 1, 1, 0),
    }  # fmt: skip
    now = card_of(answers).telemetry(CHECKED)
    assert now.pcie_replays == 3
    assert (now.ecc_corrected, now.ecc_uncorrected) == (5, 1)
    assert (now.remapped_rows, now.has_pending_remap) == (3, True)
    assert card_of().telemetry(COUNTERS) == Telemetry()


def test_the_limits_of_a_card_are_temperatures_that_a_chip_can_have():
    answers = {("TemperatureThreshold", 1): 94, ("TemperatureThreshold", 3): 255}
    card = card_of(answers | {("DefaultApplicationsClock", 1): 1227}).describe()
    assert (card.slowdown_c, card.operating_max_c, card.sm_clock_base_mhz) == (94.0, None, 1227)


def test_a_card_that_supports_nothing_is_no_failure():
    library = FakeNvml(dict.fromkeys([*GT_1030, ("MemoryInfo", 0x02000028)], NVMLError(3)))
    assert NvidiaCard(Nvml(library).card(0)).telemetry() == Telemetry()
