"""The rows of PyTorch and of any device."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.pc.device_facts import facts_of, summary_line
from gpu_studio.core.pc.devices import Device, Driver, Reading, Telemetry
from gpu_studio.core.pc.facts import PcSnapshot, amount_text
from gpu_studio.core.protocol import MemoryRead
from tests.core.pc.fact_rows import card_snapshot, numbered, plain, rows_of
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import cpu_only, gt_1030, gt_1030_card, reading, two_cards


def test_pytorchs_own_account_is_there():
    card = numbered()
    rows = rows_of(card, card_snapshot(card, described_with_cuda(device_count=1)))
    shown = {key: fact.value for key, fact in rows.items()}
    assert shown["cuda_available"] == "yes"
    assert shown["torch_version"] == "2.13.0+cu126"
    assert shown["cuda_build"] == "12.6"
    assert shown["arch_list"] == "sm_61 sm_86"
    assert shown["device_count"] == "1"
    assert shown["current_device"] == "cuda:0 GT 1030"


def test_the_current_card_is_the_one_that_was_chosen():
    found = two_cards()
    second = msgspec.structs.replace(found.cards[1], cuda_index=1)
    inventory = msgspec.structs.replace(found, devices=(found.cpu, numbered(), second))
    snapshot = PcSnapshot(inventory=inventory, engine=described_with_cuda(), current_device=1)
    assert rows_of(second, snapshot)["current_device"].value == "cuda:1 RTX 3060"


@pytest.mark.parametrize(
    ("engine", "memory", "value", "reason"),
    [
        (None, None, "n/a", "The engine is starting."),
        (described(), None, "n/a", "This PyTorch was built without CUDA."),
        (described_with_cuda(), None, "n/a", "Not read yet."),
        (
            described_with_cuda(),
            MemoryRead(device="cuda:0", taken_at_s=0.0),
            "no CUDA context yet",
            "The engine has done nothing on this card yet",
        ),
        (
            described_with_cuda(),
            MemoryRead(device="cuda:0", taken_at_s=0.0, allocated_bytes=0, reserved_bytes=2 << 20),
            "0 bytes",
            "In this program's engine alone.",
        ),
    ],
)
def test_allocated_says_why_it_is_what_it_is(engine, memory, value, reason):
    card = numbered()
    snapshot = card_snapshot(card, engine, {"cuda:0": memory} if memory else {})
    fact = rows_of(card, snapshot)["allocated"]
    assert plain(fact.value) == value
    assert fact.reason.startswith(reason)


def test_allocated_and_reserved_are_not_exchanged():
    card = numbered()
    read = MemoryRead(
        device="cuda:0", taken_at_s=0.0, allocated_bytes=1 << 20, reserved_bytes=2 << 20
    )
    rows = rows_of(card, card_snapshot(card, described_with_cuda(), {"cuda:0": read}))
    assert plain(rows["allocated"].value) == "1 MiB"
    assert plain(rows["reserved"].value) == "2 MiB"


def test_a_pc_without_a_card_says_why_for_each_missing_thing():
    inventory = cpu_only()
    snapshot = PcSnapshot(inventory=inventory, reading=reading(inventory), engine=described())
    rows = rows_of(inventory.cpu, snapshot)
    assert rows["cuda_available"].value == "no"
    assert rows["cuda_available"].reason == "This PyTorch was built without CUDA."
    assert rows["cuda_build"].reason == "This PyTorch is built for the CPU alone."
    assert rows["driver_version"].reason.startswith("No NVIDIA driver")
    assert rows["cores"].value == "8 cores, 16 threads"
    assert rows["simd"].value == "AVX2"
    assert plain(rows["memory_used"].value) == "8 GiB"
    assert not rows["temperature"].is_known
    assert "other_gpus" not in rows


def test_other_makers_cards_are_named():
    inventory = msgspec.structs.replace(cpu_only(), other_gpus=("AMD Radeon RX 6600",))
    rows = rows_of(inventory.cpu, PcSnapshot(inventory=inventory))
    assert rows["other_gpus"].value == "AMD Radeon RX 6600"


def test_a_broken_driver_that_tells_its_version_still_says_what_is_wrong():
    driver = Driver(version="570.86.16", error="Its two halves do not fit.", error_code=18)
    inventory = msgspec.structs.replace(cpu_only(), driver=driver)
    rows = rows_of(inventory.cpu, PcSnapshot(inventory=inventory))
    assert rows["driver_version"].value == "570.86.16"
    assert rows["driver_version"].reason == "Its two halves do not fit."
    assert rows["driver_cuda"].reason == "Its two halves do not fit."


def test_every_row_has_a_key_of_its_own():
    card = numbered()
    snapshot = card_snapshot(card, described_with_cuda(visible_devices="0"))
    keys = [fact.key for group in facts_of(card, snapshot) for fact in group.facts]
    assert len(keys) == len(set(keys))


def test_the_line_under_the_name():
    cpu = cpu_only().cpu
    assert plain(summary_line(cpu, None)) == "CPU · 8 cores, 16 threads · 32 GiB"
    assert plain(summary_line(cpu, described())) == "CPU · 8 cores, 16 threads · 32 GiB · AVX2"
    assert plain(summary_line(numbered(), None)) == "cuda:0 · 2 GiB · 6.1 · drives your monitor"
    hidden = gt_1030_card(display_active=False)
    assert plain(summary_line(hidden, None)) == "not seen by PyTorch · 2 GiB · 6.1"
    lost = Device(kind="cuda", name="NVIDIA card", unreadable="Lost.")
    assert summary_line(lost, None) == "cannot be read"
    sleeper = Device(kind="cuda", name="GT 1030", unreadable=".", unreadable_code="asleep")
    assert summary_line(sleeper, None) == "asleep"
    numbered_sleeper = msgspec.structs.replace(sleeper, cuda_index=0)
    assert plain(summary_line(numbered_sleeper, None)) == "cuda:0 · asleep"
    assert plain(summary_line(Device(kind="cpu", name="CPU", cores=1, threads=1), None)) == (
        "CPU · 1 core, 1 thread"
    )


@pytest.mark.parametrize(
    ("value", "most", "text"),
    [
        (None, None, None),
        (227.0, None, "227 MHz"),
        (227.4, 1911.0, "227 of 1911 MHz"),
        (None, 1911.0, "n/a (highest 1911 MHz)"),
    ],
)
def test_an_amount_beside_its_most(value, most, text):
    made = amount_text(value, most, "MHz")
    assert (made if made is None else plain(made)) == text


def test_a_snapshot_prefers_the_reading_to_the_finding():
    card = numbered(telemetry=Telemetry(temperature_c=20.0))
    inventory = msgspec.structs.replace(gt_1030(), devices=(gt_1030().cpu, card))
    assert PcSnapshot(inventory=inventory).telemetry(card).temperature_c == 20.0
    later = Reading(taken_at_s=1.0, cpu=Telemetry(), cards=())
    assert PcSnapshot(inventory=inventory, reading=later).telemetry(card).temperature_c is None


def test_each_card_has_its_own_telemetry():
    found = two_cards()
    first, second = reading(found).cards
    hot = msgspec.structs.replace(second, telemetry=Telemetry(temperature_c=80.0))
    taken = Reading(taken_at_s=0.0, cpu=Telemetry(), cards=(first, hot))
    snapshot = PcSnapshot(inventory=found, reading=taken)
    assert [snapshot.telemetry(card).temperature_c for card in found.cards] == [41.0, 80.0]


def test_the_rows_are_the_same_before_the_engine_is_there():
    card = numbered()
    before = facts_of(card, card_snapshot(card))
    after = facts_of(card, card_snapshot(card, described_with_cuda()))
    assert [fact.key for group in before for fact in group.facts] == [
        fact.key for group in after for fact in group.facts
    ]
    torch = next(group for group in before if group.title == "PyTorch")
    assert {(fact.value, fact.reason) for fact in torch.facts} == {
        ("n/a", "The engine is starting.")
    }


def test_the_tables_of_builds_are_compared_where_they_are_of_one_pytorch():
    card = numbered()
    table = {"12.6": ("5.0", "6.0", "7.0", "7.5", "8.0", "8.6", "9.0")}
    engine = msgspec.structs.replace(described_with_cuda(), own_table=table)
    assert rows_of(card, card_snapshot(card, engine))["tables"].value == "agree"
    less = msgspec.structs.replace(engine, own_table={"12.6": table["12.6"][1:]})
    assert "serve 5.0" in rows_of(card, card_snapshot(card, less))["tables"].value
    other = msgspec.structs.replace(engine, torch_version="2.14.0+cu126")
    assert not rows_of(card, card_snapshot(card, other))["tables"].is_known


def test_of_cards_that_sleep_and_were_not_asked_about_nothing_is_claimed():
    engine = described_with_cuda(
        cuda_available=False, device_count=0, cuda_reason="They sleep.", cards_asleep=True
    )
    found = rows_of(gt_1030().cpu, PcSnapshot(inventory=gt_1030(), engine=engine))
    for key in ("cuda_available", "device_count"):
        assert (found[key].value, found[key].reason) == ("n/a", "They sleep.")
