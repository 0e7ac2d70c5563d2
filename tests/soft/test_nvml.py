import os
import struct

from tests.patience import until
from tests.soft.conftest import MakeChild, MakePc
from tests.softcards.catalogue import RTX_3060

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
