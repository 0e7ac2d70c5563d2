"""What is found of single cards, by the plain facts that lead to it."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.devices.devices import ASLEEP, CardReading, GpuProcess, Reading
from gpu_studio.core.devices.finding import is_usable
from gpu_studio.core.devices.link import Link
from gpu_studio.core.telemetry import Telemetry
from tests.core.devices.doctor_facts import (
    CPU_ENGINE,
    ENGINE,
    GT_1030,
    RTX_3060,
    changed,
    codes,
    examined,
    on_the_bus,
    one,
    pc,
    probe,
    told,
    tried,
)


def test_a_lost_card_is_reported_by_each_source():
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


def test_a_busy_card_is_named_with_the_program_on_it():
    by_kernel = examined(pc(RTX_3060), probe=probe(tried(RTX_3060, "busy", message="busy")))
    assert codes(by_kernel) == ["device_busy"]
    holder = GpuProcess(pid=7, name="game", kind="compute")
    taken = changed(RTX_3060, compute_mode="exclusive process", processes=(holder,))
    finding = one("device_busy", examined(pc(taken)))
    assert "game (7) is using it" in finding.sentence
    assert finding.command == "sudo nvidia-smi -i 00000000:02:00.0 -c DEFAULT"
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
    assert "the card says 14, its name (RTX 3060) says 28" in finding.sentence
    assert "compute capability: the card says 7.5" in finding.sentence
    chip = one("not_as_named", examined(pc(changed(RTX_3060, pci_device_id=0x1F82))))
    assert "its device id (TU117)" in chip.sentence


def test_driver_and_pytorch_that_differ_are_reported():
    engine = msgspec.structs.replace(
        ENGINE, cards=(told(RTX_3060, multiprocessors=30, memory_total_bytes=6 << 30),)
    )
    finding = one("not_as_named", examined(pc(RTX_3060), engine))
    assert "nvidia-smi says 28, PyTorch says 30" in finding.sentence
    assert "nvidia-smi says 12288, PyTorch says 6144" in finding.sentence
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


def test_a_remembered_link_counts():
    slow = {"GPU-bbbb": Link(generation=1, width=4)}
    finding = one("slow_link", examined(pc(RTX_3060), links=slow))
    assert "gen 1 × 4 instead of" in finding.sentence
    assert "gen 4 × 16" in finding.sentence


def test_scripts_that_number_otherwise_are_reported():
    cards = (tried(RTX_3060, number=0), tried(GT_1030, number=1))
    finding = one("mixed_order", examined(pc(GT_1030, RTX_3060), probe=probe(*cards)))
    assert "cuda:0 is the RTX 3060" in finding.sentence
    assert finding.command == "export CUDA_DEVICE_ORDER=PCI_BUS_ID"
    assert "seen in a separate process" in finding.evidence
    guessed = one("mixed_order", examined(pc(GT_1030, RTX_3060)))
    assert "guessed" in guessed.evidence


@pytest.mark.parametrize(
    ("cards", "facts", "engine"),
    [((GT_1030, RTX_3060), {"variables": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}}, ENGINE),
     ((changed(RTX_3060, driver_index=0, pci_bus_id="00000000:01:00.0"),
       changed(GT_1030, driver_index=1, pci_bus_id="00000000:02:00.0")), {}, ENGINE),
     ((GT_1030, RTX_3060), {}, msgspec.structs.replace(ENGINE, visible_devices="0,1")),
     ((RTX_3060,), {}, ENGINE)],
)  # fmt: skip
def test_scripts_that_number_alike_need_nothing(cards, facts, engine):
    assert "mixed_order" not in codes(examined(pc(*cards, **facts), engine))


def test_a_sleeping_card_is_judged_by_its_chip_and_by_what_a_kernel_did():
    asleep = changed(on_the_bus(RTX_3060, "asleep"), unreadable=ASLEEP)
    findings = examined(pc(asleep))
    assert codes(findings) == ["card_asleep", "ok"]
    assert is_usable(findings)
    old = changed(on_the_bus(GT_1030, "asleep"), unreadable=ASLEEP)
    cu130 = msgspec.structs.replace(ENGINE, torch_version="2.13.0+cu130", arch_list=("sm_75",))
    assert codes(examined(pc(old), cu130)) == ["no_code_for_card", "card_asleep"]
    assert codes(examined(pc(old), CPU_ENGINE)) == ["build_without_cuda", "card_asleep"]
    # PyTorch tells its slot, the bus tells nothing else.
    unknown = changed(asleep, pci_device_id=None)
    assert codes(examined(pc(unknown))) == ["card_asleep"]
    by_kernel = examined(pc(unknown), probe=probe(tried(RTX_3060)))
    assert codes(by_kernel) == ["card_asleep", "ok"]


def test_nothing_is_promised_of_a_sleeping_card():
    asleep = changed(on_the_bus(RTX_3060, "asleep"), unreadable=ASLEEP)
    unasked = msgspec.structs.replace(
        ENGINE, cards_asleep=True, cuda_available=False, cuda_reason="It sleeps.", cards=()
    )
    (finding,) = examined(pc(asleep), unasked)
    assert (finding.code, finding.command) == ("card_asleep", "nvidia-smi")
    assert "did not ask PyTorch" in finding.sentence
    assert one("card_asleep", examined(pc(asleep))).command == ""
    by_kernel = examined(pc(asleep), unasked, probe=probe(tried(RTX_3060)))
    assert codes(by_kernel) == ["card_asleep", "ok"]
    failed = examined(pc(asleep), unasked, probe=probe(error="It did not start."))
    assert codes(failed) == ["cuda_init_failed", "card_asleep"]
