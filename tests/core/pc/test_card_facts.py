"""The rows of a card."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.pc.card_facts import identity_line
from gpu_studio.core.pc.clock_events import clock_event_words
from gpu_studio.core.pc.devices import Device
from gpu_studio.core.pc.facts import PcSnapshot
from gpu_studio.core.pc.link import Link
from gpu_studio.core.pc.torch_facts import TorchCard
from tests.core.pc.fact_rows import card_snapshot, numbered, plain, rows_of
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import gt_1030, gt_1030_card


def test_a_card_shows_what_nvidia_smi_shows():
    card = numbered()
    rows = rows_of(card, card_snapshot(card, described_with_cuda()))
    shown = {key: plain(fact.value) for key, fact in rows.items()}
    assert shown["utilization"] == "4 %"
    assert shown["temperature"] == "41 °C"
    assert shown["fan"] == "35 %"
    assert shown["pstate"] == "P8"
    assert shown["power"] == "9.50 of 30 W"
    assert shown["sm_clock"] == "227 of 1911 MHz"
    assert shown["memory_clock"] == "405 of 3004 MHz"
    assert shown["pcie"] == "gen 1 × 4 of gen 3 × 4"
    assert shown["clock_reasons"] == "idle"
    assert shown["memory_used"] == "256 MiB (12 %)"
    assert shown["memory_total"] == "2 GiB"
    assert shown["memory_free"] == "1.66 GiB"
    assert shown["numbers"] == "nvidia-smi 0 = cuda:0 = drives your monitor"
    assert shown["compute_capability"] == "6.1"
    assert shown["cores"] == "3 SMs, 384 cores"
    assert shown["memory_bus"] == "64 bit"
    assert shown["vbios"] == "86.08.3B.00.5A"
    assert shown["uuid"] == card.uuid
    assert shown["driver_version"] == "570.86.16"


@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("utilization_percent", "utilization"),
        ("temperature_c", "temperature"),
        ("fan_percent", "fan"),
        ("pstate", "pstate"),
        ("power_w", "power"),
        ("sm_clock_mhz", "sm_clock"),
        ("memory_used_bytes", "memory_used"),
        ("memory_free_bytes", "memory_free"),
        ("pcie_generation", "pcie"),
        ("clock_event_reasons", "clock_reasons"),
    ],
)
def test_what_a_card_refuses_is_not_available_with_the_reason(field, key):
    card = numbered()
    known = rows_of(card, card_snapshot(card))[key]
    refused = rows_of(card, card_snapshot(card, **{field: None}))[key]
    assert known.is_known
    assert refused.value.startswith("n/a")
    assert not refused.is_known
    assert refused.reason == "This card does not report it."


def test_zero_is_a_value():
    card = numbered()
    zeros = {"utilization_percent": 0.0, "fan_percent": 0.0, "pstate": 0, "clock_event_reasons": 0}
    rows = rows_of(card, card_snapshot(card, **zeros, memory_used_bytes=0))
    assert plain(rows["utilization"].value) == "0 %"
    assert plain(rows["fan"].value) == "0 %"
    assert rows["pstate"].value == "P0"
    assert rows["clock_reasons"].value == "not held back"
    assert plain(rows["memory_used"].value) == "0 bytes"


def test_a_power_limit_without_a_sensor_is_told_as_such():
    card = numbered()
    power = rows_of(card, card_snapshot(card, power_w=None, power_limit_w=19.0))["power"]
    assert plain(power.value) == "n/a (limit 19 W)"
    assert power.reason == "This card does not report it."


def test_a_lost_card_gives_its_own_reason():
    card = numbered()
    rows = rows_of(card, card_snapshot(card, error="The card no longer answers."))
    assert rows["temperature"].reason == "The card no longer answers."
    assert not rows["temperature"].is_known
    assert rows["name"].value == "NVIDIA GeForce GT 1030"


def test_a_sleeping_card_gives_its_own_reason_before_the_first_reading():
    card = Device(kind="cuda", name="NVIDIA card", unreadable="It sleeps.", pci_bus_id="0:1:0.0")
    inventory = msgspec.structs.replace(gt_1030(), devices=(gt_1030().cpu, card))
    rows = rows_of(card, PcSnapshot(inventory=inventory))
    assert rows["temperature"].reason == "It sleeps."
    assert rows["vbios"].reason == "It sleeps."


def test_a_cards_numbers_are_told_apart():
    assert identity_line(numbered(nvml_index=1, display_active=False)) == "nvidia-smi 1 = cuda:0"
    assert identity_line(gt_1030_card(display_active=None)) == (
        "nvidia-smi 0 = no number in PyTorch"
    )


def test_reasons_of_the_clocks_are_words():
    assert clock_event_words(None) is None
    assert clock_event_words(0x4 | 0x20) == "at the power limit, hot (driver's brake)"


def test_peaks_are_computed_from_what_the_card_tells():
    card = numbered()
    rows = rows_of(card, card_snapshot(card, described_with_cuda()))
    # 3 multiprocessors × 128 multiply-adds × 1911 MHz; 3004 MHz twice over 64 bits.
    assert plain(rows["peak_float32"].value) == "1.47 TFLOP/s"
    assert plain(rows["peak_float64"].value) == "45.9 GFLOP/s"
    assert plain(rows["peak_bandwidth"].value) == "48.1 GB/s"
    assert "no tensor cores" in rows["peak_tensor"].reason
    untold = numbered(multiprocessors=None)
    missing = rows_of(untold, card_snapshot(untold))["peak_float32"]
    assert not missing.is_known
    assert "does not tell enough" in missing.reason


def described_with(card, **facts):
    told = TorchCard(**{"cuda_index": 0, "name": card.name, "uuid": card.uuid, **facts})
    return msgspec.structs.replace(described_with_cuda(), cards=(told,))


def test_what_a_card_does_not_tell_pytorch_may():
    card = numbered(multiprocessors=None)
    engine = described_with(card, multiprocessors=3, l2_cache_bytes=512 << 10)
    rows = rows_of(card, card_snapshot(card, engine))
    assert plain(rows["peak_float32"].value) == "1.47 TFLOP/s"
    assert plain(rows["l2_cache"].value) == "512 KiB"
    assert rows["torch_multiprocessors"].value == "3 by PyTorch"
    assert rows["contradictions"].value == "none"


def test_pytorch_s_account_stands_beside_the_driver_s():
    card = numbered(multiprocessors=3)
    alike = rows_of(card, card_snapshot(card, described_with(card, multiprocessors=3)))
    assert alike["torch_multiprocessors"].value == "3"
    differing = rows_of(card, card_snapshot(card, described_with(card, multiprocessors=5)))
    assert differing["torch_multiprocessors"].value == "5 by PyTorch, 3 by the driver"
    assert "3 by nvidia-smi, 5 by PyTorch" in differing["contradictions"].value
    nobody = rows_of(card, card_snapshot(card, described_with_cuda()))
    assert not nobody["torch_multiprocessors"].is_known
    assert nobody["contradictions"].value == "none"  # name and chip agree


def test_of_a_card_that_nobody_describes_no_agreement_is_claimed():
    lost = numbered(unreadable="It was lost from the bus.", unreadable_code="lost")
    assert not rows_of(lost, card_snapshot(lost, described_with_cuda()))["contradictions"].is_known


def test_the_link_at_work_is_told_apart_from_the_idle_one():
    card = numbered(pcie_generation_card_max=4)
    snapshot = card_snapshot(card)
    idle = rows_of(card, snapshot)["pcie_at_work"]
    assert not idle.is_known
    assert "while the card works" in idle.reason
    seen = msgspec.structs.replace(snapshot, links={card.identity: Link(generation=3, width=4)})
    text = plain(rows_of(card, seen)["pcie_at_work"].value)
    assert text == "gen 3 × 4 of gen 3 × 4 (the card alone: gen 4)"
    alike = numbered(pcie_generation_card_max=3)
    snapshot = msgspec.structs.replace(
        card_snapshot(alike), links={alike.identity: Link(generation=3, width=4)}
    )
    assert plain(rows_of(alike, snapshot)["pcie_at_work"].value) == "gen 3 × 4 of gen 3 × 4"
