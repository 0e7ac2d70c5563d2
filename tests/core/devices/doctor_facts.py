"""The plain facts of a PC that the tests of single findings begin with."""

import re
from typing import Any

import msgspec

from gpu_studio.core.devices.access import CardProbed, Outcome, PcProbed
from gpu_studio.core.devices.devices import (
    Device,
    Driver,
    Inventory,
)
from gpu_studio.core.devices.finding import Finding
from gpu_studio.core.devices.findings import find
from gpu_studio.core.messages.engine_messages import EngineDescribed, TorchCard

CPU = Device(kind="cpu", name="AMD Ryzen 7 5700G")
GT_1030 = Device(
    kind="cuda", name="NVIDIA GeForce GT 1030", uuid="GPU-aaaa", driver_index=0,
    compute_capability="6.1", architecture="Pascal", multiprocessors=3, memory_bus_width_bits=64,
    memory_total_bytes=2 << 30, sm_clock_max_mhz=1911.0, pci_bus_id="00000000:01:00.0",
    pci_device_id=0x1D01, pcie_generation_max=3, pcie_width_max=4, compute_mode="default",
)  # fmt: skip
RTX_3060 = Device(
    kind="cuda", name="NVIDIA GeForce RTX 3060", uuid="GPU-bbbb", driver_index=1,
    compute_capability="8.6", architecture="Ampere", multiprocessors=28, memory_bus_width_bits=192,
    memory_total_bytes=12 << 30, sm_clock_max_mhz=2100.0, pci_bus_id="00000000:02:00.0",
    pci_device_id=0x2503, pcie_generation_max=4, pcie_width_max=16, compute_mode="default",
)  # fmt: skip
ENGINE = EngineDescribed(
    pid=1, torch_version="2.13.0+cu126", cuda_build="12.6", cuda_available=True,
    arch_list=("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"),
)  # fmt: skip
CPU_ENGINE = EngineDescribed(pid=1, torch_version="2.13.0+cpu")
ABSENT = Driver(error="No NVIDIA driver is installed.", error_code="not_installed")
NOT_RUNNING = "The NVIDIA driver is installed, but it is not running."


def pc(*cards: Device, **facts: Any) -> Inventory:
    facts.setdefault("driver", Driver(version="580.95.05"))
    return Inventory(devices=(CPU, *cards), **facts)


def changed(card: Device, **facts: Any) -> Device:
    return msgspec.structs.replace(card, **facts)


def on_the_bus(card: Device, code: str, **facts: Any) -> Device:
    """A card that cannot be read: what the bus tells of it."""
    return Device(
        kind="cuda", name=card.name, pci_bus_id=card.pci_bus_id, pci_device_id=card.pci_device_id,
        unreadable=f"It is {code}.", unreadable_code=code, **facts,
    )  # fmt: skip


def told(card: Device, number: int = 0, **facts: Any) -> TorchCard:
    same = {
        "name": card.name, "uuid": card.uuid, "pci_bus_id": card.pci_bus_id,
        "compute_capability": card.compute_capability, "multiprocessors": card.multiprocessors,
    }  # fmt: skip
    return TorchCard(**{"torch_index": number, **same, **facts})


def tried(card: Device, outcome: Outcome = "ran", number: int = 0, **facts: Any) -> CardProbed:
    if outcome == "ran":
        facts = {"total": 524800.0, "expected_total": 524800.0, **facts}
    return CardProbed(card=told(card, number), outcome=outcome, **facts)


def probe(*cards: CardProbed, **facts: Any) -> PcProbed:
    return PcProbed(cards=cards, **facts)


def examined(inventory: Inventory, engine: EngineDescribed | None = ENGINE, **facts: Any):
    facts = {"system": "Linux", "machine": "x86_64", **facts}
    findings = find(inventory, engine, **facts)
    for finding in findings:
        assert re.fullmatch(r"\S.*\.", finding.sentence), finding
        assert ".." not in finding.sentence
        assert finding.detail
    return findings


def one(code: str, findings: tuple[Finding, ...]) -> Finding:
    (finding,) = (finding for finding in findings if finding.code == code)
    return finding


def codes(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.code for finding in findings]
