"""Each finding by the plain facts that lead to it; doctor_situations.txt has the wheels."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from gpu_studio.core.pc import findings as rules
from gpu_studio.core.pc.devices import (
    ASLEEP,
    CardReading,
    Device,
    Driver,
    GpuProcess,
    Inventory,
    Reading,
    Telemetry,
)
from gpu_studio.core.pc.finding import SEVERITIES, Finding, findings_value, is_usable, worst_first
from gpu_studio.core.pc.findings import find
from gpu_studio.core.pc.link import Link
from gpu_studio.core.pc.published_builds import last_build
from gpu_studio.core.pc.torch_facts import CardProbed, Outcome, PcProbed, TorchCard
from gpu_studio.core.protocol import EngineDescribed
from gpu_studio.core.wheel_table import load_table

CPU = Device(kind="cpu", name="AMD Ryzen 7 5700G")
GT_1030 = Device(
    kind="cuda", name="NVIDIA GeForce GT 1030", uuid="GPU-aaaa", nvml_index=0,
    compute_capability="6.1", architecture="Pascal", multiprocessors=3, memory_bus_width_bits=64,
    memory_total_bytes=2 << 30, sm_clock_max_mhz=1911.0, pci_bus_id="00000000:01:00.0",
    pci_device_id=0x1D01, pcie_generation_max=3, pcie_width_max=4, compute_mode="default",
)  # fmt: skip
RTX_3060 = Device(
    kind="cuda", name="NVIDIA GeForce RTX 3060", uuid="GPU-bbbb", nvml_index=1,
    compute_capability="8.6", architecture="Ampere", multiprocessors=28, memory_bus_width_bits=192,
    memory_total_bytes=12 << 30, sm_clock_max_mhz=2100.0, pci_bus_id="00000000:02:00.0",
    pci_device_id=0x2503, pcie_generation_max=4, pcie_width_max=16, compute_mode="default",
)  # fmt: skip
ENGINE = EngineDescribed(
    pid=1, torch_version="2.13.0+cu126", cuda_build="12.6", cuda_available=True,
    arch_list=("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"),
)  # fmt: skip
CPU_ENGINE = EngineDescribed(pid=1, torch_version="2.13.0+cpu")
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
    return TorchCard(**{"cuda_index": number, **same, **facts})


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
        assert finding.evidence
    return findings


def one(code: str, findings: tuple[Finding, ...]) -> Finding:
    (finding,) = (finding for finding in findings if finding.code == code)
    return finding


def codes(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.code for finding in findings]


# ── the driver ────────────────────────────────────────────────────────────────────────────────


def test_a_driver_that_never_answered_explains_everything():
    silent = Driver(version="580.95.05", error="It does not answer.", is_silent=True)
    findings = examined(pc(on_the_bus(GT_1030, "silent"), driver=silent), None)
    assert codes(findings) == ["driver_not_answering"]
    assert findings[0].action == "sudo reboot"


def test_one_silent_card_of_two_is_named_and_the_other_is_used():
    silent = CardReading(uuid="GPU-aaaa", telemetry=Telemetry(), error="?", error_code="silent")
    reading = Reading(taken_at_s=1.0, cpu=Telemetry(), cards=(silent,))
    findings = examined(pc(GT_1030, RTX_3060), readings=[reading])
    assert codes(findings) == ["driver_not_answering", "mixed_order", "ok"]
    assert [finding.device_uuid for finding in findings] == ["GPU-aaaa", None, "GPU-bbbb"]
    by_kernel = examined(pc(RTX_3060), probe=probe(tried(RTX_3060, "silent", message="no answer")))
    assert codes(by_kernel) == ["driver_not_answering"]


def test_two_halves_of_a_driver_are_told_with_their_versions():
    driver = Driver(
        version="570.86.15", library_version="580.95.05", error="Restart the PC.", error_code=18
    )
    finding = one("driver_library_mismatch", examined(pc(driver=driver)))
    assert "kernel module 570.86.15, library 580.95.05" in finding.evidence
    assert finding.action == "sudo reboot"


@pytest.mark.parametrize(
    ("distribution", "action"),
    [("linuxmint ubuntu debian", "sudo ubuntu-drivers install"),
     ("debian", "sudo apt install nvidia-driver"),
     ("arch", "https://www.nvidia.com/en-us/drivers/unix/")],
)  # fmt: skip
def test_a_missing_driver_is_installed_as_the_system_does_it(distribution, action):
    driver = Driver(error="No NVIDIA driver is installed.", error_code=12)
    card = on_the_bus(GT_1030, "no_driver", kernel_driver="nouveau")
    finding = one("no_driver", examined(pc(card, driver=driver, distribution=distribution)))
    assert finding.action == action
    assert "branch 580, the last for Pascal cards" in finding.sentence
    assert "driven by nouveau" in finding.evidence


def test_a_card_that_another_driver_holds_is_no_dropped_one():
    card = on_the_bus(RTX_3060, "not_served", kernel_driver="vfio-pci")
    findings = examined(pc(GT_1030, card))
    assert codes(findings) == ["no_driver", "ok"]
    assert "vfio-pci" in findings[0].evidence


def test_a_dropped_card_alone_is_known_by_the_library_s_version():
    driver = Driver(library_version="595.71.05", error=NOT_RUNNING, error_code=9)
    engine = msgspec.structs.replace(ENGINE, cuda_available=False)
    findings = examined(pc(on_the_bus(GT_1030, "no_driver"), driver=driver), engine)
    assert codes(findings) == ["driver_dropped_card"]
    assert "Driver 595 no longer serves your GT 1030 (Pascal)" in findings[0].sentence


def test_a_driver_of_the_last_branch_has_dropped_nothing():
    for version in ("580.95.05", "582.28"):  # Windows gives later ones of a branch higher numbers
        driver = Driver(library_version=version, error=NOT_RUNNING, error_code=9)
        findings = examined(pc(on_the_bus(GT_1030, "no_driver"), driver=driver))
        assert codes(findings) == ["no_driver"]
        assert findings[0].action == "sudo modprobe nvidia"


def test_the_limits_of_wsl_are_told_beside_what_works():
    findings = examined(pc(RTX_3060, is_wsl=True))
    assert codes(findings) == ["wsl_limits", "ok"]
    assert is_usable(findings)
    nothing = examined(pc(driver=Driver(error="None.", error_code=12), is_wsl=True))
    assert "installed in Windows" in one("no_nvidia_card", nothing).sentence


@pytest.mark.parametrize(
    ("others", "words", "has_action"),
    [(("AMD Radeon RX 6600",), "ROCm", True), (("Intel Arc A380",), "XPU", True),
     (("Microsoft Basic Display",), "computes nothing on it", False),
     ((), "runs on the CPU", False)],
)  # fmt: skip
def test_other_makers_cards_are_told_what_pytorch_does_with_them(others, words, has_action):
    inventory = pc(driver=Driver(error="None.", error_code=12), other_gpus=others)
    finding = one("no_nvidia_card", examined(inventory, CPU_ENGINE))
    assert words in finding.sentence
    assert all(name in finding.sentence for name in others)
    assert bool(finding.action) is has_action


# ── a card ────────────────────────────────────────────────────────────────────────────────────


def test_a_lost_card_is_told_whoever_saw_it():
    at_the_start = examined(pc(on_the_bus(GT_1030, "lost"), RTX_3060))
    assert codes(at_the_start) == ["card_lost", "ok"]
    lost = CardReading(
        uuid="GPU-bbbb", telemetry=Telemetry(), error="It was lost from the bus.", error_code="lost"
    )
    reading = Reading(taken_at_s=1.0, cpu=Telemetry(), cards=(lost,))
    assert codes(examined(pc(RTX_3060), readings=[reading])) == ["card_lost"]
    assert codes(examined(pc(RTX_3060), probe=probe(tried(RTX_3060, "lost")))) == ["card_lost"]


def test_a_wrong_sum_is_a_finding_of_its_own_and_the_card_is_usable():
    findings = examined(pc(RTX_3060), probe=probe(tried(RTX_3060, total=524799.0)))
    assert codes(findings) == ["wrong_sum", "ok"]
    assert "524799 instead of 524800" in findings[0].sentence
    right = examined(pc(RTX_3060), probe=probe(tried(RTX_3060)))
    assert codes(right) == ["ok"]
    assert "a real kernel ran" in right[0].evidence


def test_a_kernel_judges_before_the_lists_do():
    no_code = examined(pc(RTX_3060), probe=probe(tried(RTX_3060, "no_code", message="no image")))
    assert codes(no_code) == ["no_code_for_card"]
    assert "a real kernel said: no image" in no_code[0].evidence
    listed_not = msgspec.structs.replace(ENGINE, arch_list=("sm_90",))
    assert codes(examined(pc(RTX_3060), listed_not)) == ["no_code_for_card"]
    assert codes(examined(pc(RTX_3060), listed_not, probe=probe(tried(RTX_3060)))) == ["ok"]


@pytest.mark.parametrize("outcome", ["failed", "died", "out_of_memory"])
def test_a_kernel_that_does_not_run_is_no_ok(outcome):
    findings = examined(pc(RTX_3060), probe=probe(tried(RTX_3060, outcome, message="It failed")))
    assert codes(findings) == ["cuda_init_failed"]
    assert findings[0].device_uuid == "GPU-bbbb"


@pytest.mark.parametrize(
    ("system", "is_wsl", "action"),
    [("Linux", False, "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm"),
     ("Linux", True, "wsl --shutdown"), ("Windows", False, "shutdown /r")],
)  # fmt: skip
def test_cuda_that_does_not_start_after_a_sleep_is_brought_back(system, is_wsl, action):
    engine = msgspec.structs.replace(ENGINE, cuda_available=False, cuda_reason="It slept.")
    findings = examined(pc(RTX_3060, is_wsl=is_wsl), engine, system=system)
    assert one("cuda_init_failed", findings).action == action


def test_a_process_that_cannot_start_cuda_is_told_where_the_engine_could():
    findings = examined(pc(RTX_3060), probe=probe(error="CUDA could not start: unknown error."))
    assert "a fresh process could not start it" in one("cuda_init_failed", findings).evidence


def test_a_busy_card_is_told_with_who_is_in():
    by_kernel = examined(pc(RTX_3060), probe=probe(tried(RTX_3060, "busy", message="busy")))
    assert codes(by_kernel) == ["device_busy"]
    holder = GpuProcess(pid=7, name="game", kind="compute")
    taken = changed(RTX_3060, compute_mode="exclusive process", processes=(holder,))
    finding = one("device_busy", examined(pc(taken)))
    assert "game (7) is in" in finding.sentence
    assert finding.action == "sudo nvidia-smi -i 00000000:02:00.0 -c DEFAULT"
    closed = examined(pc(changed(RTX_3060, compute_mode="prohibited")))
    assert codes(closed) == ["device_busy"]
    assert "lets no program" in closed[0].sentence
    ran = examined(pc(taken), probe=probe(tried(RTX_3060)))
    assert codes(ran) == ["ok"]
    free = examined(pc(changed(RTX_3060, compute_mode="exclusive process")))
    assert codes(free) == ["ok"]


def test_a_card_with_another_s_name_is_found_out():
    reflashed = changed(
        RTX_3060, compute_capability="7.5", multiprocessors=14, memory_bus_width_bits=128,
        pci_device_id=0x1F82,
    )  # fmt: skip
    finding = one("not_as_named", examined(pc(reflashed)))
    assert "14 by the card, 28 by its name" in finding.sentence
    assert "compute capability: 7.5" in finding.sentence
    chip = one("not_as_named", examined(pc(changed(RTX_3060, pci_device_id=0x1F82))))
    assert "its device id (TU117)" in chip.sentence


def test_driver_and_pytorch_that_differ_are_told():
    engine = msgspec.structs.replace(
        ENGINE, cards=(told(RTX_3060, multiprocessors=30, memory_total_bytes=6 << 30),)
    )
    finding = one("not_as_named", examined(pc(RTX_3060), engine))
    assert "28 by nvidia-smi, 30 by PyTorch" in finding.sentence
    assert "12288 by nvidia-smi, 6144 by PyTorch" in finding.sentence
    same = msgspec.structs.replace(
        ENGINE, cards=(told(RTX_3060, memory_total_bytes=(12 << 30) - (250 << 20)),)
    )
    assert codes(examined(pc(RTX_3060), same)) == ["ok"]


def test_cards_are_matched_by_uuid_then_by_slot_and_never_by_number():
    swapped = (told(RTX_3060, 0, multiprocessors=30), told(GT_1030, 1))
    engine = msgspec.structs.replace(ENGINE, cards=swapped)
    assert one("not_as_named", examined(pc(GT_1030, RTX_3060), engine)).device_uuid == "GPU-bbbb"
    by_slot = (told(RTX_3060, 0, uuid=None, multiprocessors=30),)
    engine = msgspec.structs.replace(ENGINE, cards=by_slot)
    assert one("not_as_named", examined(pc(GT_1030, RTX_3060), engine)).device_uuid == "GPU-bbbb"


def working(generation: int, width: int, *, pstate: int = 0, load: float = 90.0) -> Reading:
    now = Telemetry(
        pcie_generation=generation, pcie_width=width, pstate=pstate, utilization_percent=load
    )
    card = CardReading(uuid="GPU-bbbb", telemetry=now)
    return Reading(taken_at_s=1.0, cpu=Telemetry(), cards=(card,))


@pytest.mark.parametrize(
    ("readings", "is_slow"),
    [([working(1, 16, pstate=8)], False), ([working(1, 16, load=2)], False),
     ([working(4, 16)], False), ([working(4, 4)], True), ([working(1, 16)], True),
     ([working(1, 16), working(4, 16), working(1, 16, pstate=8)], False), ([], False)],
)  # fmt: skip
def test_a_link_is_slow_only_where_the_card_was_seen_to_work(readings, is_slow):
    findings = examined(pc(RTX_3060), readings=readings)
    assert ("slow_link" in codes(findings)) is is_slow
    assert is_usable(findings)


def test_a_link_that_somebody_remembers_counts():
    slow = {"GPU-bbbb": Link(generation=1, width=4)}
    finding = one("slow_link", examined(pc(RTX_3060), links=slow))
    assert "gen 1 × 4 while it works" in finding.sentence
    assert "gen 4 × 16" in finding.sentence


def test_scripts_that_number_otherwise_are_told():
    cards = (tried(RTX_3060, number=0), tried(GT_1030, number=1))
    finding = one("mixed_order", examined(pc(GT_1030, RTX_3060), probe=probe(*cards)))
    assert "cuda:0 there is the RTX 3060, which nvidia-smi calls 1" in finding.sentence
    assert finding.action == "export CUDA_DEVICE_ORDER=PCI_BUS_ID"
    assert "seen in a process" in finding.evidence
    guessed = one("mixed_order", examined(pc(GT_1030, RTX_3060)))
    assert "guessed" in guessed.evidence


@pytest.mark.parametrize(
    ("cards", "facts", "engine"),
    [((GT_1030, RTX_3060), {"variables": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}}, ENGINE),
     ((changed(RTX_3060, nvml_index=0, pci_bus_id="00000000:01:00.0"),
       changed(GT_1030, nvml_index=1, pci_bus_id="00000000:02:00.0")), {}, ENGINE),
     ((GT_1030, RTX_3060), {}, msgspec.structs.replace(ENGINE, visible_devices="0,1")),
     ((RTX_3060,), {}, ENGINE)],
)  # fmt: skip
def test_scripts_that_number_alike_need_nothing(cards, facts, engine):
    assert "mixed_order" not in codes(examined(pc(*cards, **facts), engine))


def test_a_build_for_one_card_that_another_needs_is_not_taken_from_it():
    newest = changed(
        RTX_3060, name="NVIDIA GeForce RTX 5090", compute_capability="12.0", multiprocessors=170,
        memory_bus_width_bits=512, pci_device_id=0x2B85,
    )  # fmt: skip
    cu130 = msgspec.structs.replace(
        ENGINE, torch_version="2.13.0+cu130", cuda_build="13.0", arch_list=("sm_75", "sm_120")
    )
    finding = one("no_code_for_card", examined(pc(GT_1030, newest), cu130))
    assert "none for your RTX 5090" in finding.sentence
    assert "+cu126" in finding.action


@pytest.mark.parametrize(
    ("torch_version", "expected"),
    [("2.7.1+cu128", "no_code_for_card"), ("2.10.0+cu128", "driver_too_old"),
     ("2.11.0+cu128", "no_code_for_card")],
)  # fmt: skip
def test_a_build_that_does_not_start_is_judged_by_what_was_published(torch_version, expected):
    titan = changed(RTX_3060, name="NVIDIA TITAN V", compute_capability="7.0", pci_device_id=None)
    engine = EngineDescribed(pid=1, torch_version=torch_version, cuda_build="12.8")
    findings = examined(pc(titan, driver=Driver(version="470.256.02")), engine)
    assert expected in codes(findings)


def test_the_last_build_is_that_of_the_newest_pytorch():
    table = load_table()
    assert last_build(table, (3, 5)) is None
    for capability, tag, torch in (((3, 7), "cu118", "2.7"), ((7, 0), "cu126", "2.14")):
        build = last_build(table, capability)
        assert (build.tag, build.torch[1]) == (tag, torch)


def test_a_sleeping_card_is_judged_by_its_chip_and_by_what_a_kernel_did():
    asleep = changed(on_the_bus(RTX_3060, "asleep"), unreadable=ASLEEP)
    findings = examined(pc(asleep))
    assert codes(findings) == ["card_asleep", "ok"]
    assert is_usable(findings)
    old = changed(on_the_bus(GT_1030, "asleep"), unreadable=ASLEEP)
    cu130 = msgspec.structs.replace(ENGINE, torch_version="2.13.0+cu130", arch_list=("sm_75",))
    assert codes(examined(pc(old), cu130)) == ["no_code_for_card", "card_asleep"]
    assert codes(examined(pc(old), CPU_ENGINE)) == ["cpu_only_build", "card_asleep"]
    # PyTorch tells its slot, the bus tells nothing else.
    unknown = changed(asleep, pci_device_id=None)
    assert codes(examined(pc(unknown))) == ["card_asleep"]
    by_kernel = examined(pc(unknown), probe=probe(tried(RTX_3060)))
    assert codes(by_kernel) == ["card_asleep", "ok"]


def test_of_a_sleeping_card_that_nobody_asked_about_nothing_is_promised():
    asleep = changed(on_the_bus(RTX_3060, "asleep"), unreadable=ASLEEP)
    unasked = msgspec.structs.replace(
        ENGINE, cards_asleep=True, cuda_available=False, cuda_reason="It sleeps.", cards=()
    )
    (finding,) = examined(pc(asleep), unasked)
    assert (finding.code, finding.action) == ("card_asleep", "nvidia-smi")
    assert "was not asked" in finding.sentence
    assert one("card_asleep", examined(pc(asleep))).action == ""
    by_kernel = examined(pc(asleep), unasked, probe=probe(tried(RTX_3060)))
    assert codes(by_kernel) == ["card_asleep", "ok"]
    failed = examined(pc(asleep), unasked, probe=probe(error="It did not start."))
    assert codes(failed) == ["cuda_init_failed", "card_asleep"]


# ── PyTorch's own table ───────────────────────────────────────────────────────────────────────


def test_a_table_of_pytorch_s_that_says_otherwise_is_told():
    without_maxwell = {"12.6": ("6.0", "7.0", "7.5", "8.0", "8.6", "9.0")}
    engine = msgspec.structs.replace(ENGINE, own_table=without_maxwell)
    finding = one("tables_differ", examined(pc(RTX_3060), engine))
    assert "only this program's table has cu126 serve 5.0" in finding.sentence
    other = msgspec.structs.replace(engine, torch_version="2.14.0+cu126")
    assert "tables_differ" not in codes(examined(pc(RTX_3060), other))
    alike = {"12.6": ("5.0", "6.0", "6.1", "7.0", "7.5", "8.0", "8.6", "9.0"), "12.9": ("7.5",)}
    same = msgspec.structs.replace(ENGINE, own_table=alike)
    assert codes(examined(pc(RTX_3060), same)) == ["ok"]


# ── all of them ───────────────────────────────────────────────────────────────────────────────


def test_findings_come_worst_first_and_are_plain_values():
    mixed = [Finding(code=code, sentence="It is.") for code in reversed(SEVERITIES)]
    assert codes(worst_first(mixed)) == list(SEVERITIES)
    (value,) = findings_value([Finding(code="ok", sentence="It works.")])["findings"]
    assert value == {
        "code": "ok", "device_uuid": None, "sentence": "It works.", "evidence": "", "action": "",
    }  # fmt: skip


def test_each_rule_has_its_place_and_each_code_its_severity():
    asleep = changed(on_the_bus(GT_1030, "asleep"), unreadable=ASLEEP)
    unknown = on_the_bus(RTX_3060, "unknown")
    assert codes(examined(pc(asleep, unknown))) == ["card_unreadable", "card_asleep", "ok"]
    assert len(rules._RULES) == len(SEVERITIES)
