"""A card's readings and facts for a check."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.devices.devices import Driver
from gpu_studio.hardware.card_reader import CardUnreadableError
from gpu_studio.hardware.nvidia.nvidia import read_checked_device, read_telemetry, read_vitals
from gpu_studio.hardware.nvidia.nvml import Nvml, NvmlCard
from tests.hardware.fake_nvml import GT_1030, GT_1030_UUID, FakeNvml, NVMLError

if TYPE_CHECKING:
    from gpu_studio.core.telemetry import Telemetry

DRIVER = Driver(version="580.95.05")


def card(**answers: Any) -> Any:
    spelled = {tuple(key.split("/")) if "/" in key else key: value
               for key, value in answers.items()}  # fmt: skip
    return Nvml(FakeNvml({**GT_1030, **spelled})).card_with(GT_1030_UUID)


def vitals_of(one: NvmlCard) -> Telemetry:
    return read_vitals(one, read_telemetry(one))


def test_a_geforce_reports_no_errors_of_its_memory() -> None:
    vitals = vitals_of(card())
    assert (vitals.temperature_c, vitals.sm_clock_mhz, vitals.fan_percent) == (26.0, 139.0, 35.0)
    assert (vitals.ecc_corrected, vitals.ecc_uncorrected, vitals.remapped_rows) == (None,) * 3
    assert vitals.has_pending_remap is None
    assert vitals.power_w is None


def test_the_counters_of_link_and_memory_are_read() -> None:
    answers = {
        "PcieReplayCounter": 3, ("TotalEccErrors", 0, 0): 5, ("TotalEccErrors", 1, 0): 1,
        "RemappedRows": (2, 1, 1, 0),
    }  # fmt: skip
    one = Nvml(FakeNvml({**GT_1030, **answers})).card_with(GT_1030_UUID)
    vitals = vitals_of(one)
    assert vitals.pcie_replays == 3
    assert (vitals.ecc_corrected, vitals.ecc_uncorrected) == (5, 1)
    assert (vitals.remapped_rows, vitals.has_pending_remap) == (3, True)


def test_a_lost_card_is_not_read() -> None:
    with pytest.raises(CardUnreadableError):
        vitals_of(card(UtilizationRates=NVMLError(15), MemoryInfo=NVMLError(15)))


def test_the_facts_name_no_copy_of_the_card() -> None:
    slot = SimpleNamespace(busId=b"00000000:01:00.0\0", pciDeviceId=0x1D0110DE)
    answers = {
        "PciInfo": slot, ("TemperatureThreshold", 1): 94,
        ("DefaultApplicationsClock", 1): 1227, "Serial": "0123456789",
    }  # fmt: skip
    one = Nvml(FakeNvml({**GT_1030, **answers})).card_with(GT_1030_UUID)
    facts = read_checked_device(one, "cuda:0", DRIVER)
    assert (facts.address, facts.name) == ("cuda:0", "NVIDIA GeForce GT 1030")
    assert facts.silicon == "GP108 (1d01)"
    assert facts.contradiction == ""
    assert (facts.vbios, facts.driver_version) == ("86.08.0C.00.1A", "580.95.05")
    assert (facts.slowdown_c, facts.base_clock_mhz, facts.clock_max_mhz) == (94.0, 1227.0, 1911.0)
    assert "no ECC" in facts.ecc
    everything = repr(facts)
    assert GT_1030_UUID not in everything
    assert "0123456789" not in everything


def test_a_card_that_bears_another_cards_name_says_so() -> None:
    slot = SimpleNamespace(busId=b"00000000:01:00.0\0", pciDeviceId=0x0DC410DE)
    one = Nvml(FakeNvml({**GT_1030, "PciInfo": slot, "MemoryBusWidth": 128})).card_with(
        GT_1030_UUID
    )
    facts = read_checked_device(one, "cuda:0", None)
    assert "128" in facts.contradiction
    assert facts.driver_version is None


@pytest.mark.parametrize(("mode", "words"), [((1, 1), "is on"), ((0, 0), "is off")])
def test_ecc_is_reported_where_there_is_some(mode: tuple[int, int], words: str) -> None:
    assert words in read_checked_device(card(EccMode=mode), "cuda:0", DRIVER).ecc


@pytest.mark.parametrize(
    ("rows", "words"),
    [((2, 1, 0, 0), "3 rows"), ((0, 0, 0, 0), "0 rows"), ((0, 1, 1, 0), "restart")],
)
def test_replaced_rows_are_reported_where_the_card_counts_them(
    rows: tuple[int, ...], words: str
) -> None:
    assert words in read_checked_device(card(RemappedRows=rows), "cuda:0", DRIVER).ecc


def test_a_card_without_replaced_rows_says_that_it_reports_none() -> None:
    assert "no replaced rows" in read_checked_device(card(), "cuda:0", DRIVER).ecc


def test_a_geforces_base_clock_is_that_of_its_name() -> None:
    """No GeForce reports it: the table has the lowest of the versions of a name."""
    facts = read_checked_device(card(), "cuda:0", None)
    assert facts.base_clock_mhz == 1152.0
