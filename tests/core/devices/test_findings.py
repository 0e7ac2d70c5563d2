"""What the doctor says of a whole PC; doctor_situations.txt has the cards, drivers and wheels."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.devices import pc_facts
from gpu_studio.core.devices.devices import ASLEEP, Device, Driver
from gpu_studio.core.devices.findings import find
from gpu_studio.core.program_form import Program, ProgramForm
from gpu_studio.core.resources import MissingResourceError
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
)

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


@pytest.mark.parametrize("system", ["Linux", "Windows"])
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
        (pc(RTX_3060), FAILED, ["cuda_init_failed"]),
        # A card that cannot be read.
        (pc(on_the_bus(RTX_3060, "?"), GT_1030), ENGINE, ["card_unreadable", "ok"]),
        # PyTorch is not known yet.
        (pc(RTX_3060), None, []),
        (pc(driver=ABSENT), None, ["no_nvidia_card"]),
        (pc(UNREADABLE, driver=ABSENT), None, ["no_driver"]),
    ],
)
def test_every_situation_has_its_codes_worst_first(inventory, described, expected, system):
    assert codes(examined(inventory, described, system=system)) == expected


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


def test_windows_calls_its_machine_by_another_name():
    cu130 = engine(torch_version="2.13.0+cu130", cuda_build="13.0", arch_list=())
    (finding,) = examined(pc(GT_1030), cu130, system="Windows", machine="AMD64")
    assert finding.code == "no_code_for_card"
    assert "cu126" in finding.sentence


def test_a_cuda_that_is_not_in_the_table_is_judged_by_its_own_list():
    other = engine(torch_version="2.7.1+cu128", cuda_build="12.8", arch_list=("sm_75", "sm_80"))
    assert codes(examined(pc(GT_1030), other)) == ["no_code_for_card"]
    assert codes(examined(pc(RTX_3060), other)) == ["ok"]
    unlisted = msgspec.structs.replace(other, arch_list=())
    assert codes(examined(pc(GT_1030), unlisted)) == ["no_code_for_card"]
    unknown = engine(torch_version="3.1.0+cu150", cuda_build="15.0", arch_list=())
    assert codes(examined(pc(GT_1030), unknown)) == ["ok"]


def test_a_hidden_card_is_shown_again_by_the_system_s_command():
    hidden = engine(visible_devices="", cuda_available=False)
    for system, command in (("Linux", "unset"), ("Windows", "set")):
        (finding,) = examined(pc(RTX_3060), hidden, system=system)
        assert finding.command.split()[0] == command
        assert finding.device_uuid == RTX_3060.uuid


def test_the_reason_of_pytorch_is_passed_on():
    assert "After a sleep" in one("cuda_init_failed", examined(pc(RTX_3060), FAILED)).sentence


def test_without_the_table_there_are_findings_without_commands(monkeypatch):
    def missing():
        raise MissingResourceError("wheels.json", "is missing")

    monkeypatch.setattr(pc_facts, "load_table", missing)
    (finding,) = examined(pc(RTX_3060), CPU_ENGINE)
    assert (finding.code, finding.command) == ("build_without_cuda", "")
    assert codes(examined(pc(RTX_3060))) == ["ok"]


def test_a_driver_that_hides_its_version_is_not_called_old():
    (finding,) = examined(pc(RTX_3060, driver=Driver()), CPU_ENGINE)
    assert (finding.code, finding.command) == ("build_without_cuda", "")


def test_a_sleeping_card_keeps_its_number_for_the_others():
    asleep = changed(on_the_bus(GT_1030, "asleep"), unreadable=ASLEEP)
    evidence = [f.evidence for f in examined(pc(asleep, RTX_3060)) if f.code == "ok"]
    assert any(text.endswith("it is cuda:1") for text in evidence)
