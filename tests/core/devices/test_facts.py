import msgspec
import pytest

from gpu_studio.core.devices.devices import CardReading, Device
from gpu_studio.core.devices.facts import (
    PcSnapshot,
    facts_of,
    summary_line,
)
from gpu_studio.core.messages.memory_messages import MemoryRead
from gpu_studio.core.telemetry import Telemetry
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import cpu_only, gt_1030, gt_1030_card, reading


def plain(text):
    return text.replace("\u202f", " ").replace("\u00a0", " ")


def rows_of(device, snapshot):
    return {fact.key: fact for group in facts_of(device, snapshot) for fact in group.facts}


def numbered(**changes):
    return gt_1030_card(torch_index=0, **changes)


def card_snapshot(card, engine=None, memory=None, error=None, **telemetry):
    inventory = msgspec.structs.replace(gt_1030(), devices=(gt_1030().cpu, card))
    taken = reading(inventory, **telemetry)
    if error is not None:
        lost = CardReading(uuid=card.identity, telemetry=Telemetry(), error=error)
        taken = msgspec.structs.replace(taken, cards=(lost,))
    return PcSnapshot(inventory=inventory, reading=taken, engine=engine, memory=memory or {})


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


def test_peaks_are_computed_from_what_the_card_reports():
    card = numbered()
    rows = rows_of(card, card_snapshot(card, described_with_cuda()))
    # 3 multiprocessors × 128 multiply-adds × 1911 MHz; 3004 MHz twice over 64 bits.
    assert plain(rows["peak_float32"].value) == "1.47 TFLOP/s"
    assert plain(rows["peak_float64"].value) == "45.9 GFLOP/s"
    assert plain(rows["peak_bandwidth"].value) == "48.1 GB/s"
    assert "no tensor cores" in rows["peak_tensor"].reason
    unreported = numbered(multiprocessors=None)
    missing = rows_of(unreported, card_snapshot(unreported))["peak_float32"]
    assert not missing.is_known
    assert "does not report enough" in missing.reason


@pytest.mark.parametrize(
    ("engine", "memory", "value", "reason"),
    [
        (None, None, "n/a", "PyTorch is starting."),
        (described(), None, "n/a", "This PyTorch was built without CUDA."),
        (described_with_cuda(), None, "n/a", "Not read yet."),
        (
            described_with_cuda(),
            MemoryRead(device="cuda:0", taken_at_s=0.0),
            "no CUDA context yet",
            "PyTorch has not used this card yet",
        ),
        (
            described_with_cuda(),
            MemoryRead(device="cuda:0", taken_at_s=0.0, allocated_bytes=0, reserved_bytes=2 << 20),
            "0 bytes",
            "Only GPU Studio's PyTorch.",
        ),
    ],
)
def test_allocated_says_why_it_is_what_it_is(engine, memory, value, reason):
    card = numbered()
    snapshot = card_snapshot(card, engine, {"cuda:0": memory} if memory else {})
    fact = rows_of(card, snapshot)["allocated"]
    assert plain(fact.value) == value
    assert fact.reason.startswith(reason)


def test_a_pc_without_a_card_says_why_for_each_missing_thing():
    inventory = cpu_only()
    snapshot = PcSnapshot(inventory=inventory, reading=reading(inventory), engine=described())
    rows = rows_of(inventory.cpu, snapshot)
    assert rows["cuda_available"].value == "no"
    assert rows["cuda_available"].reason == "This PyTorch was built without CUDA."
    assert rows["cuda_build"].reason == "This PyTorch is a CPU-only build."
    assert rows["driver_version"].reason.startswith("No NVIDIA driver")
    assert rows["cores"].value == "8 cores, 16 threads"
    assert rows["simd"].value == "AVX2"
    assert plain(rows["memory_used"].value) == "8 GiB"
    assert not rows["temperature"].is_known
    assert "other_gpus" not in rows


def test_the_line_under_the_name():
    cpu = cpu_only().cpu
    assert plain(summary_line(cpu, None)) == "CPU · 8 cores, 16 threads · 32 GiB RAM"
    assert plain(summary_line(cpu, described())) == "CPU · 8 cores, 16 threads · 32 GiB RAM · AVX2"
    assert plain(summary_line(numbered(), None)) == (
        "cuda:0 · 2 GiB VRAM · compute capability 6.1 · drives your monitor"
    )
    hidden = gt_1030_card(display_active=False)
    assert plain(summary_line(hidden, None)) == (
        "not seen by PyTorch · 2 GiB VRAM · compute capability 6.1"
    )
    lost = Device(kind="cuda", name="NVIDIA card", unreadable="Lost.")
    assert summary_line(lost, None) == "cannot be read"
    sleeper = Device(kind="cuda", name="GT 1030", unreadable=".", unreadable_code="asleep")
    assert summary_line(sleeper, None) == "asleep"
    numbered_sleeper = msgspec.structs.replace(sleeper, torch_index=0)
    assert plain(summary_line(numbered_sleeper, None)) == "cuda:0 · asleep"
    assert plain(summary_line(Device(kind="cpu", name="CPU", cores=1, threads=1), None)) == (
        "CPU · 1 core, 1 thread"
    )


@pytest.mark.parametrize(
    ("bar1_gib", "words"),
    [(12.0, "on"), (16.0, "on"), (0.25, "off: the CPU reaches 256"), (None, "n/a")],
)
def test_resizable_bar_is_on_if_the_cpu_reaches_all_of_the_memory(bar1_gib, words):
    bytes_ = None if bar1_gib is None else int(bar1_gib * (1 << 30))
    card = msgspec.structs.replace(
        gt_1030().cards[0], memory_total_bytes=12 << 30, bar1_bytes=bytes_
    )
    assert rows_of(card, card_snapshot(card))["resizable_bar"].value.startswith(words)
