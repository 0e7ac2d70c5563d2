import os
import struct

import pytest

from tests.patience import until
from tests.soft.child import NoAnswerError
from tests.soft.conftest import MakeChild, MakePc
from tests.softcards.catalogue import GTX_1650, RTX_3060, RTX_4090

IDENTITIES = """
import pynvml
pynvml.nvmlInit()
handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
nvml = [[pynvml.nvmlDeviceGetUUID(h), pynvml.nvmlDeviceGetName(h),
         pynvml.nvmlDeviceGetPciInfo(h).bus] for h in handles]
props = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
cuda = [["GPU-" + str(p.uuid), p.name] for p in props]
"""
COUNTS = "[torch.cuda.device_count(), torch._C._cuda_getDeviceCount()]"


@pytest.mark.parametrize(
    "cards", [[RTX_3060], [GTX_1650, RTX_3060], [GTX_1650, RTX_4090, RTX_3060, GTX_1650]], ids=len
)
def test_cuda_and_nvml_report_the_same_cards(cards, soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(*cards)
    one = child(pc, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    cuda, nvml = one.run(IDENTITIES + "[cuda, nvml]")
    assert nvml == [[card.uuid, card.name, bus] for bus, card in enumerate(pc.cards, start=1)]
    assert cuda == [identity[:2] for identity in nvml]
    assert len({card.uuid for card in pc.cards}) == len(cards)


@pytest.mark.parametrize("length", [40, 12], ids=["whole", "beginning"])
def test_cards_are_made_visible_by_uuid(length: int, soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    wanted = ",".join((card.uuid or "")[:length] for card in reversed(pc.cards))
    one = child(pc, CUDA_VISIBLE_DEVICES=wanted)
    cuda = one.run(IDENTITIES + "cuda")
    assert [uuid for uuid, _ in cuda] == [card.uuid for card in reversed(pc.cards)]
    assert one.run(COUNTS) == [2, 2]


PREPARED = """
import threading
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.memory_messages import ReadMemory
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.engine.dispatcher import Dispatcher
dispatcher = Dispatcher(are_cards_asleep=lambda: True)
def ask(request):
    return list(dispatcher.run(request, threading.Event()))
(described,) = ask(DescribeEngine(wakes_cards=False))
described.cards_asleep
"""
WORK = """
ask(ReadMemory(device="cpu"))
run = RunWorkload(
    run_id="1", workload="matmul", device="cpu", size=64, dtype="float32", budget_s=0.05
)
type(ask(run)[-1]).__name__
"""


def test_an_engine_with_sleeping_cards_calls_no_driver(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    pc.fault("cuda*", hang=True)
    pc.fault("nvml*", hang=True)
    one = child(pc)
    assert one.run(PREPARED) is True
    assert one.run(WORK) == "RunFinished"
    with pytest.raises(NoAnswerError):  # the first question to CUDA is one too many
        one.run("ask(DescribeEngine())", timeout_s=3)


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
