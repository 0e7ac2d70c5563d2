import msgspec
import pytest

from gpu_studio.core.devices.devices import ASLEEP, CardReading, Driver, GpuProcess, Reading
from gpu_studio.core.devices.finding import is_usable
from gpu_studio.core.devices.findings import find
from gpu_studio.core.devices.pc_facts import recommended_build
from gpu_studio.core.telemetry import Telemetry
from tests.core.devices.doctor_facts import (
    ABSENT,
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
    told,
    tried,
)


def test_a_lost_card_is_reported_by_each_source():
    at_the_start = examined(pc(on_the_bus(GT_1030, "lost"), RTX_3060))
    assert codes(at_the_start) == ["card_lost", "ok"]
    lost = CardReading(
        uuid="GPU-bbbb", telemetry=Telemetry(), error="It was lost from the bus.", error_code="lost"
    )
    reading = Reading(taken_at_s=1.0, cpu=Telemetry(), cards=(lost,))
    assert codes(examined(pc(RTX_3060), readings=[reading])) == ["card_lost"]
    assert codes(examined(pc(RTX_3060), probe=probe(tried(RTX_3060, "lost")))) == ["card_lost"]


def test_a_wrong_sum_is_a_finding_of_its_own_and_the_card_is_usable():
    findings = examined(pc(RTX_3060), probe=probe(tried(RTX_3060, total=524799.0)))
    assert codes(findings) == ["wrong_sum", "ok"]
    assert "524799 instead of 524800" in findings[0].sentence
    right = examined(pc(RTX_3060), probe=probe(tried(RTX_3060)))
    assert codes(right) == ["ok"]
    assert "a real kernel ran" in right[0].detail


def test_a_busy_card_is_named_with_the_program_on_it():
    by_kernel = examined(pc(RTX_3060), probe=probe(tried(RTX_3060, "busy", message="busy")))
    assert codes(by_kernel) == ["device_busy"]
    holder = GpuProcess(pid=7, name="game", kind="compute")
    taken = changed(RTX_3060, compute_mode="exclusive process", processes=(holder,))
    finding = one("device_busy", examined(pc(taken)))
    assert "game (7) is using it" in finding.sentence
    assert finding.command == "sudo nvidia-smi -i 00000000:02:00.0 -c DEFAULT"
    closed = examined(pc(changed(RTX_3060, compute_mode="prohibited")))
    assert codes(closed) == ["device_busy"]
    assert "lets no program" in closed[0].sentence
    ran = examined(pc(taken), probe=probe(tried(RTX_3060)))
    assert codes(ran) == ["ok"]
    free = examined(pc(changed(RTX_3060, compute_mode="exclusive process")))
    assert codes(free) == ["ok"]


def test_a_card_with_another_s_name_is_found_out():
    reflashed = changed(
        RTX_3060, compute_capability="7.5", multiprocessors=14, memory_bus_width_bits=128,
        pci_device_id=0x1F82,
    )  # fmt: skip
    finding = one("not_as_named", examined(pc(reflashed)))
    assert "the card says 14, its name (RTX 3060) says 28" in finding.sentence
    assert "compute capability: the card says 7.5" in finding.sentence
    chip = one("not_as_named", examined(pc(changed(RTX_3060, pci_device_id=0x1F82))))
    assert "its device id (TU117)" in chip.sentence


def test_driver_and_pytorch_that_differ_are_reported():
    engine = msgspec.structs.replace(
        ENGINE, cards=(told(RTX_3060, multiprocessors=30, memory_total_bytes=6 << 30),)
    )
    finding = one("not_as_named", examined(pc(RTX_3060), engine))
    assert "nvidia-smi says 28, PyTorch says 30" in finding.sentence
    assert "nvidia-smi says 12288, PyTorch says 6144" in finding.sentence
    same = msgspec.structs.replace(
        ENGINE, cards=(told(RTX_3060, memory_total_bytes=(12 << 30) - (250 << 20)),)
    )
    assert codes(examined(pc(RTX_3060), same)) == ["ok"]


def working(generation: int, width: int, *, pstate: int = 0, load: float = 90.0) -> Reading:
    now = Telemetry(
        pcie_generation=generation, pcie_width=width, pstate=pstate, utilization_percent=load
    )
    card = CardReading(uuid="GPU-bbbb", telemetry=now)
    return Reading(taken_at_s=1.0, cpu=Telemetry(), cards=(card,))


@pytest.mark.parametrize(
    ("readings", "is_slow"),
    [([working(1, 16, pstate=8)], False), ([working(1, 16, load=2)], False),
     ([working(4, 16)], False), ([working(4, 4)], True), ([working(1, 16)], True),
     ([working(1, 16), working(4, 16), working(1, 16, pstate=8)], False), ([], False)],
)  # fmt: skip
def test_a_link_is_slow_only_where_the_card_was_seen_to_work(readings, is_slow):
    findings = examined(pc(RTX_3060), readings=readings)
    assert ("slow_link" in codes(findings)) is is_slow
    assert is_usable(findings)


def test_scripts_that_number_otherwise_are_reported():
    cards = (tried(RTX_3060, number=0), tried(GT_1030, number=1))
    finding = one("mixed_order", examined(pc(GT_1030, RTX_3060), probe=probe(*cards)))
    assert "cuda:0 is the RTX 3060" in finding.sentence
    assert finding.command == "export CUDA_DEVICE_ORDER=PCI_BUS_ID"
    assert "seen in a separate process" in finding.detail
    guessed = one("mixed_order", examined(pc(GT_1030, RTX_3060)))
    assert "guessed" in guessed.detail


@pytest.mark.parametrize(
    ("cards", "facts", "engine"),
    [((GT_1030, RTX_3060), {"variables": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}}, ENGINE),
     ((changed(RTX_3060, driver_index=0, pci_bus_id="00000000:01:00.0"),
       changed(GT_1030, driver_index=1, pci_bus_id="00000000:02:00.0")), {}, ENGINE),
     ((GT_1030, RTX_3060), {}, msgspec.structs.replace(ENGINE, visible_devices="0,1")),
     ((RTX_3060,), {}, ENGINE)],
)  # fmt: skip
def test_scripts_that_number_alike_need_nothing(cards, facts, engine):
    assert "mixed_order" not in codes(examined(pc(*cards, **facts), engine))


def test_a_sleeping_card_is_judged_by_its_chip_and_by_what_a_kernel_did():
    asleep = changed(on_the_bus(RTX_3060, "asleep"), unreadable=ASLEEP)
    findings = examined(pc(asleep))
    assert codes(findings) == ["card_asleep", "ok"]
    assert is_usable(findings)
    old = changed(on_the_bus(GT_1030, "asleep"), unreadable=ASLEEP)
    cu130 = msgspec.structs.replace(ENGINE, torch_version="2.13.0+cu130", arch_list=("sm_75",))
    assert codes(examined(pc(old), cu130)) == ["no_code_for_card", "card_asleep"]
    assert codes(examined(pc(old), CPU_ENGINE)) == ["build_without_cuda", "card_asleep"]
    # PyTorch tells its slot, the bus tells nothing else.
    unknown = changed(asleep, pci_device_id=None)
    assert codes(examined(pc(unknown))) == ["card_asleep"]
    by_kernel = examined(pc(unknown), probe=probe(tried(RTX_3060)))
    assert codes(by_kernel) == ["card_asleep", "ok"]


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
    assert "have different versions. Restart the PC." in finding.sentence
    assert finding.command == "sudo reboot"
    on_start = examined(pc(on_the_bus(RTX_3060, "driver_updated")))
    assert codes(on_start) == ["driver_library_mismatch"]


def test_a_driver_that_is_replaced_on_the_disk_works_on_and_is_reported():
    findings = examined(pc(RTX_3060, driver=Driver(version="580.95.05", was_updated=True)))
    assert codes(findings) == ["driver_library_mismatch", "ok"]
    assert "Restart the PC before you start another" in findings[0].sentence


def test_a_divided_card_says_how_to_make_one_of_it_again():
    finding = one("mig_instances", examined(pc(changed(RTX_3060, mig_enabled=True))))
    assert finding.command == "sudo nvidia-smi -i 1 -mig 0"
    assert "mig_instances" not in codes(examined(pc(changed(RTX_3060, mig_enabled=False))))


@pytest.mark.parametrize(
    ("device_id", "version", "system", "needed"),
    [
        (0x2B85, "560.94", "Windows", "572.16"),  # RTX 5090
        (0x2882, "472.12", "Windows", "522.25"),  # RTX 4060
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


@pytest.mark.parametrize(
    ("others", "system", "words", "command"),
    [(("Microsoft Basic Display",), "Linux",
      "Microsoft Basic Display is present and can draw, but PyTorch", "bench matmul --device cpu"),
     ((), "Linux", "runs on the CPU.", "bench matmul --device cpu"),
     ((), "Darwin", "under the name mps (not tested by us).", "torch.backends.mps")],
)  # fmt: skip
def test_who_has_no_nvidia_card_is_told_what_there_is_and_a_next_step(
    others, system, words, command
):
    inventory = pc(driver=Driver(error="None.", error_code="not_installed"), other_gpus=others)
    finding = one("no_nvidia_card", examined(inventory, CPU_ENGINE, system=system))
    assert words in finding.sentence
    assert command in finding.command
    assert (finding.action is None) is (system == "Darwin")


GTX_1060 = changed(
    GT_1030, name="NVIDIA GeForce GTX 1060 6GB", pci_device_id=0x1C03, multiprocessors=10,
    memory_bus_width_bits=192,
)  # fmt: skip
GT_710 = changed(
    GT_1030, name="NVIDIA GeForce GT 710", architecture="Kepler", compute_capability="3.5",
    pci_device_id=0x128B, multiprocessors=1, pci_bus_id="00000000:03:00.0",
)  # fmt: skip
STOPPED = Driver(library_version="580.95.05", error=NOT_RUNNING, error_code="not_running")
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


def test_the_build_for_wsl_is_chosen_by_the_driver_of_windows():
    """526.47 would be new enough for cu126 if it was a driver for Linux."""
    windows_driver = Driver(version="526.47")
    assert recommended_build(pc(RTX_3060, driver=windows_driver, is_wsl=True)).tag == "cpu"


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
    assert "driven by nouveau" in finding.detail
