import msgspec
import pytest

from gpu_studio.core.devices.devices import Driver
from gpu_studio.core.devices.pc_facts import recommended_build
from gpu_studio.core.messages.engine_messages import EngineDescribed
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
)

GTX_1060 = changed(
    GT_1030, name="NVIDIA GeForce GTX 1060 6GB", pci_device_id=0x1C03, multiprocessors=10,
    memory_bus_width_bits=192,
)  # fmt: skip
GT_710 = changed(
    GT_1030, name="NVIDIA GeForce GT 710", architecture="Kepler", compute_capability="3.5",
    pci_device_id=0x128B, multiprocessors=1, pci_bus_id="00000000:03:00.0",
)  # fmt: skip
STOPPED = Driver(library_version="580.95.05", error=NOT_RUNNING, error_code="not_running")
ABSENT = Driver(error="No NVIDIA driver is installed.", error_code="not_installed")
NO_CUDA = msgspec.structs.replace(ENGINE, cuda_available=False)


def test_a_driver_is_chosen_for_the_card_that_pytorch_can_use():
    """The last driver of the old card would be too old for the other one."""
    old, new = (on_the_bus(card, "no_driver") for card in (GT_710, RTX_3060))
    finding = one("no_driver", examined(pc(old, new, driver=ABSENT), NO_CUDA))
    assert "470" not in finding.sentence
    pascal = on_the_bus(GTX_1060, "no_driver")
    both = one("no_driver", examined(pc(pascal, new, driver=ABSENT), NO_CUDA))
    assert "branch 580, the last for Pascal cards" in both.sentence
    windows = one("no_driver", examined(pc(pascal, driver=ABSENT), NO_CUDA, system="Windows"))
    assert "driver 581 or 582, the last for Pascal cards" in windows.sentence
    assert windows.command == "https://www.nvidia.com/drivers"


def test_wsl_restarts_windows_and_starts_no_linux_driver():
    lost = changed(RTX_3060, unreadable="It was lost.", unreadable_code="lost")
    assert one("card_lost", examined(pc(lost, is_wsl=True))).command == "shutdown.exe /r"
    card = on_the_bus(RTX_3060, "no_driver")
    finding = one("no_driver", examined(pc(card, driver=STOPPED, is_wsl=True), NO_CUDA))
    assert finding.command == "shutdown.exe /r"
    assert "Windows" in finding.sentence


@pytest.mark.parametrize(
    ("system", "machine", "name", "capability", "words"),
    [
        ("Windows", "ARM64", "NVIDIA N1X", "12.1", "no CUDA build for this kind of PC"),
        ("Linux", "aarch64", "NVIDIA T1000", "7.5", "no current build helps"),
    ],
)
def test_a_pc_with_an_arm_processor_is_not_sent_to_builds_of_another(
    system, machine, name, capability, words
):
    card = changed(RTX_3060, name=name, compute_capability=capability, pci_device_id=None)
    findings = examined(pc(card), CPU_ENGINE, system=system, machine=machine)
    assert codes(findings) == ["no_code_for_card"]
    assert words in findings[0].sentence
    assert "The last PyTorch" not in findings[0].sentence


@pytest.mark.parametrize(
    ("facts", "kind", "words"),
    [
        ({"torch_version": "2.13.0+cu126", "cuda_build": "12.6"}, "cuda", "CUDA 12.6"),
        ({"torch_version": "2.12.0+rocm7.14.0"}, "rocm", "AMD cards (ROCm)"),
        ({"torch_version": "2.10.0a0", "hip_build": "7.2.26015"}, "rocm", "AMD cards (ROCm)"),
        ({"torch_version": "2.13.0+xpu"}, "xpu", "Intel cards (XPU)"),
        ({"torch_version": "2.13.0", "xpu_build": "20250301"}, "xpu", "Intel cards (XPU)"),
        ({"torch_version": "2.13.0+cpu"}, "cpu", "the CPU only"),
        ({"torch_version": "2.13.0"}, "cpu", "the CPU only"),
    ],
)
def test_a_build_is_called_what_it_is(facts, kind, words):
    engine = EngineDescribed(pid=1, **facts)
    assert (engine.build_kind, engine.built_for) == (kind, words)


def test_an_old_card_does_not_take_the_driver_from_a_card_that_pytorch_can_use():
    old = on_the_bus(GT_710, "not_served")
    findings = examined(pc(old, RTX_3060))
    assert codes(findings) == ["driver_dropped_card", "ok"]
    assert "Keep this driver" in findings[0].sentence
    assert findings[0].command == ""
    alone = examined(pc(old, driver=msgspec.structs.replace(STOPPED)), NO_CUDA)
    assert "driver branch 470" in one("driver_dropped_card", alone).sentence


def test_only_the_cards_that_a_build_can_use_are_fine():
    found = one("build_without_cuda", examined(pc(GT_710, GTX_1060), CPU_ENGINE))
    assert found.sentence.startswith("Your GTX 1060 6GB is fine")
    both = one("build_without_cuda", examined(pc(GTX_1060, RTX_3060), CPU_ENGINE))
    assert both.sentence.startswith("Your GTX 1060 6GB and RTX 3060 are fine")


def test_the_build_for_wsl_is_chosen_by_the_driver_of_windows():
    """526.47 would be new enough for cu126 if it was a driver for Linux."""
    windows_driver = Driver(version="526.47")
    assert recommended_build(pc(RTX_3060, driver=windows_driver, is_wsl=True)).tag == "cpu"
