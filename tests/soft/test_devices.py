"""Which cards PyTorch and NVML see, in which order, under which names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060, RTX_4090

if TYPE_CHECKING:
    from tests.soft.conftest import MakeChild, MakePc

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


def test_a_card_has_its_properties(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(RTX_3060))
    found = one.run(
        """
        p = torch.cuda.get_device_properties(0)
        [p.name, [p.major, p.minor], p.total_memory, p.multi_processor_count, p.L2_cache_size,
         p.max_threads_per_multi_processor, p.warp_size, torch.cuda.get_device_capability(0)]
        """
    )
    total = 12044 << 20
    l2 = 3072 << 10
    assert found == ["NVIDIA GeForce RTX 3060", [8, 6], total, 28, l2, 1536, 32, [8, 6]]


@pytest.mark.cuda13
def test_newer_builds_report_place_and_clocks(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(GTX_1650, RTX_3060), CUDA_DEVICE_ORDER="PCI_BUS_ID")
    found = one.run(
        """
        p = torch.cuda.get_device_properties(1)
        place = [p.pci_domain_id, p.pci_bus_id, p.pci_device_id, p.memory_bus_width]
        torch.cuda.set_device(1)
        [place, [p.clock_rate, p.memory_clock_rate]]
        """
    )
    # PyTorch asks for the clocks of the current card, whichever card the properties are of.
    assert found == [[0, 2, 0, 192], [1777000, 7501000]]


def test_cuda_numbers_the_fastest_card_first(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(GTX_1650, RTX_3060, RTX_4090))
    cuda, nvml = one.run(IDENTITIES + "[cuda, nvml]")
    assert [name for _, name in cuda] == [RTX_4090.name, RTX_3060.name, GTX_1650.name]
    assert [name for _, name, _ in nvml] == [GTX_1650.name, RTX_3060.name, RTX_4090.name]


@pytest.mark.parametrize(
    ("visible", "order", "names"),
    [
        ("0", "", ["NVIDIA GeForce RTX 4090"]),
        ("0", "PCI_BUS_ID", ["NVIDIA GeForce GTX 1650"]),
        ("2,0", "PCI_BUS_ID", ["NVIDIA GeForce RTX 4090", "NVIDIA GeForce GTX 1650"]),
        ("1,9,0", "PCI_BUS_ID", ["NVIDIA GeForce RTX 3060"]),
        ("1,-1,0", "PCI_BUS_ID", ["NVIDIA GeForce RTX 3060"]),
        ("", "PCI_BUS_ID", []),
        ("-1", "PCI_BUS_ID", []),
        ("0,0", "PCI_BUS_ID", []),
    ],
)
def test_cards_are_made_visible_by_number(
    visible: str, order: str, names: list[str], soft_pc: MakePc, child: MakeChild
) -> None:
    one = child(
        soft_pc(GTX_1650, RTX_3060, RTX_4090), CUDA_VISIBLE_DEVICES=visible, CUDA_DEVICE_ORDER=order
    )
    if names:
        cuda, nvml = one.run(IDENTITIES + "[cuda, nvml]")
        assert [name for _, name in cuda] == names
        assert len(nvml) == 3, "NVML hides no card"
    assert one.run("torch.cuda.device_count()") == len(names)
    assert one.run("torch.cuda.is_available()") == bool(names)


@pytest.mark.parametrize("length", [40, 12], ids=["whole", "beginning"])
def test_cards_are_made_visible_by_uuid(length: int, soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    wanted = ",".join((card.uuid or "")[:length] for card in reversed(pc.cards))
    one = child(pc, CUDA_VISIBLE_DEVICES=wanted)
    cuda = one.run(IDENTITIES + "cuda")
    assert [uuid for uuid, _ in cuda] == [card.uuid for card in reversed(pc.cards)]
    assert one.run(COUNTS) == [2, 2]


def test_a_uuid_that_names_no_card_ends_the_list(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    one = child(pc, CUDA_VISIBLE_DEVICES=f"{pc.cards[1].uuid},GPU-nothing,{pc.cards[0].uuid}")
    assert one.run(IDENTITIES + "cuda") == [[pc.cards[1].uuid, pc.cards[1].name]]


def test_listing_cards_makes_no_context(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    one.run(IDENTITIES)
    used = "pynvml.nvmlDeviceGetMemoryInfo(handles[0], pynvml.nvmlMemory_v2).used"
    running = "[[p.pid, p.usedGpuMemory] for p in pynvml.nvmlDeviceGetComputeRunningProcesses(h)]"
    assert one.run(used) == 0
    assert one.run(f"h = handles[0]\n{running}") == []
    one.run("torch.empty(1, device='cuda')")
    context = 60 << 20
    assert one.run(used) == context + (2 << 20)
    assert one.run(running) == [[one.pid, context + (2 << 20)]]


def test_a_context_is_made_on_the_card_that_is_used(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    one = child(pc, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    one.run("torch.empty(1, device='cuda:1')")
    assert [card.contexts for card in pc.use_of(one.pid).cards] == [0, 1]


def test_the_driver_is_reported_and_fits(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(RTX_3060))
    version, cuda = one.run(
        "import pynvml; pynvml.nvmlInit()\n"
        "[pynvml.nvmlSystemGetDriverVersion(), pynvml.nvmlSystemGetCudaDriverVersion()]"
    )
    major = int(one.run("torch.version.cuda").split(".")[0])
    assert cuda // 1000 == major
    assert int(version.split(".")[0]) >= {12: 525, 13: 580}[major]


def test_a_driver_too_old_is_reported_by_pytorch(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(GT_1030, driver_version="470.82.01", cuda_driver=11040))
    assert one.run("torch.cuda.is_available()") is False
    warned = one.run("[str(w.message) for w in warned]")
    assert any("driver on your system is too old (found version 11040)" in w for w in warned)


def test_peer_access_is_as_the_cards_say(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(RTX_3060, RTX_3060))
    assert one.run("torch.cuda.can_device_access_peer(0, 1)") is False
