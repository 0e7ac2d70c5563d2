import msgspec
import pytest

from gpu_studio.core.devices.devices import (
    Device,
    Driver,
)
from gpu_studio.core.devices.finding import KINDS, Finding, findings_value, worst_first
from gpu_studio.core.devices.findings import find
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.program_form import Program, ProgramForm
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
    tried,
)


def test_a_kernel_judges_before_the_lists_do():
    no_code = examined(pc(RTX_3060), probe=probe(tried(RTX_3060, "no_code", message="no image")))
    assert codes(no_code) == ["no_code_for_card"]
    assert "a real kernel failed: no image" in no_code[0].detail
    listed_not = msgspec.structs.replace(ENGINE, arch_list=("sm_90",))
    assert codes(examined(pc(RTX_3060), listed_not)) == ["no_code_for_card"]
    assert codes(examined(pc(RTX_3060), listed_not, probe=probe(tried(RTX_3060)))) == ["ok"]


def test_a_jetson_is_sent_to_nvidias_own_builds():
    orin = changed(RTX_3060, name="Orin", compute_capability="8.7", pci_device_id=None)
    engine = msgspec.structs.replace(ENGINE, arch_list=("sm_80", "sm_90"))
    finding = one("no_code_for_card", examined(pc(orin), engine, machine="aarch64"))
    assert "NVIDIA itself publishes PyTorch for each Jetson (not tested by us)" in finding.sentence
    assert "jetson" in finding.command


@pytest.mark.parametrize("outcome", ["failed", "died", "out_of_memory"])
def test_a_kernel_that_does_not_run_is_no_ok(outcome):
    findings = examined(pc(RTX_3060), probe=probe(tried(RTX_3060, outcome, message="It failed")))
    assert codes(findings) == ["card_not_usable"]
    assert findings[0].device_uuid == "GPU-bbbb"


def test_a_build_for_one_card_that_another_needs_is_not_taken_from_it():
    newest = changed(
        RTX_3060, name="NVIDIA GeForce RTX 5090", compute_capability="12.0", multiprocessors=170,
        memory_bus_width_bits=512, pci_device_id=0x2B85,
    )  # fmt: skip
    cu130 = msgspec.structs.replace(
        ENGINE, torch_version="2.13.0+cu130", cuda_build="13.0", arch_list=("sm_75", "sm_120")
    )
    finding = one("no_code_for_card", examined(pc(GT_1030, newest), cu130))
    assert "none for your RTX 5090" in finding.detail
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


def test_findings_come_worst_first_and_are_plain_values():
    mixed = [Finding(code=code, sentence="It is.") for code in reversed(KINDS)]
    assert codes(worst_first(mixed)) == list(KINDS)
    (value,) = findings_value([Finding(code="ok", sentence="It works.")])["findings"]
    assert value == {
        "code": "ok", "device_uuid": None, "sentence": "It works.", "evidence": "", "action": "",
    }  # fmt: skip


ABSENT, STOPPED, UPDATED, UNKNOWN = (
    Driver(error=error, error_code=code, evidence="NVML error 9")
    for error, code in (
        ("No NVIDIA driver is installed.", "not_installed"),
        ("It is not running.", "not_running"),
        ("Restart the PC.", "driver_updated"),
        ("An unknown error.", "unknown"),
    )
)
UNREADABLE = on_the_bus(GT_1030, "no_driver")
TWO = (changed(RTX_3060, driver_index=0), changed(GT_1030, driver_index=1, pci_bus_id="1:0:0.0"))


def engine(**facts):
    return msgspec.structs.replace(ENGINE, **facts)


FAILED = engine(cuda_available=False, arch_list=(), cuda_reason="After a sleep this is common.")


@pytest.mark.parametrize(
    ("inventory", "described", "expected"),
    [
        # No driver, a broken one, no card.
        (pc(UNREADABLE, driver=ABSENT), CPU_ENGINE, ["no_driver"]),
        (pc(UNREADABLE, driver=ABSENT), FAILED, ["no_driver"]),
        (pc(UNREADABLE, driver=STOPPED), CPU_ENGINE, ["no_driver"]),
        (pc(UNREADABLE, driver=UPDATED), FAILED, ["driver_library_mismatch"]),
        (pc(driver=STOPPED), CPU_ENGINE, ["no_nvidia_card"]),
        (pc(driver=UNKNOWN), CPU_ENGINE, ["no_driver"]),
        (pc(driver=UPDATED), CPU_ENGINE, ["driver_library_mismatch"]),
        (pc(driver=ABSENT), FAILED, ["no_nvidia_card"]),
        # Hidden cards, and a CUDA that does not start.
        (pc(RTX_3060), engine(visible_devices="", cuda_available=False), ["hidden_by_environment"]),
        (pc(*TWO), engine(visible_devices="1"), ["hidden_by_environment", "ok"]),
        (pc(*TWO), engine(visible_devices="0,1"), ["ok", "ok"]),
        (pc(RTX_3060), FAILED, ["card_not_usable"]),
        # A card that cannot be read.
        (pc(on_the_bus(RTX_3060, "?"), GT_1030), ENGINE, ["card_unreadable", "ok"]),
        # PyTorch is not known yet.
        (pc(RTX_3060), None, []),
        (pc(driver=ABSENT), None, ["no_nvidia_card"]),
        (pc(UNREADABLE, driver=ABSENT), None, ["no_driver"]),
    ],
)
def test_every_situation_has_its_codes_worst_first(inventory, described, expected):
    assert codes(examined(inventory, described)) == expected


def test_an_installed_program_is_reported_its_own_command_and_never_pip():
    installed = Program(ProgramForm.INSTALLED, "gpu-studio")
    (finding,) = find(pc(GT_1030), CPU_ENGINE, program=installed)
    assert finding.command == "gpu-studio engine install cu126"
    amd = Device(kind="cuda", maker="AMD", name="AMD Radeon RX 7600", pci_device_id=0x7480)
    (other,) = find(pc(amd, driver=ABSENT), CPU_ENGINE, program=installed)
    assert other.command == "gpu-studio engine install rocm-gfx1102"
    vega = Device(kind="cuda", maker="AMD", name="AMD Radeon VII", pci_device_id=0x66AF)
    (old,) = find(pc(vega, driver=ABSENT), CPU_ENGINE, system="Linux", program=installed)
    assert old.command.startswith("https://")


def test_a_hidden_card_is_shown_again_by_the_system_s_command():
    hidden = engine(visible_devices="", cuda_available=False)
    for system, command in (("Linux", "unset"), ("Windows", "set")):
        (finding,) = examined(pc(RTX_3060), hidden, system=system)
        assert finding.command.split()[0] == command
        assert finding.device_uuid == RTX_3060.uuid
