from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from gpu_studio.core.benchmark.ceilings import (
    believed_share,
    card_ceilings,
    is_this_normal,
    is_worth_a_line,
    share_of_ceiling,
    share_text,
)
from gpu_studio.core.devices.devices import Device
from gpu_studio.core.devices.facts import peaks_of
from gpu_studio.core.devices.peaks import card_peaks
from gpu_studio.core.messages.engine_messages import TorchCard
from gpu_studio.core.messages.run_messages import Limit, RunFinished
from gpu_studio.core.telemetry import Telemetry
from tests.core.benchmark.cards import GT_1030
from tests.core.benchmark.kept_runs import finished_run
from tests.core.benchmark.published_cards import CARDS, PublishedCard
from tests.fakes.run_answers import changed

SLOW = {Limit.ARITHMETIC: 1e12, Limit.MEMORY: 1e11, Limit.LINK: 4e9}


@pytest.mark.parametrize(
    ("operations", "moved", "sent", "share", "limit", "ceiling"),
    [
        # 1e9 operations take 1 ms, 2e8 bytes take 2 ms
        (1e9, 2e8, 0.0, 0.5, Limit.MEMORY, "memory bandwidth, 100 GB/s"),
        (3e9, 2e8, 0.0, 0.75, Limit.ARITHMETIC, "peak arithmetic, 1.00 TFLOP/s"),
        (0.0, 2e8, 1e7, 0.625, Limit.LINK, "PCIe link, 4.00 GB/s"),
    ],
)
def test_the_ceiling_that_allows_the_least_decides(
    operations: float, moved: float, sent: float, share: float, limit: Limit, ceiling: str
) -> None:
    amounts = {Limit.ARITHMETIC: operations, Limit.MEMORY: moved, Limit.LINK: sent}
    found = share_of_ceiling(SLOW, 4e-3, amounts)
    assert found is not None
    assert (found.share, found.limit) == (pytest.approx(share), limit)
    assert found.ceiling.replace("\u202f", " ") == ceiling


def test_what_is_not_known_gives_no_share() -> None:
    assert share_of_ceiling({}, 1.0, {Limit.MEMORY: 1.0}) is None
    assert share_of_ceiling(SLOW, 1.0, {}) is None
    assert share_of_ceiling(SLOW, 0.0, {Limit.ARITHMETIC: 1.0}) is None
    amounts = {Limit.ARITHMETIC: 1e15, Limit.MEMORY: 1e9}
    half = share_of_ceiling({Limit.MEMORY: 1e9}, 1.0, amounts)
    assert half is not None
    assert half.limit is Limit.MEMORY


def result(device: str = "cuda:0", share: float = 0.1, **changes: Any) -> RunFinished:
    found = finished_run(512, device).result
    assert found is not None
    usual: dict[str, Any] = {
        "share_of_ceiling": share, "ceiling": "peak arithmetic, 1.13 TFLOP/s",
        "limit": Limit.ARITHMETIC, "median_s": 1e-3,
    }  # fmt: skip
    return changed(found, **(usual | changes))


def answer_text(found: RunFinished, device: Device | None = GT_1030) -> str:
    return is_this_normal(found, device).replace("\u202f", " ")


def test_a_share_without_a_fault_is_normal() -> None:
    assert answer_text(result(share=0.62)) == (
        "62 % of this card's peak arithmetic, 1.13 TFLOP/s: normal."
    )
    assert answer_text(result(share=0.62, throttled=True)).endswith("normal.")


def test_a_peak_that_was_measured_on_a_busy_cpu_proves_nothing_normal() -> None:
    text = answer_text(result("cpu", share=0.94, other_processes=True))
    assert text.startswith("94 % of this CPU's peak arithmetic, 1.13 TFLOP/s. Other programs")
    assert "normal" not in text
    # A card's peak is not measured.
    assert answer_text(result(share=0.94, other_processes=True)).endswith("normal.")


def test_more_than_memory_can_do_came_from_a_cache() -> None:
    text = answer_text(
        result("cpu", share=3.7, ceiling="memory bandwidth, 24.0 GB/s", limit=Limit.MEMORY)
    )
    assert text.startswith("Faster than this CPU's memory bandwidth, 24.0 GB/s: ")
    assert "370" not in text
    assert "cache" in text


def test_asking_alone_is_not_called_low() -> None:
    asking = msgspec.structs.replace(result("cpu", share=0.001), throughput_unit="calls/s")
    assert "low" not in answer_text(asking)
    assert "as expected" in answer_text(asking)
    assert not is_worth_a_line(asking)
    assert is_worth_a_line(result("cpu", share=0.001))


def test_more_than_the_arithmetic_can_do_is_not_believed() -> None:
    disturbed = result("cpu", share=58.31)
    assert answer_text(disturbed).startswith("Cannot compare with this CPU's peak arithmetic")
    assert "so something disturbed the peak's measurement" in answer_text(disturbed)
    assert "a reported clock is too low" in answer_text(result(share=1.2))
    for wrong in (disturbed, result(share=1.06)):
        assert not any(figure in answer_text(wrong) for figure in ("5831", "106"))
        assert (share_text(wrong), believed_share(wrong)) == ("", None)
    assert answer_text(result(share=1.04)).endswith("normal.")
    assert share_text(result(share=1.04)).startswith("104")


def test_pageable_memory_is_a_cause_where_the_link_decides() -> None:
    wide = msgspec.structs.replace(GT_1030, pcie_width_max=16, telemetry=Telemetry(pcie_width=16))
    link = {"ceiling": "PCIe link, 15.8 GB/s", "limit": Limit.LINK}
    assert "pinned memory is not" in answer_text(result(**link), wide)
    assert "no cause" in answer_text(result(**link, options={"memory": "pinned"}), wide)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"throttled": True}, "slowed itself down"),
        ({"power_capped": True}, "at its power limit, as most cards are under load"),
        ({"dtype": "float16", "share": 0.005}, "shows no cause"),
        ({"dtype": "bfloat16", "share": 0.02}, "shows no cause"),
        ({"other_processes": True}, "Other programs"),
        ({"dtype": "float64"}, "float64 with compute capability 6.1 runs at 1/32 of float32"),
        ({"median_s": 1e-5}, "mostly overhead"),
        (
            {"median_s": 1e-4, "parts_s": {"launch": 9e-5}},
            "The launch takes 90.0 µs of 100 µs",
        ),
        ({"ceiling": "PCIe link, 3.94 GB/s", "limit": Limit.LINK}, "only 4 PCIe lanes"),
        ({"transfers": True}, "only 4 PCIe lanes"),
        ({"parts_s": {"loading": 3.0, "computing": 1.0}}, "75 % of a call is loading, while"),
        ({"parts_s": {"loading": 1.0, "computing": 3.0}}, "shows no cause"),
        ({}, "shows no cause"),
    ],
)
def test_a_low_share_has_its_likely_cause(changes: dict[str, Any], cause: str) -> None:
    text = answer_text(result(**changes))
    assert ": low. " in text
    assert cause in text


def test_a_link_with_lanes_missing_is_reported_before_a_card_that_has_few() -> None:
    card = msgspec.structs.replace(GT_1030, pcie_width_max=16, telemetry=Telemetry(pcie_width=4))
    text = answer_text(result(ceiling="PCIe link, 15.8 GB/s", limit=Limit.LINK), card)
    assert "uses 4 of its 16 lanes: try another slot" in text
    whole = msgspec.structs.replace(card, telemetry=Telemetry(pcie_width=16))
    assert "lanes" not in answer_text(
        result(ceiling="PCIe link, 15.8 GB/s", limit=Limit.LINK), whole
    )


def card(name: str, capability: str, multiprocessors: int = 40, sm_mhz: float = 1500) -> Device:
    return Device(
        kind="cuda", name=f"NVIDIA {name}", compute_capability=capability,
        multiprocessors=multiprocessors, memory_bus_width_bits=256, sm_clock_max_mhz=sm_mhz,
        memory_clock_max_mhz=6000,
    )  # fmt: skip


def share_of(device: Device, dtype: str, tflops: float) -> RunFinished:
    """Return the result of a matrix product that reached a speed."""
    peaks = peaks_of(device, None)
    assert peaks is not None
    share = share_of_ceiling(card_ceilings(peaks, dtype), 1.0, {Limit.ARITHMETIC: tflops * 1e12})
    assert share is not None
    return result(
        share=share.share,
        ceiling=share.ceiling,
        limit=share.limit,
        dtype=dtype,
        device_name=device.name,
        median_s=1.0,
    )


GTX_1660_TI = card("GeForce GTX 1660 Ti", "7.5", 24, 1770)
P100 = card("Tesla P100-PCIE-16GB", "6.0", 56, 1328)
P40 = card("Tesla P40", "6.1", 30, 1531)
T4 = card("Tesla T4", "7.5", 40, 1590)
V100 = card("Tesla V100-SXM2-16GB", "7.0", 80, 1530)
CMP_170HX = card("CMP 170HX", "8.0", 70, 1410)
CMP_90HX = card("CMP 90HX", "8.6", 50, 1710)
H20 = card("H20", "9.0", 78, 1980)
L40 = card("L40", "8.9", 142, 2490)
RTX_3080_LAPTOP = card("GeForce RTX 3080 Laptop GPU", "8.6", 48, 2100)
RTX_2080_TI = card("GeForce RTX 2080 Ti", "7.5", 68, 1635)


@pytest.mark.parametrize(
    ("device", "dtype", "tflops", "reason"),
    [
        (GTX_1660_TI, "float16", 0.61, "Without tensor cores, float16 in PyTorch is slow"),
        (GTX_1660_TI, "bfloat16", 1.3, "which is emulated: use float32 here."),
        (P100, "float16", 8.6, "adds float16 products up in float32"),
        (P40, "float16", 0.18, "float16 with compute capability 6.1 runs at 1/64 of float32"),
        (P40, "bfloat16", 3.0, "has no arithmetic for bfloat16, which is emulated: use float32"),
        (GT_1030, "float16", 0.1, "use float32 here"),
        (card("GeForce GTX 970", "5.2"), "float16", 1.0, "has no arithmetic for float16"),
        (T4, "bfloat16", 2.2, "which is emulated: use float32 or float16 here."),
        (T4, "float16", 24.0, "power limit"),
        (RTX_3080_LAPTOP, "float32", 10.0, "power limit"),
        (CMP_90HX, "float32", 2.2, "mining card"),
        (CMP_170HX, "bfloat16", 0.39, "mining card"),
    ],
)
def test_what_is_usual_for_a_card_is_normal_and_has_its_reason(
    device: Device, dtype: str, tflops: float, reason: str
) -> None:
    found = share_of(device, dtype, tflops)
    assert found.reached.share is not None
    assert found.reached.share < 0.5
    text = answer_text(found, device)
    assert ": normal here. " in text
    assert reason in text
    assert "low" not in text.replace("slow", "").replace("below", "")


@pytest.mark.parametrize(
    ("device", "dtype", "tflops"),
    [
        (GTX_1660_TI, "float32", 4.4), (GTX_1660_TI, "bfloat16", 2.84), (P100, "float32", 8.0),
        (P40, "float32", 9.5), (P40, "float16", 8.0), (T4, "float32", 4.2), (V100, "float16", 92),
        (CMP_170HX, "float32", 0.39), (CMP_170HX, "float16", 6.2), (H20, "float16", 138),
        (H20, "bfloat16", 140), (H20, "float32", 36), (H20, "float64", 1.0),
        (L40, "bfloat16", 150), (RTX_2080_TI, "float16", 48),
    ],
)  # fmt: skip
def test_what_is_usual_for_a_card_is_close_to_its_ceiling(
    device: Device, dtype: str, tflops: float
) -> None:
    assert answer_text(share_of(device, dtype, tflops), device).endswith(": normal.")


@pytest.mark.parametrize(
    ("device", "dtype", "tflops"),
    [
        (GTX_1660_TI, "float32", 1.0), (GTX_1660_TI, "float16", 0.2), (P100, "float16", 2.0),
        (T4, "float16", 8.0), (V100, "float16", 20.0), (H20, "float16", 40),
        (RTX_2080_TI, "float16", 10.0),
    ],
)  # fmt: skip
def test_what_is_not_usual_for_a_card_stays_low(device: Device, dtype: str, tflops: float) -> None:
    assert ": low. " in answer_text(share_of(device, dtype, tflops), device)


def test_the_terminal_knows_a_card_by_pytorch_s_facts_or_by_its_name() -> None:
    found = share_of(GTX_1660_TI, "float16", 0.61)
    by_torch = TorchCard(
        torch_index=0, name=GTX_1660_TI.name, compute_capability="7.5", multiprocessors=24,
        sm_clock_max_mhz=1770,
    )  # fmt: skip
    assert ": normal here. Without tensor cores" in is_this_normal(found, by_torch)
    assert "mining card" in is_this_normal(share_of(CMP_90HX, "float32", 2.2))


def test_a_cpu_s_own_causes() -> None:
    short = result("cpu", median_s=5e-6)
    assert "mostly overhead" in answer_text(short, None)
    large = result(
        "cpu", ceiling="memory bandwidth, 24.0 GB/s", limit=Limit.MEMORY, bytes_per_call=1e9
    )
    assert "clears every page" in answer_text(large, None)
    small = result(
        "cpu", ceiling="memory bandwidth, 24.0 GB/s", limit=Limit.MEMORY, bytes_per_call=1e6
    )
    assert "no cause" in answer_text(small, None)


def test_the_peaks_of_every_card_are_the_published_ones() -> None:
    found = {
        one.name: card_peaks(
            one.compute_capability, one.multiprocessors, one.boost_mhz * 1e6, one.bus_bits,
            one.memory_mhz * 1e6, one.name,
        )
        for one in CARDS
    }  # fmt: skip
    other = {
        one.name: peaks
        for one in CARDS
        if (peaks := found[one.name]) is None
        or peaks.arithmetic_flops["float32"] != pytest.approx(one.tflops * 1e12, rel=0.005)
        or peaks.memory_bytes_per_s != pytest.approx(one.gb_per_s * 1e9, rel=0.01)
    }
    assert not other


# What float16 without tensor cores reaches of float32's published figure, measured with
# torch.matmul: see `_SLOW_FLOAT16`; 1/64 of the arithmetic with 6.1, and float32 sums elsewhere.
_FLOAT16_SHARES = {"7.5": 0.115, "6.1": 1 / 64, "6.0": 0.9, "5.3": 0.9, "6.2": 0.9}


def test_what_is_usual_for_a_published_card_is_never_low() -> None:
    wrong = [f"{one.name}: {text}" for one in CARDS for text in usual_that_is_not_normal(one)]
    assert not wrong, "\n".join(wrong)


def usual_that_is_not_normal(published: PublishedCard) -> Iterator[str]:
    """Return the answers about usual figures of a card that call them something else."""
    device = device_of(published)
    peaks = peaks_of(device, None)
    assert peaks is not None
    at_boost = published.boost_mhz / published.highest_mhz
    tensor = peaks.tensor_core_flops.get("float16")
    of_float32 = _FLOAT16_SHARES.get(published.compute_capability, 0.25)
    for share in (0.6, 0.8, 0.95):
        usual = {
            "float32": share * published.tflops,
            "float16": share * at_boost * tensor / 1e12
            if tensor is not None
            else (1 + share) / 2 * published.tflops * of_float32,
        }
        for dtype, tflops in usual.items():
            text = answer_text(share_of(device, dtype, tflops), device)
            if ": low" in text or "Cannot compare" in text:
                yield f"{dtype}: {text}"
        moved = share_of_ceiling(
            card_ceilings(peaks, "float32"), 1.0, {Limit.MEMORY: share * published.gb_per_s * 1e9}
        )
        assert moved is not None
        memory = result(share=moved.share, limit=moved.limit, ceiling=moved.ceiling)
        text = answer_text(memory, device)
        if not text.endswith(": normal."):
            yield f"memory: {text}"


def test_a_fifth_of_what_is_published_is_low() -> None:
    texts = {}
    for one in CARDS:
        device = device_of(one)
        texts[one.name] = answer_text(share_of(device, "float32", one.tflops / 5), device)
    assert not {name: text for name, text in texts.items() if ": low. " not in text}


def device_of(published: PublishedCard) -> Device:
    return Device(
        kind="cuda", name=f"NVIDIA {published.name}", multiprocessors=published.multiprocessors,
        compute_capability=published.compute_capability, sm_clock_max_mhz=published.highest_mhz,
        memory_bus_width_bits=published.bus_bits, memory_clock_max_mhz=published.memory_mhz,
    )  # fmt: skip
