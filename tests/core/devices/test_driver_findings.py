"""What is found of the driver, by the plain facts that lead to it."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.devices.devices import CardReading, Driver, Reading
from gpu_studio.core.devices.finding import is_usable
from gpu_studio.core.devices.findings import find
from gpu_studio.core.telemetry import Telemetry
from tests.core.devices.doctor_facts import (
    CPU_ENGINE,
    ENGINE,
    GT_1030,
    NOT_RUNNING,
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


def test_a_driver_that_never_answered_explains_everything():
    silent = Driver(version="580.95.05", error="It does not answer.", is_silent=True)
    findings = examined(pc(on_the_bus(GT_1030, "silent"), driver=silent), None)
    assert codes(findings) == ["driver_not_answering"]
    assert findings[0].command == "sudo reboot"


def test_one_silent_card_of_two_is_named_and_the_other_is_used():
    silent = CardReading(uuid="GPU-aaaa", telemetry=Telemetry(), error="?", error_code="silent")
    reading = Reading(taken_at_s=1.0, cpu=Telemetry(), cards=(silent,))
    findings = examined(pc(GT_1030, RTX_3060), readings=[reading])
    assert codes(findings) == ["driver_not_answering", "mixed_order", "ok"]
    assert [finding.device_uuid for finding in findings] == ["GPU-aaaa", None, "GPU-bbbb"]
    by_kernel = examined(pc(RTX_3060), probe=probe(tried(RTX_3060, "silent", message="no answer")))
    assert codes(by_kernel) == ["driver_not_answering"]


def test_two_halves_of_a_driver_are_reported_with_their_versions():
    driver = Driver(
        version="570.86.15",
        library_version="580.95.05",
        error="Restart the PC.",
        error_code="driver_updated",
    )
    finding = one("driver_library_mismatch", examined(pc(driver=driver)))
    assert "kernel module 570.86.15, library 580.95.05" in finding.evidence
    assert finding.command == "sudo reboot"


def test_cuda_that_meets_another_driver_says_so_and_no_other_step():
    reason = "The driver was updated. Restart the PC."
    engine = changed(ENGINE, cuda_available=False, cuda_reason=reason, driver_updated=True)
    driver = Driver(version="570.86.15", library_version="580.95.05")
    for findings in (
        examined(pc(RTX_3060, driver=driver), engine),
        examined(pc(RTX_3060, driver=driver), probe=probe(error=reason, driver_updated=True)),
    ):
        finding = one("driver_library_mismatch", findings)
        assert finding.sentence == reason
        assert "CUDA error 803 or 804" in finding.evidence
        assert "library 580.95.05" in finding.evidence
        assert finding.command == "sudo reboot"
        assert "cuda_init_failed" not in codes(findings)


def test_a_driver_that_is_updated_while_the_sensors_are_read_is_reported():
    """Not as blanks in the place of every sensor."""
    mute = CardReading(
        uuid="GPU-bbbb",
        telemetry=Telemetry(),
        error="The NVIDIA driver was updated. Restart the PC.",
        error_code="driver_updated",
    )
    reading = Reading(taken_at_s=1.0, cpu=Telemetry(), cards=(mute,))
    finding = one("driver_library_mismatch", examined(pc(RTX_3060), readings=[reading]))
    assert finding.sentence == mute.error
    assert finding.command == "sudo reboot"
    on_start = examined(pc(on_the_bus(RTX_3060, "driver_updated")))
    assert codes(on_start) == ["driver_library_mismatch"]


def test_a_driver_that_is_replaced_on_the_disk_works_on_and_is_reported():
    findings = examined(pc(RTX_3060, driver=Driver(version="580.95.05", was_updated=True)))
    assert codes(findings) == ["driver_library_mismatch", "ok"]
    assert "Restart the PC before you start another" in findings[0].sentence


def test_the_instances_of_a_divided_card_are_named():
    divided = changed(RTX_3060, mig_enabled=True, mig_instances=("MIG 1g.5gb", "MIG 2g.10gb"))
    findings = examined(pc(divided))
    finding = one("mig_instances", findings)
    assert "MIG 1g.5gb and MIG 2g.10gb" in finding.sentence
    assert finding.command == "sudo nvidia-smi -i 1 -mig 0"
    empty = one("mig_instances", examined(pc(changed(RTX_3060, mig_enabled=True))))
    assert "without an instance" in empty.sentence
    assert "mig_instances" not in codes(examined(pc(changed(RTX_3060, mig_enabled=False))))


@pytest.mark.parametrize(
    ("distribution", "action"),
    [("linuxmint ubuntu debian", "sudo ubuntu-drivers install"),
     ("debian", "sudo apt install nvidia-driver"),
     ("arch", "https://www.nvidia.com/en-us/drivers/unix/")],
)  # fmt: skip
def test_a_missing_driver_is_installed_as_the_system_does_it(distribution, action):
    driver = Driver(error="No NVIDIA driver is installed.", error_code="not_installed")
    card = on_the_bus(GT_1030, "no_driver", kernel_driver="nouveau")
    finding = one("no_driver", examined(pc(card, driver=driver, distribution=distribution)))
    assert finding.command == action
    assert "branch 580, the last for Pascal cards" in finding.sentence
    assert "driven by nouveau" in finding.evidence


def test_a_card_that_another_driver_holds_is_no_dropped_one():
    card = on_the_bus(RTX_3060, "not_served", kernel_driver="vfio-pci")
    findings = examined(pc(GT_1030, card))
    assert codes(findings) == ["no_driver", "ok"]
    assert "vfio-pci" in findings[0].evidence


def test_a_dropped_card_alone_is_known_by_the_library_s_version():
    driver = Driver(library_version="595.71.05", error=NOT_RUNNING, error_code="not_running")
    engine = msgspec.structs.replace(ENGINE, cuda_available=False)
    findings = examined(pc(on_the_bus(GT_1030, "no_driver"), driver=driver), engine)
    assert codes(findings) == ["driver_dropped_card"]
    assert "Driver 595 no longer supports your GT 1030 (Pascal)" in findings[0].sentence


@pytest.mark.parametrize(
    ("device_id", "version", "system", "needed"),
    [
        (0x2B85, "560.94", "Windows", "572.16"),  # RTX 5090
        (0x2B85, "560.35.03", "Linux", "570.86.16"),
        (0x2882, "472.12", "Windows", "522.25"),  # RTX 4060
        (0x2206, "450.80.02", "Linux", "455.23.04"),  # RTX 3080
    ],
)
def test_a_driver_older_than_the_card_is_named_with_the_first_that_serves_it(
    device_id, version, system, needed
):
    card = on_the_bus(changed(RTX_3060, pci_device_id=device_id), "not_served")
    found = find(pc(card, driver=Driver(version=version)), CPU_ENGINE, system=system)
    finding = one("driver_older_than_card", found)
    assert f"needs driver {needed} or newer" in finding.sentence
    assert not any("virtual machine" in each.sentence for each in found)


def test_a_driver_of_the_last_branch_has_dropped_nothing():
    for version in ("580.95.05", "582.28"):  # Windows gives later ones of a branch higher numbers
        driver = Driver(library_version=version, error=NOT_RUNNING, error_code="not_running")
        findings = examined(pc(on_the_bus(GT_1030, "no_driver"), driver=driver))
        assert codes(findings) == ["no_driver"]
        assert findings[0].command == "sudo modprobe nvidia"


def test_the_limits_of_wsl_are_reported_beside_what_works():
    findings = examined(pc(RTX_3060, is_wsl=True))
    assert codes(findings) == ["wsl_limits", "ok"]
    assert is_usable(findings)
    nothing = examined(pc(driver=Driver(error="None.", error_code="not_installed"), is_wsl=True))
    assert "install its driver in Windows" in one("no_nvidia_card", nothing).sentence
    assert one("no_nvidia_card", nothing).command == "https://www.nvidia.com/drivers"


@pytest.mark.parametrize(
    ("others", "facts", "words", "action"),
    [
        (("Microsoft Basic Display",), {}, "PyTorch cannot use it", "bench matmul --device cpu"),
        ((), {}, "runs on the CPU", "bench matmul --device cpu"),
        ((), {"system": "Darwin", "machine": "arm64"}, "mps", "torch.backends.mps"),
    ],
)
def test_who_has_no_nvidia_card_is_told_what_there_is_and_a_next_step(others, facts, words, action):
    inventory = pc(driver=Driver(error="None.", error_code="not_installed"), other_gpus=others)
    finding = one("no_nvidia_card", examined(inventory, CPU_ENGINE, **facts))
    assert words in finding.sentence
    assert ("not tested by us" in finding.sentence) is ("system" in facts)
    assert all(name in finding.sentence for name in others)
    assert action in finding.command


def test_a_new_card_with_a_driver_of_cuda_12_has_a_build_besides_a_new_driver():
    card = changed(RTX_3060, name="NVIDIA GeForce RTX 5090", compute_capability="12.0",
                   pci_device_id=None)  # fmt: skip
    engine = msgspec.structs.replace(
        ENGINE, torch_version="2.13.0+cu130", cuda_build="13.0", cuda_available=False,
        arch_list=("sm_75", "sm_120"),
    )  # fmt: skip
    found = examined(pc(card, driver=Driver(version="570.86.10")), engine)
    assert "or install PyTorch's cu129 build" in one("driver_too_old", found).sentence
    old = examined(pc(card, driver=Driver(version="520.1")), engine)
    assert "cu129" not in one("driver_too_old", old).sentence


def test_only_a_driver_that_does_not_run_is_to_be_started():
    steps = {}
    for code in ("not_running", "another"):
        driver = Driver(library_version="580.95", error="It gave an error.", error_code=code)
        card = on_the_bus(GT_1030, "no_driver")
        (finding, *_) = examined(pc(card, driver=driver), system="Windows")
        steps[code] = finding.sentence
    assert "Start the driver" in steps["not_running"]
    assert "Start the driver" not in steps["another"]
    assert "Restart the PC" in steps["another"]
