"""NVML: what a monitor reads, and how a test changes it while a program looks."""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.patience import until
from tests.soft.child import NoAnswerError, RaisedError
from tests.softcards.cards import MIB, NOT_AVAILABLE
from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060

if TYPE_CHECKING:
    from tests.soft.conftest import MakeChild, MakePc

OPEN = """
import pynvml as n
n.nvmlInit()
h = n.nvmlDeviceGetHandleByIndex(0)
"""

READINGS = {
    "n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU)": 41,
    "n.nvmlDeviceGetTemperatureV(h, n.NVML_TEMPERATURE_GPU)": 41,
    "n.nvmlDeviceGetTemperatureThreshold(h, n.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)": 97,
    "n.nvmlDeviceGetFanSpeed(h)": 35,
    "n.nvmlDeviceGetNumFans(h)": 1,
    "n.nvmlDeviceGetFanSpeed_v2(h, 0)": 35,
    "n.nvmlDeviceGetPowerUsage(h)": 12500,
    "n.nvmlDeviceGetEnforcedPowerLimit(h)": 170000,
    "n.nvmlDeviceGetTotalEnergyConsumption(h)": 1000000,
    "n.nvmlDeviceGetPerformanceState(h)": 8,
    "n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM)": 139,
    "n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM)": 405,
    "n.nvmlDeviceGetMaxClockInfo(h, n.NVML_CLOCK_SM)": 1777,
    "n.nvmlDeviceGetMaxClockInfo(h, n.NVML_CLOCK_MEM)": 7501,
    "n.nvmlDeviceGetCurrPcieLinkGeneration(h)": 1,
    "n.nvmlDeviceGetCurrPcieLinkWidth(h)": 16,
    "n.nvmlDeviceGetMaxPcieLinkGeneration(h)": 4,
    "n.nvmlDeviceGetMaxPcieLinkWidth(h)": 16,
    "n.nvmlDeviceGetPcieThroughput(h, n.NVML_PCIE_UTIL_RX_BYTES)": 0,
    "n.nvmlDeviceGetPcieReplayCounter(h)": 0,
    "n.nvmlDeviceGetCurrentClocksEventReasons(h)": 1,
    "n.nvmlDeviceGetCudaComputeCapability(h)": [8, 6],
    "n.nvmlDeviceGetNumGpuCores(h)": 3584,
    "n.nvmlDeviceGetMemoryBusWidth(h)": 192,
    "n.nvmlDeviceGetVbiosVersion(h)": "86.08.24.00.22",
    "n.nvmlDeviceGetDisplayActive(h)": 0,
    "n.nvmlDeviceGetDisplayMode(h)": 0,
    "n.nvmlDeviceGetComputeMode(h)": 0,
    "n.nvmlDeviceGetBrand(h) == n.NVML_BRAND_GEFORCE": True,
    "n.nvmlDeviceGetArchitecture(h) == n.NVML_DEVICE_ARCH_AMPERE": True,
    "n.nvmlDeviceGetPersistenceMode(h)": 0,
    "n.nvmlDeviceGetPciInfo(h).busId": "00000000:01:00.0",
    "hex(n.nvmlDeviceGetPciInfo(h).pciDeviceId)": "0x250310de",
    "n.nvmlDeviceGetName(h)": "NVIDIA GeForce RTX 3060",
    "n.nvmlDeviceGetIndex(h)": 0,
    "n.nvmlDeviceGetEncoderUtilization(h)[0]": 0,
    "n.nvmlDeviceGetUtilizationRates(h).gpu": 0,
    "n.nvmlDeviceGetComputeRunningProcesses(h)": [],
    "n.nvmlDeviceGetGraphicsRunningProcesses(h)": [],
    "n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByPciBusId('0000:01:00.0'))": 0,
    "n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(h)))": 0,
}


def test_a_monitor_reads_a_card(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(RTX_3060))
    found = one.run(OPEN + f"{{text: eval(text) for text in {list(READINGS)!r}}}")
    assert found == READINGS


@pytest.mark.parametrize(
    "query",
    [
        "n.nvmlDeviceGetEccMode(h)",
        "n.nvmlDeviceGetMigMode(h)",
        "n.nvmlDeviceGetSerial(h)",
        "n.nvmlDeviceGetPowerUsage(h)",
        "n.nvmlDeviceGetTotalEnergyConsumption(h)",
    ],
)
def test_a_home_card_does_not_support_everything(
    query: str, soft_pc: MakePc, child: MakeChild
) -> None:
    one = child(soft_pc(GT_1030))
    with pytest.raises(RaisedError) as raised:
        one.run(OPEN + query)
    assert raised.value.kind == "NVMLError_NotSupported"


def test_sensors_move_while_a_program_looks(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    read = "n.nvmlDeviceGetTemperature(h, 0)"
    assert one.run(OPEN + read) == 41
    for celsius in range(50, 90):
        pc.set(0, temperature_c=celsius)
        assert one.run(read) == celsius
    pc.set(0, gpu_percent=77, memory_percent=12, pstate=2, sm_mhz=900, event_reasons=0x24)
    assert one.run(
        "u = n.nvmlDeviceGetUtilizationRates(h)\n"
        "[u.gpu, u.memory, n.nvmlDeviceGetPerformanceState(h), n.nvmlDeviceGetClockInfo(h, 1),"
        " n.nvmlDeviceGetCurrentClocksEventReasons(h)]"
    ) == [77, 12, 2, 900, 0x24]


def test_the_file_can_be_changed_by_hand(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    one.run(OPEN)
    path = pc.folder / "pc.conf"
    path.write_text(path.read_text().replace("temperature_c = 41", "temperature_c = 104"))
    until(lambda: one.run("n.nvmlDeviceGetTemperature(h, 0)") == 104)


def test_a_change_that_the_clock_does_not_show_is_seen(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    one.run(OPEN)
    path = pc.folder / "pc.conf"
    before = path.stat()
    path.write_text(path.read_text().replace("temperature_c = 41", "temperature_c = 42"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert one.run("n.nvmlDeviceGetTemperature(h, 0)") == 41, "same size, same time, same file"
    with (pc.folder / "usage").open("r+b") as table:
        (generation,) = struct.unpack("<Q", table.read(8))
        table.seek(0)
        table.write(struct.pack("<Q", generation + 1))
    assert one.run("n.nvmlDeviceGetTemperature(h, 0)") == 42


def test_a_query_turns_not_supported(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    assert one.run(OPEN + "n.nvmlDeviceGetPowerUsage(h)") == 12500
    pc.set(0, power_mw=None)
    with pytest.raises(RaisedError, match="NVMLError_NotSupported"):
        one.run("n.nvmlDeviceGetPowerUsage(h)")


@pytest.mark.parametrize(
    ("code", "kind"),
    [(4, "NVMLError_NoPermission"), (13, "NVMLError_FunctionNotFound"), (999, "NVMLError_Unknown")],
)
def test_a_query_fails(code: int, kind: str, soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    pc.fault("nvmlDeviceGetFanSpeed", code, after=1)
    one = child(pc)
    assert one.run(OPEN + "n.nvmlDeviceGetFanSpeed(h)") == 35
    with pytest.raises(RaisedError) as raised:
        one.run("n.nvmlDeviceGetFanSpeed(h)")
    assert raised.value.kind == kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [(9, "NVMLError_DriverNotLoaded"), (18, "NVMLError_LibRmVersionMismatch")],
)
def test_nvml_refuses_to_start(code: int, kind: str, soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    pc.fault("nvmlInit_v2", code)
    with pytest.raises(RaisedError) as raised:
        child(pc).run(OPEN)
    assert raised.value.kind == kind


def test_a_workstation_card_supports_more(soft_pc: MakePc, child: MakeChild) -> None:
    sensors = {"ecc": 1, "mig": 0, "serial": "0321423012345", "board_part_number": "900-1"}
    one = child(soft_pc(replace(RTX_3060, name="NVIDIA RTX A2000", sensors=sensors)))
    assert one.run(
        OPEN + "[n.nvmlDeviceGetEccMode(h), n.nvmlDeviceGetMigMode(h), n.nvmlDeviceGetSerial(h),"
        " n.nvmlDeviceGetBoardPartNumber(h)]"
    ) == [[1, 1], [0, 0], "0321423012345", "900-1"]


def test_one_card_of_two_is_lost(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    one = child(pc)
    one.run(OPEN + "both = [n.nvmlDeviceGetHandleByIndex(i) for i in (0, 1)]")
    pc.set(1, lost=1)
    assert one.run("n.nvmlDeviceGetFanSpeed(both[0])") == 35
    with pytest.raises(RaisedError) as raised:
        one.run("n.nvmlDeviceGetFanSpeed(both[1])")
    assert raised.value.kind == "NVMLError_GpuIsLost"


def test_a_query_never_returns(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    one.run(OPEN)
    pc.fault("nvmlDeviceGetPowerUsage", hang=True)
    assert one.run("n.nvmlDeviceGetFanSpeed(h)") == 35
    one.ask("n.nvmlDeviceGetPowerUsage(h)")
    with pytest.raises(NoAnswerError):
        one.answer(timeout_s=1)


def test_a_name_is_not_utf_8(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    pc.set(0, name=b"NVIDIA \xf8\xff")
    with pytest.raises(RaisedError) as raised:
        child(pc).run(OPEN + "n.nvmlDeviceGetName(h)")
    assert raised.value.kind == "UnicodeDecodeError"


def test_a_number_that_cannot_be_reported(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    pc.set(0, process_bytes=NOT_AVAILABLE, used_bytes=NOT_AVAILABLE)
    one = child(pc)
    one.run("x = torch.empty(1, device='cuda')")
    assert one.run(OPEN + "n.nvmlDeviceGetMemoryInfo(h).used") == NOT_AVAILABLE
    assert one.run("[p.usedGpuMemory for p in n.nvmlDeviceGetComputeRunningProcesses(h)]") == [None]


def test_pytorchs_own_monitor_agrees(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    pc.set(0, gpu_percent=55, temperature_c=66, power_mw=77000, sm_mhz=888)
    one = child(pc)
    one.run("x = torch.empty(100 * MIB, dtype=torch.uint8, device='cuda')")
    found = one.run(
        "[torch.cuda.utilization(), torch.cuda.temperature(), torch.cuda.power_draw(),"
        " torch.cuda.clock_rate(), torch.cuda.device_memory_used()]"
    )
    reserved_by_driver = 244 * MIB
    assert found == [55, 66, 77000, 888, reserved_by_driver + 160 * MIB]


def test_before_init_and_after_shutdown_nothing_answers(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(RTX_3060))
    with pytest.raises(RaisedError, match="NVMLError_Uninitialized"):
        one.run("import pynvml as n\nn._LoadNvmlLibrary()\nn.nvmlDeviceGetCount()")
    one.run("n.nvmlInit(); n.nvmlShutdown()")
    with pytest.raises(RaisedError, match="NVMLError_Uninitialized"):
        one.run("n.nvmlDeviceGetCount()")
