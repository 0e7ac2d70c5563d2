"""What is found of PyTorch, by plain facts; doctor_situations.txt has the wheels."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.devices import findings as rules
from gpu_studio.core.devices.devices import (
    ASLEEP,
    Driver,
)
from gpu_studio.core.devices.finding import SEVERITIES, Finding, findings_value, worst_first
from gpu_studio.core.devices.published_builds import last_build
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.wheel_table import load_table
from tests.core.devices.doctor_facts import (
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
    tried,
)


def test_a_kernel_judges_before_the_lists_do():
    no_code = examined(pc(RTX_3060), probe=probe(tried(RTX_3060, "no_code", message="no image")))
    assert codes(no_code) == ["no_code_for_card"]
    assert "a real kernel failed: no image" in no_code[0].evidence
    listed_not = msgspec.structs.replace(ENGINE, arch_list=("sm_90",))
    assert codes(examined(pc(RTX_3060), listed_not)) == ["no_code_for_card"]
    assert codes(examined(pc(RTX_3060), listed_not, probe=probe(tried(RTX_3060)))) == ["ok"]


def test_the_evidence_says_code_only_if_the_list_has_it():
    old = changed(GT_1030, compute_capability="5.2")
    none = msgspec.structs.replace(ENGINE, arch_list=("sm_75", "sm_80"))
    evidence = one("ok", examined(pc(old), none, probe=probe(tried(old)))).evidence
    assert "has code" not in evidence
    assert "lists no code for it (5.2), but a real kernel ran on it" in evidence
    assert "has code for it (5.2); a real kernel ran on it" in (
        one("ok", examined(pc(old), probe=probe(tried(old)))).evidence
    )


@pytest.mark.parametrize("capability", ["5.3", "6.2", "7.2", "8.7"])
def test_a_jetson_is_sent_to_nvidias_own_builds(capability):
    orin = changed(RTX_3060, name="Orin", compute_capability=capability, pci_device_id=None)
    engine = msgspec.structs.replace(ENGINE, arch_list=("sm_80", "sm_90"))
    finding = one("no_code_for_card", examined(pc(orin), engine, machine="aarch64"))
    assert "NVIDIA itself publishes PyTorch for each Jetson (not tested by us)" in finding.sentence
    assert "jetson" in finding.command


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
    assert one("cuda_init_failed", findings).command == action


def test_a_process_that_cannot_start_cuda_is_told_where_the_engine_could():
    findings = examined(pc(RTX_3060), probe=probe(error="CUDA could not start: unknown error."))
    assert "a new process could not start it" in one("cuda_init_failed", findings).evidence


def test_a_build_for_one_card_that_another_needs_is_not_taken_from_it():
    newest = changed(
        RTX_3060, name="NVIDIA GeForce RTX 5090", compute_capability="12.0", multiprocessors=170,
        memory_bus_width_bits=512, pci_device_id=0x2B85,
    )  # fmt: skip
    cu130 = msgspec.structs.replace(
        ENGINE, torch_version="2.13.0+cu130", cuda_build="13.0", arch_list=("sm_75", "sm_120")
    )
    finding = one("no_code_for_card", examined(pc(GT_1030, newest), cu130))
    assert "none for your RTX 5090" in finding.evidence
    assert "separate environment" in finding.sentence
    assert "+cu126" in finding.command


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


def test_a_table_of_pytorch_s_that_says_otherwise_is_reported():
    without_maxwell = {"12.6": ("6.0", "7.0", "7.5", "8.0", "8.6", "9.0")}
    engine = msgspec.structs.replace(ENGINE, own_table=without_maxwell)
    finding = one("tables_differ", examined(pc(RTX_3060), engine))
    assert "only this program's table says that cu126 supports 5.0" in finding.sentence
    other = msgspec.structs.replace(engine, torch_version="2.14.0+cu126")
    assert "tables_differ" not in codes(examined(pc(RTX_3060), other))
    alike = {"12.6": ("5.0", "6.0", "6.1", "7.0", "7.5", "8.0", "8.6", "9.0"), "12.9": ("7.5",)}
    same = msgspec.structs.replace(ENGINE, own_table=alike)
    assert codes(examined(pc(RTX_3060), same)) == ["ok"]


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
    # NVIDIA's build and the others' each have a rule for what works.
    names = [rule.__name__.removesuffix("_by_maker") for rule in rules._RULES]
    assert list(dict.fromkeys(names)) == list(SEVERITIES)


def test_the_last_build_is_that_of_the_newest_pytorch():
    table = load_table()
    assert last_build(table, (3, 5)) is None
    for capability, tag, torch in (((3, 7), "cu118", "2.7"), ((7, 0), "cu126", "2.14")):
        build = last_build(table, capability)
        assert (build.tag, build.torch[1]) == (tag, torch)
