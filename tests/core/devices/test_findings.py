from __future__ import annotations

import re

import pytest

from gpu_studio.core.devices import pc_facts
from gpu_studio.core.devices.devices import ASLEEP, Device, Driver, Inventory
from gpu_studio.core.devices.findings import find
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.program_form import Program, ProgramForm
from gpu_studio.core.resources import MissingResourceError

CPU = Device(kind="cpu", name="AMD Ryzen 7 5700G")
NO_DRIVER, NOT_RUNNING, UPDATED, UNKNOWN = (
    Driver(error=error, error_code=code, evidence="NVML error 9")
    for error, code in (
        ("No NVIDIA driver is installed.", "not_installed"),
        ("It is not running.", "not_running"),
        ("Restart the PC.", "driver_updated"),
        ("An unknown error.", "unknown"),
    )
)
ARCH_LISTS = {
    "cu130": ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"),
    "cu126": ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"),
}


def card(name: str, capability: str | None, letter: str = "a", bus: int = 1, **facts) -> Device:
    return Device(
        kind="cuda",
        name=f"NVIDIA GeForce {name}",
        uuid=f"GPU-{letter * 8}",
        compute_capability=capability,
        pci_bus_id=f"00000000:{bus:02X}:00.0",
        **facts,
    )


GT_1030 = card("GT 1030", "6.1")
RTX_3060 = card("RTX 3060", "8.6", "b", 2)
RTX_5090 = card("RTX 5090", "12.0", "c", 3)
GT_710 = card("GT 710", "3.5", "d", 4)
UNREADABLE = Device(
    kind="cuda",
    name="NVIDIA GeForce GT 1030",
    pci_bus_id="00000000:01:00.0",
    unreadable="No NVIDIA driver is installed.",
)


def pc(*cards: Device, driver: str | Driver = "580.95.05", others: tuple[str, ...] = ()):
    if isinstance(driver, str):
        driver = Driver(version=driver)
    return Inventory(devices=(CPU, *cards), driver=driver, other_gpus=others)


def torch(tag: str = "cu130", **facts) -> EngineDescribed:
    if tag == "cpu":
        return EngineDescribed(pid=1, torch_version="2.13.0+cpu", **facts)
    available = facts.pop("cuda_available", True)
    return EngineDescribed(
        pid=1,
        torch_version=f"2.13.0+{tag}",
        cuda_build=f"{tag[2:4]}.{tag[4:]}",
        cuda_available=available,
        arch_list=facts.pop("arch_list", ARCH_LISTS[tag] if available else ()),
        **facts,
    )


def found(inventory, engine, system="Linux", machine="x86_64"):
    return find(inventory, engine, system=system, machine=machine)


def codes(*arguments, **options):
    return [finding.code for finding in found(*arguments, **options)]


@pytest.mark.parametrize(
    ("inventory", "engine", "expected"),
    [
        # One card, everything right.
        (pc(RTX_3060), torch("cu130"), ["ok"]),
        (pc(RTX_3060, driver="560.35.03"), torch("cu126"), ["ok"]),
        (pc(GT_1030, driver="570.86.15"), torch("cu126"), ["ok"]),
        (pc(RTX_5090), torch("cu130"), ["ok"]),
        # No code: a Pascal card under cu130, a Blackwell card under cu126, Kepler under any.
        (pc(GT_1030), torch("cu130"), ["no_code_for_card"]),
        (pc(GT_1030, driver="570.86.15"), torch("cu130", cuda_available=False),
         ["no_code_for_card"]),
        (pc(RTX_5090), torch("cu126"), ["no_code_for_card"]),
        (pc(GT_710, driver="470.256.02"), torch("cu126", cuda_available=False),
         ["no_code_for_card"]),
        # Two cards, of which one can be used.
        (pc(GT_1030, RTX_3060), torch("cu130"), ["no_code_for_card", "ok"]),
        (pc(GT_1030, RTX_3060), torch("cu126"), ["ok", "ok"]),
        # Old drivers.
        (pc(RTX_3060, driver="570.86.15"), torch("cu130", cuda_available=False),
         ["driver_too_old"]),
        (pc(RTX_3060, driver="470.256.02"), torch("cu126", cuda_available=False),
         ["driver_too_old"]),
        (pc(RTX_5090, driver="570.86.15"), torch("cu130", cuda_available=False),
         ["driver_too_old"]),
        # The CPU build.
        (pc(RTX_3060), torch("cpu"), ["build_without_cuda"]),
        (pc(GT_1030, driver="570.86.15"), torch("cpu"), ["build_without_cuda"]),
        (pc(GT_710, driver="470.256.02"), torch("cpu"), ["no_code_for_card"]),
        (pc(RTX_5090, driver="570.86.15"), torch("cpu"), ["driver_too_old"]),
        # No driver, a broken one, no card.
        (pc(UNREADABLE, driver=NO_DRIVER), torch("cpu"), ["no_driver"]),
        (pc(UNREADABLE, driver=NO_DRIVER), torch("cu130", cuda_available=False), ["no_driver"]),
        (pc(driver=NOT_RUNNING), torch("cpu"), ["no_nvidia_card"]),
        (pc(UNREADABLE, driver=NOT_RUNNING), torch("cpu"),
         ["no_driver"]),
        (pc(driver=UNKNOWN), torch("cpu"), ["no_driver"]),
        (pc(driver=UPDATED), torch("cpu"),
         ["driver_library_mismatch"]),
        (pc(UNREADABLE, driver=UPDATED),
         torch("cu130", cuda_available=False), ["driver_library_mismatch"]),
        (pc(driver=NO_DRIVER), torch("cpu"), ["no_nvidia_card"]),
        (pc(driver=NO_DRIVER), torch("cu130", cuda_available=False), ["no_nvidia_card"]),
        (pc(driver=NO_DRIVER, others=("AMD Radeon RX 6600",)), torch("cpu"), ["no_nvidia_card"]),
        # Hidden cards.
        (pc(RTX_3060), torch(visible_devices="", cuda_available=False),
         ["hidden_by_environment"]),
        (pc(RTX_3060, RTX_5090), torch(visible_devices="1"), ["hidden_by_environment", "ok"]),
        (pc(RTX_3060, RTX_5090), torch(visible_devices="0,1"), ["ok", "ok"]),
        # CUDA does not start and nothing tells why but PyTorch.
        (pc(RTX_3060), torch(cuda_available=False, cuda_reason="It slept."), ["cuda_init_failed"]),
        (pc(RTX_3060, RTX_5090), torch(cuda_available=False, visible_devices="1"),
         ["cuda_init_failed", "hidden_by_environment"]),
        # Cards that cannot be read.
        (
            pc(card("RTX 3060", None, unreadable=ASLEEP, unreadable_code="asleep")),
            torch("cu130"),
            ["card_asleep"],
        ),
        (pc(card("RTX 3060", None, unreadable="Lost."), RTX_5090), torch("cu130"),
         ["card_unreadable", "ok"]),
        # PyTorch is not known yet.
        (pc(RTX_3060), None, []),
        (pc(driver=NO_DRIVER), None, ["no_nvidia_card"]),
        (pc(UNREADABLE, driver=NO_DRIVER), None, ["no_driver"]),
    ],
)  # fmt: skip
def test_every_situation_has_its_codes_worst_first(inventory, engine, expected):
    assert codes(inventory, engine) == expected


def only(inventory, engine, **options):
    (finding,) = found(inventory, engine, **options)
    return finding


def test_a_card_without_code_gets_the_command_of_the_build_that_has_it():
    finding = only(pc(GT_1030, driver="570.86.15"), torch("cu130", cuda_available=False))
    assert finding.sentence == (
        "This PyTorch has no code for your GT 1030 (6.1): install the cu126 build."
    )
    assert finding.command == (
        "python -m pip install torch==2.13.0+cu126 "
        "--index-url https://download.pytorch.org/whl/cu126"
    )
    assert finding.device_uuid == GT_1030.uuid


def test_an_installed_program_is_reported_its_own_command_and_never_pip():
    installed = Program(ProgramForm.INSTALLED, "gpu-studio")
    (finding,) = find(pc(GT_1030), torch("cpu"), program=installed)
    assert finding.command == "gpu-studio engine install cu126"
    amd = Device(kind="cuda", maker="AMD", name="AMD Radeon RX 7600", pci_device_id=0x7480)
    (other,) = find(pc(amd, driver=NO_DRIVER), torch("cpu"), program=installed)
    assert other.command == "gpu-studio engine install rocm-gfx1102"
    vega = Device(kind="cuda", maker="AMD", name="AMD Radeon VII", pci_device_id=0x66AF)
    (old,) = find(pc(vega, driver=NO_DRIVER), torch("cpu"), system="Linux", program=installed)
    assert old.command.startswith("https://")


def test_a_card_that_no_build_serves_gets_no_command():
    finding = only(pc(GT_710, driver="470.256.02"), torch("cpu"))
    assert "GT 710" in finding.sentence
    assert "older than 5.0" in finding.evidence
    assert finding.command == ""


def test_the_cpu_build_gets_the_command_of_the_right_one():
    assert "torch==2.13.0+cu130 " in only(pc(RTX_3060), torch("cpu")).command
    old = only(pc(RTX_3060, driver="545.29.06"), torch("cpu"))
    assert "torch==2.13.0+cu126 " in old.command
    assert "RTX 3060 is fine" in old.sentence


def test_an_old_driver_is_named_with_the_one_that_is_needed():
    finding = only(pc(RTX_3060, driver="470.256.02"), torch("cu126", cuda_available=False))
    assert "525.60.13" in finding.sentence
    assert "470.256.02" in finding.sentence
    windows = only(
        pc(RTX_3060, driver="472.12"), torch("cu126", cuda_available=False), system="Windows"
    )
    assert "528.33" in windows.sentence
    assert windows.command == "https://www.nvidia.com/drivers"


def test_an_old_driver_that_another_build_takes_gets_that_build():
    finding = only(pc(RTX_3060, driver="570.86.15"), torch("cu130", cuda_available=False))
    assert "or install the cu126 build" in finding.sentence
    assert "+cu126" in finding.command


def test_windows_calls_its_machine_by_another_name():
    finding = only(pc(GT_1030), torch("cu130", arch_list=()), system="Windows", machine="AMD64")
    assert finding.code == "no_code_for_card"
    assert "cu126" in finding.sentence


def test_a_cuda_that_is_not_in_the_table_is_judged_by_its_own_list():
    other = EngineDescribed(
        pid=1, torch_version="2.7.1+cu128", cuda_build="12.8", cuda_available=True,
        arch_list=("sm_75", "sm_90", "compute_120"),
    )  # fmt: skip
    assert codes(pc(GT_1030), other) == ["no_code_for_card"]
    assert codes(pc(RTX_5090), other) == ["ok"]
    silent = EngineDescribed(
        pid=1, torch_version="2.7.1+cu128", cuda_build="12.8", cuda_available=True
    )
    assert codes(pc(GT_1030), silent) == ["no_code_for_card"]
    unknown = EngineDescribed(
        pid=1, torch_version="3.1.0+cu150", cuda_build="15.0", cuda_available=True
    )
    assert codes(pc(GT_1030), unknown) == ["ok"]


def test_other_makers_cards_are_named():
    finding = only(pc(driver=NO_DRIVER, others=("AMD Radeon RX 6600",)), torch("cpu"))
    assert "AMD Radeon RX 6600 is present" in finding.sentence
    both = only(pc(driver=NO_DRIVER, others=("AMD A", "Intel B")), torch("cpu"))
    assert "AMD A and Intel B are present" in both.sentence


def test_a_hidden_card_is_shown_again_by_the_system_s_command():
    engine = torch(visible_devices="", cuda_available=False)
    linux = only(pc(RTX_3060), engine)
    windows = only(pc(RTX_3060), engine, system="Windows")
    assert linux.command == "unset CUDA_VISIBLE_DEVICES"
    assert windows.command == "set CUDA_VISIBLE_DEVICES="
    assert linux.device_uuid == RTX_3060.uuid


def test_the_reason_of_pytorch_is_passed_on():
    engine = torch(cuda_available=False, cuda_reason="After the PC has slept this is common.")
    assert "After the PC has slept" in only(pc(RTX_3060), engine).sentence


@pytest.mark.parametrize("system", ["Linux", "Windows"])
@pytest.mark.parametrize(
    ("driver", "engine"),
    [(NO_DRIVER, None), (NOT_RUNNING, torch("cpu")),
     (UPDATED, torch("cu130", cuda_available=False)),
     (UNKNOWN, torch("cpu"))],
)  # fmt: skip
def test_every_finding_is_a_sentence_with_evidence(system, driver, engine):
    for finding in found(pc(UNREADABLE, driver=driver), engine, system=system):
        assert re.fullmatch(r"[A-Z].*\.", finding.sentence)
        assert ".." not in finding.sentence
        assert finding.evidence


def test_without_the_table_there_are_findings_without_commands(monkeypatch):
    def missing():
        raise MissingResourceError("wheels.json", "is missing")

    monkeypatch.setattr(pc_facts, "load_table", missing)
    assert only(pc(RTX_3060), torch("cpu")).command == ""
    assert only(pc(GT_1030), torch("cu130")).command == ""
    assert codes(pc(RTX_3060), torch("cu130")) == ["ok"]


def test_a_driver_that_hides_its_version_is_not_called_old():
    finding = only(pc(RTX_3060, driver=Driver()), torch("cpu"))
    assert finding.code == "build_without_cuda"
    assert finding.command == ""


def test_a_sleeping_card_keeps_its_number_for_the_others():
    asleep = Device(
        kind="cuda",
        name="GT 1030",
        pci_bus_id="00000000:01:00.0",
        unreadable=ASLEEP,
        unreadable_code="asleep",
    )
    awake = card("RTX 3060", "8.6", bus=2)
    inventory = Inventory(devices=(CPU, asleep, awake), driver=Driver(version="580.95.05"))
    engine = EngineDescribed(
        pid=1, torch_version="2.13.0+cu126", cuda_build="12.6", cuda_available=True,
        device_count=2, arch_list=ARCH_LISTS["cu126"],
    )  # fmt: skip
    ok = next(finding for finding in find(inventory, engine) if finding.code == "ok")
    assert ok.evidence.endswith("it is cuda:1")
