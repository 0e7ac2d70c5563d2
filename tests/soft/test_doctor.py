"""The doctor on soft cards: a real PyTorch, a real NVML client, and the faults it has to name."""

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import psutil
import pytest

from gpu_studio.core.devices.access import PcProbed
from gpu_studio.engine.devices.probe_client import probe_pc
from tests.soft.conftest import MakePc
from tests.softcards.cards import SoftPc
from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060

Findings = list[dict[str, Any]]


def examine(pc: SoftPc, *options: str, **variables: str) -> tuple[Findings, int]:
    """What ``gpu-studio doctor --json`` finds on a soft PC, and its exit status."""
    done = subprocess.run(
        [sys.executable, "-m", "gpu_studio", "doctor", "--json", *options],
        env={**pc.env, **variables}, capture_output=True, encoding="utf-8", timeout=400,
        check=False,
    )  # fmt: skip
    assert done.stderr == ""
    findings: Findings = json.loads(done.stdout)["findings"]
    for finding in findings:
        assert set(finding) == {"code", "device_uuid", "sentence", "evidence", "action"}
    # Kernels of soft cards compute nothing, and the doctor sees it.
    return [finding for finding in findings if finding["code"] != "wrong_sum"], done.returncode


def codes(findings: Findings) -> list[str]:
    return [finding["code"] for finding in findings]


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Probe a soft PC from this process, which has no torch of its own to disturb."""

    def probe(pc: SoftPc, **options: Any) -> PcProbed:
        for name, value in pc.env.items():
            monkeypatch.setenv(name, value)
        return probe_pc(**options)

    return probe


@pytest.mark.cuda13
def test_a_gt_1030_under_cuda_13_is_told_the_build_that_has_its_code(soft_pc: MakePc) -> None:
    pc = soft_pc(GT_1030)
    findings, status = examine(pc)
    assert status == 1
    (finding,) = findings
    assert finding["code"] == "no_code_for_card"
    assert finding["device_uuid"] == pc.cards[0].uuid
    assert finding["sentence"].endswith("GT 1030 (6.1): install the cu126 build.")
    assert finding["action"].endswith("+cu126 --index-url https://download.pytorch.org/whl/cu126")
    assert "no kernel image is available" in finding["evidence"]


@pytest.mark.cuda12
def test_a_gt_1030_under_the_old_build_can_be_used(soft_pc: MakePc) -> None:
    findings, status = examine(soft_pc(GT_1030))
    assert (codes(findings), status) == (["ok"], 0)


@pytest.mark.cuda13
def test_of_two_cards_one_is_used_and_scripts_number_them_otherwise(soft_pc: MakePc) -> None:
    pc = soft_pc(GT_1030, RTX_3060)
    findings, status = examine(pc)
    assert (codes(findings), status) == (["no_code_for_card", "mixed_order", "ok"], 0)
    assert "cuda:0 is the RTX 3060" in findings[1]["sentence"]
    assert findings[2]["device_uuid"] == pc.cards[1].uuid
    assert "a real kernel ran on it" in findings[2]["evidence"]
    ordered, _ = examine(pc, "--no-kernel", CUDA_DEVICE_ORDER="PCI_BUS_ID")
    assert "mixed_order" not in codes(ordered)


@pytest.mark.cuda13
def test_without_a_kernel_no_card_is_touched(soft_pc: MakePc) -> None:
    pc = soft_pc(RTX_3060)
    pc.fault("launch", 700, sticky=True)
    findings, status = examine(pc, "--no-kernel")
    assert (codes(findings), status) == (["ok"], 0)
    findings, status = examine(pc)
    assert (codes(findings), status) == (["card_not_usable"], 1)
    assert findings[0]["device_uuid"] == pc.cards[0].uuid


@pytest.mark.cuda13
@pytest.mark.parametrize(
    ("fault", "options", "variables", "expected"),
    [
        (("nvmlInit_v2", 18), ["--no-kernel"], {}, "driver_library_mismatch"),
        (("cudaGetDeviceCount", 999), ["--no-kernel"], {}, "card_not_usable"),
        (("cudaGetDeviceCount", 803), ["--no-kernel"], {}, "driver_library_mismatch"),
        (("cudaGetDeviceCount", 804), [], {}, "card_not_usable"),
        (("launch", 46), [], {}, "device_busy"),
        (None, ["--no-kernel"], {"CUDA_VISIBLE_DEVICES": ""}, "hidden_by_environment"),
    ],
)
def test_a_fault_has_its_name(
    fault: Any, options: list[str], variables: dict[str, str], expected: str, soft_pc: MakePc
) -> None:
    pc = soft_pc(RTX_3060)
    if fault:
        pc.fault(*fault)
    findings, status = examine(pc, *options, **variables)
    assert expected in codes(findings)
    assert not any("cudaGetDeviceCount" in finding["sentence"] for finding in findings)
    assert status == (0 if "ok" in codes(findings) else 1)


@pytest.mark.cuda13
def test_a_lost_card_leaves_the_other_usable(soft_pc: MakePc) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    pc.set(0, lost=1)
    findings, status = examine(pc, "--no-kernel")
    assert (codes(findings), status) == (["card_lost", "ok"], 0)


@pytest.mark.cuda13
def test_an_old_driver_is_reported_with_the_one_that_is_needed(soft_pc: MakePc) -> None:
    pc = soft_pc(RTX_3060, driver_version="470.82.01", cuda_driver=11040)
    findings, status = examine(pc, "--no-kernel")
    assert (codes(findings), status) == (["driver_too_old"], 1)
    assert "580" in findings[0]["sentence"]


@pytest.mark.cuda13
def test_a_card_that_is_not_what_it_says_and_a_slow_slot_are_reported(soft_pc: MakePc) -> None:
    pc = soft_pc(replace(RTX_3060, sms=20, sensors={**RTX_3060.sensors, "pcie_gen": 1}))
    findings, status = examine(pc)
    assert (codes(findings), status) == (["not_as_named", "slow_link", "ok"], 0)
    assert "the card says 20, its name (RTX 3060) says 28" in findings[0]["sentence"]
    assert "gen 1 × 16" in findings[1]["sentence"]


@pytest.mark.cuda13
def test_a_card_that_holds_the_probe_costs_its_own_verdict_alone(
    soft_pc: MakePc, probed: Any
) -> None:
    pc = soft_pc(RTX_3060)
    pc.fault("launch", hang=True)
    found = probed(pc, card_patience_s=2.0)
    assert [card.outcome for card in found.cards] == ["silent"]
    assert "no answer within 2 s" in found.cards[0].message


@pytest.mark.cuda13
def test_a_card_that_breaks_the_probe_leaves_the_next_to_another(
    soft_pc: MakePc, probed: Any
) -> None:
    pc = soft_pc(RTX_3060, GTX_1650)
    pc.fault("launch", 719, sticky=True)
    found = probed(pc)
    assert [card.outcome for card in found.cards] == ["failed", "failed"]
    assert [card.card.name for card in found.cards] == [card.name for card in pc.cards]
    assert found.cards[0].error_code == 719


@pytest.mark.cuda13
def test_the_probe_tells_cards_apart_and_leaves_nothing_behind(
    soft_pc: MakePc, probed: Any
) -> None:
    pc = soft_pc(GT_1030, GTX_1650)
    found = probed(pc)
    by_name = {card.card.name: card for card in found.cards}
    assert by_name[GT_1030.name].outcome == "no_code"
    assert by_name[GTX_1650.name].outcome == "ran"
    assert by_name[GTX_1650.name].is_sum_wrong, "soft cards compute nothing"
    assert by_name[GTX_1650.name].card.uuid == pc.cards[1].uuid
    assert [use.pid for use in pc.processes() if psutil.pid_exists(use.pid)] == []
