import os
import shutil
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from gpu_studio.core.telemetry import ClockReason
from gpu_studio.hardware.card_reader import CardUnreadableError
from gpu_studio.hardware.linux.adapters import find_adapters
from gpu_studio.hardware.linux.driver_sensors import Hwmon
from gpu_studio.hardware.linux.fdinfo import CardClients, Descriptors
from gpu_studio.hardware.linux.reader import LinuxReader
from gpu_studio.hardware.linux.sys_tree import SYSFS_VARIABLE, SysTree, sys_tree
from gpu_studio.hardware.makers import makers_of
from gpu_studio.hardware.reader import PcSensors
from tests.patience import PATIENCE_S, until

TREES = Path(__file__).parent / "sysfs"
RX_6600 = "card1/device"
linked = pytest.mark.skipif(sys.platform == "win32", reason="Windows lets few users make links")


def cards_of(tree: SysTree):
    reader = LinuxReader(tree)
    return [reader.card(adapter.slot) for adapter in find_adapters(tree)]


def described(root: Path):
    """Return a PC's only card with its sensors."""
    (card,) = cards_of(SysTree(root))
    return msgspec.structs.replace(card.describe(), telemetry=card.telemetry())


def sensors_of(tree: SysTree) -> PcSensors:
    return PcSensors(
        makers_of(tree),
        find_adapters=lambda: find_adapters(tree),
        is_card_asleep=lambda slot: any(
            one.is_asleep for one in find_adapters(tree) if one.slot == slot
        ),
    )


@pytest.fixture
def rx_6600(tmp_path) -> Path:
    """A PC with a Radeon RX 6600 whose files can be changed."""
    return Path(shutil.copytree(TREES / "rx6600", tmp_path / "pc"))


def pci_card(root: Path, slot: str, vendor: str, device: str, **files: str) -> Path:
    folder = root / "bus" / "pci" / "devices" / slot
    for name, text in ({"class": "0x030000", "vendor": vendor, "device": device} | files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
    return folder


def test_a_card_of_amds_is_read_by_its_labels():
    card = described(TREES / "rx6600")
    assert (card.maker, card.name) == ("AMD", "AMD Radeon RX 6600/6600 XT/6600M")
    assert (card.chip, card.architecture) == ("Navi 23", "gfx1032")
    assert (card.vbios, card.kernel_driver) == ("113-D534-R66E", "amdgpu")
    assert (card.sm_clock_max_mhz, card.is_integrated) == (2700.0, False)
    now = card.telemetry
    assert (now.temperature_c, now.hotspot_c, now.memory_temperature_c) == (28.0, 28.0, 26.0)
    assert (now.power_w, now.power_limit_w, now.fan_rpm) == (3.0, 120.0, 1395.0)
    assert (now.sm_clock_mhz, now.memory_clock_mhz, now.utilization_percent) == (20.0, 96.0, 0.0)
    assert (now.pcie_generation, now.pcie_width) == (4, 16)
    # This PC's copy lacks the files of the memory.
    assert (card.memory_total_bytes, now.memory_used_bytes, card.bar1_bytes) == (None, None, None)


def test_the_window_into_a_cards_memory_is_the_largest_region_of_its_bus_line(rx_6600):
    regions = rx_6600 / RX_6600 / "resource"
    regions.write_text(
        "0x000000fc00000000 0x000000fdffffffff 0x000000000014220c\n"
        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
        "0x000000fe00000000 0x000000fe0fffffff 0x000000000014220c\n",
        encoding="utf-8",
    )
    assert described(rx_6600).bar1_bytes == 8 << 30


def test_integrated_graphics_have_the_memory_of_the_pc():
    card = described(TREES / "phoenix")
    assert (card.name, card.architecture) == ("AMD Radeon 780M", "gfx1103")
    assert card.is_integrated
    assert (card.dedicated_memory_bytes, card.shared_memory_bytes) == (4294967296, 31433977856)
    assert card.memory_total_bytes == 4294967296 + 31433977856
    assert card.telemetry.memory_used_bytes == 1272893440 + 211398656
    assert (card.telemetry.hotspot_c, card.telemetry.fan_rpm) == (None, None)


def test_intels_card_says_its_power_as_energy(tmp_path):
    root = Path(shutil.copytree(TREES / "b580", tmp_path / "pc"))
    seconds = iter((10.0, 12.0, 14.0))
    device = "card1/device"
    hwmon = Hwmon(SysTree(root), device, "xe", now_s=lambda: next(seconds))
    counter = next((root / device).glob("hwmon/*/energy1_input"))
    assert hwmon.watts(("card", "pkg")) is None  # one reading says nothing
    counter.write_text(str(int(counter.read_text()) + 90_000_000), encoding="utf-8")
    assert hwmon.watts(("card", "pkg")) == 45.0
    assert hwmon.watts(("card", "pkg")) is None  # it stands still: nothing was measured
    card = described(root)
    assert (card.name, card.maker, card.chip) == ("Intel Arc B580", "Intel", "Battlemage")
    now = card.telemetry
    assert (now.temperature_c, now.hotspot_c, now.memory_temperature_c) == (54.0, None, 56.0)
    assert (now.power_w, now.power_limit_w, now.fan_rpm) == (None, 190.0, 1235.0)
    assert now.clock_event_reasons == ClockReason(0)
    # Linux says 2.5 GT/s x1, that of the link inside the card; the copy has no bridge above it.
    assert (now.pcie_generation, now.pcie_width) == (None, None)


@pytest.mark.parametrize(
    "text", ["", "N/A", "-5000", "65535000", "1e3", "9" * 4000, "\0\0", "28000 28000"]
)
def test_what_is_no_temperature_is_not_reported(rx_6600, text):
    next((rx_6600 / RX_6600).glob("hwmon/*/temp2_input")).write_text(text, encoding="utf-8")
    now = described(rx_6600).telemetry
    assert (now.temperature_c, now.hotspot_c, now.memory_temperature_c) == (28.0, None, 26.0)


def test_a_file_of_4_gib_a_folder_and_a_pipe_are_not_reported(rx_6600):
    hwmon = next((rx_6600 / RX_6600).glob("hwmon/*"))
    with open(hwmon / "temp1_input", "wb") as file:
        file.truncate(4 << 30)
    (hwmon / "power1_average").unlink()
    (hwmon / "power1_average").mkdir()
    if hasattr(os, "mkfifo"):
        (rx_6600 / RX_6600 / "gpu_busy_percent").unlink()
        os.mkfifo(rx_6600 / RX_6600 / "gpu_busy_percent")
    now = described(rx_6600).telemetry
    assert (now.temperature_c, now.power_w, now.hotspot_c) == (None, None, 28.0)
    if hasattr(os, "mkfifo"):
        assert now.utilization_percent is None


def test_a_card_that_is_pulled_out_is_lost_and_the_others_stay(rx_6600):
    tree = SysTree(rx_6600)
    pci_card(rx_6600, "0000:20:00.0", "0x1a03", "0x2000", uevent="DRIVER=ast")
    sensors = sensors_of(tree)
    assert [card.name for card in sensors.inventory().cards] == [
        "AMD Radeon RX 6600/6600 XT/6600M",
        "ASPEED Graphics Family",
    ]
    shutil.rmtree(rx_6600 / RX_6600)
    assert [card.error_code for card in sensors.reading().cards] == ["lost", None]


def test_a_sleeping_card_is_a_row_of_which_nothing_is_read(rx_6600, monkeypatch):
    status = rx_6600 / RX_6600 / "power" / "runtime_status"
    status.parent.mkdir(exist_ok=True)
    status.write_text("suspended\n", encoding="utf-8")
    read: list[str] = []
    data = SysTree.data

    def note(tree: SysTree, path: str) -> bytes | None:
        read.append(path)
        return data(tree, path)

    monkeypatch.setattr(SysTree, "data", note)
    sensors = sensors_of(SysTree(rx_6600))
    (card,) = sensors.inventory().cards
    assert (card.maker, card.name) == ("AMD", "AMD Radeon RX 6600/6600 XT/6600M")
    assert card.is_asleep
    assert sensors.reading().cards[0].error_code == "asleep"
    assert {Path(path).name for path in read} <= {
        "class", "device", "revision", "runtime_status", "uevent", "vendor",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("driver", "code"), [("vfio-pci", "not_served"), ("", "no_driver"), ("ast", None)]
)
def test_a_card_says_why_it_cannot_be_read(tmp_path, driver, code):
    pci_card(tmp_path, "0000:03:00.0", "0x1002", "0x73ff", uevent=f"DRIVER={driver}")
    (card,) = sensors_of(SysTree(tmp_path)).inventory().cards
    assert (card.pci_bus_id, card.unreadable_code) == ("00000000:03:00.0", code)


@linked
@pytest.mark.parametrize("is_absolute", [True, False])
def test_links_are_followed_inside_the_tree_only(tmp_path, is_absolute):
    slot = "0000:03:00.0"
    device = tmp_path / "devices" / "pci0000:00" / "0000:00:01.0" / slot
    shutil.copytree(TREES / "rx6600" / "card1" / "device", device)
    card = device / "drm" / "card7"
    card.mkdir(parents=True)
    (tmp_path / "class" / "drm").mkdir(parents=True)
    (tmp_path / "bus" / "pci" / "devices").mkdir(parents=True)
    inner = f"devices/pci0000:00/0000:00:01.0/{slot}"
    up = "/sys" if is_absolute else "../.."
    (card / "device").symlink_to(f"/sys/{inner}" if is_absolute else "../..")
    (tmp_path / "class" / "drm" / "card7").symlink_to(f"{up}/{inner}/drm/card7")
    (tmp_path / "bus" / "pci" / "devices" / slot).symlink_to(
        f"/sys/{inner}" if is_absolute else f"../../../{inner}"
    )
    (device / "vbios_version").unlink()
    (device / "vbios_version").symlink_to("/etc/hostname")
    card_now = described(tmp_path)
    assert (card_now.telemetry.hotspot_c, card_now.vbios) == (28.0, None)


def test_the_link_is_that_of_the_slot_not_the_one_inside_the_card(tmp_path):
    outer = tmp_path / "devices" / "pci0000:00" / "0000:00:01.0" / "0000:01:00.0"
    device = outer / "0000:02:00.0" / "0000:03:00.0"
    shutil.copytree(TREES / "b580" / "card1" / "device", device)
    for bridge, speed in ((outer, "16.0 GT/s PCIe"), (device.parent, "2.5 GT/s PCIe")):
        for name, text in (("vendor", "0x8086"), ("class", "0x060400"),
                           ("current_link_speed", speed), ("current_link_width", "8")):  # fmt: skip
            (bridge / name).write_text(text, encoding="utf-8")
    now = described(tmp_path).telemetry
    assert (now.pcie_generation, now.pcie_width) == (4, 8)


def test_of_a_copy_nothing_of_this_pc_is_read(tmp_path):
    tree = sys_tree({SYSFS_VARIABLE: str(TREES / "rx6600")})
    (maker,) = makers_of(tree)
    assert (tree.is_copy, maker.is_system) == (True, True)
    assert LinuxReader(tree).driver().version is None
    assert not sys_tree({}).is_copy
    (tmp_path / "sys").mkdir()
    assert sys_tree({SYSFS_VARIABLE: str(tmp_path)}).root == tmp_path / "sys"


def test_a_slot_without_a_card_is_lost():
    with pytest.raises(CardUnreadableError) as raised:
        LinuxReader(SysTree(TREES / "rx6600")).card("00000000:99:00.0")
    assert raised.value.code == "lost"


@linked
def test_programs_on_a_card_and_their_load_come_from_fdinfo(tmp_path):
    for pid, client, busy_ns in ((41, 7, 1_000_000_000), (42, 8, 0)):
        for folder in ("fd", "fdinfo"):
            (tmp_path / str(pid) / folder).mkdir(parents=True)
        for number in (3, 4):  # a descriptor and its copy are one client
            (tmp_path / str(pid) / "fd" / str(number)).symlink_to("/dev/dri/renderD128")
            (tmp_path / str(pid) / "fdinfo" / str(number)).write_text(
                f"drm-driver:\tamdgpu\ndrm-client-id:\t{client}\ndrm-pdev:\t0000:03:00.0\n"
                f"drm-memory-vram:\t2048 KiB\ndrm-memory-gtt: \t1024 KiB\n"
                f"drm-engine-compute:\t{busy_ns} ns\n",
                encoding="utf-8",
            )
    seconds = iter((1.0, 1.0, 3.0, 3.0))
    clients = CardClients("0000:03:00.0", False, Descriptors(tmp_path), lambda: next(seconds))
    clients.read()
    assert clients.percent is None
    assert [(one.pid, one.kind, one.memory_bytes) for one in clients.processes()] == [
        (41, "compute", 2 << 20), (42, "", 2 << 20),
    ]  # fmt: skip
    for number in (3, 4):
        info = tmp_path / "41" / "fdinfo" / str(number)
        info.write_text(info.read_text().replace("1000000000 ns", "1500000000 ns"))
    clients.read()  # for another value of the same reading
    assert clients.percent is None
    clients.read()
    assert clients.percent == 25.0
    assert [(one.busy_percent, one.shared_bytes) for one in clients.processes()] == [
        (25.0, 1 << 20), (0.0, 1 << 20),
    ]  # fmt: skip
    assert clients.memory_bytes == 4 << 20


def test_a_driver_that_does_not_answer_for_one_file_holds_up_no_other_card(rx_6600, monkeypatch):
    pci_card(rx_6600, "0000:20:00.0", "0x1a03", "0x2000", uevent="DRIVER=ast")
    tree, answers, text = SysTree(rx_6600), threading.Event(), SysTree.text

    def read_slowly(tree: SysTree, path: str) -> str | None:
        if path.endswith("vbios_version") and path.startswith(RX_6600):
            answers.wait(PATIENCE_S)
        return text(tree, path)

    monkeypatch.setattr(SysTree, "text", read_slowly)
    sensors = PcSensors(
        makers_of(tree),
        find_adapters=lambda: find_adapters(tree),
        is_card_asleep=lambda _slot: False,
        call_patience_s=0.5,
    )
    codes = {card.maker: card.unreadable_code for card in sensors.inventory().cards}
    assert codes == {"AMD": "silent", "ASPEED": None}
    assert not sensors.is_outdated
    answers.set()
    until(lambda: sensors.is_outdated)
    until(lambda: all(card.unreadable_code is None for card in sensors.inventory().cards))
