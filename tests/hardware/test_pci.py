import sys
from contextlib import contextmanager

import pytest

from gpu_studio.hardware.linux.adapters import find_adapters, is_asleep
from gpu_studio.hardware.linux.sys_tree import SysTree
from gpu_studio.hardware.makers import are_all_cards_asleep
from gpu_studio.hardware.pci import adapters_in_registry


def add_card(root, slot, device_class, vendor, device, status=None):
    folder = root / slot
    folder.mkdir()
    for name, value in (("class", device_class), ("vendor", vendor), ("device", device)):
        (folder / name).write_text(f"{value}\n")
    if status:
        (folder / "power").mkdir()
        (folder / "power" / "runtime_status").write_text(f"{status}\n")


@pytest.fixture
def bus(tmp_path):
    folder = tmp_path / "bus" / "pci" / "devices"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def tree(bus, tmp_path):
    return SysTree(tmp_path)


def test_display_controllers_are_found_and_named(bus, tree):
    add_card(bus, "0000:00:02.0", "0x030000", "0x8086", "0x9bc5")
    add_card(bus, "0000:01:00.0", "0x030000", "0x10de", "0x1d01")
    add_card(bus, "0000:01:00.1", "0x040300", "0x10de", "0x0fb8")  # its sound chip
    add_card(bus, "0000:03:00.0", "0x038000", "0x1002", "0x73ff")
    adapters = find_adapters(tree)
    assert [(a.name, a.vendor_id, a.pci_bus_id) for a in adapters] == [
        ("Intel UHD Graphics 630", 0x8086, "00000000:00:02.0"),
        ("NVIDIA GeForce GT 1030", 0x10DE, "00000000:01:00.0"),
        ("AMD Radeon RX 6600/6600 XT/6600M", 0x1002, "00000000:03:00.0"),
    ]


def test_a_suspended_card_is_asleep(bus, tree):
    add_card(bus, "0000:01:00.0", "0x030200", "0x10de", "0x1d01", "suspended")
    add_card(bus, "0000:02:00.0", "0x030200", "0x10de", "0x1d01", "active")
    assert [a.is_asleep for a in find_adapters(tree)] == [True, False]
    assert is_asleep("00000000:01:00.0", tree)
    assert not is_asleep("00000000:02:00.0", tree)
    assert not is_asleep("00000000:09:00.0", tree)


def test_without_a_known_name_the_maker_and_numbers_remain(bus, tree):
    add_card(bus, "0000:01:00.0", "0x030000", "0x1002", "0x1d01")  # NVIDIA's number for a GT 1030
    (adapter,) = find_adapters(tree)
    assert adapter.name == "AMD graphics (1002:1d01)"


class FakeRegistry:
    HKEY_LOCAL_MACHINE = "HKLM"

    def __init__(self, keys):
        self.keys = keys

    @contextmanager
    def OpenKey(self, root, path):
        entry = self.keys.get(path.rsplit("\\", 1)[-1])
        if entry is None:
            raise FileNotFoundError(path)
        yield entry

    def QueryValueEx(self, key, name):
        if name not in key:
            raise FileNotFoundError(name)
        return key[name], 1


def test_windows_reports_its_adapters_in_the_registry():
    card = {"DriverDesc": "NVIDIA GeForce GT 1030", "MatchingDeviceId": "pci\\ven_10de&dev_1d01"}
    registry = FakeRegistry(
        {
            "0000": card,
            "0001": {"DriverDesc": "Remote Display", "MatchingDeviceId": "RdpIdd_Indirect"},
            "0003": {"DriverDesc": "Radeon RX 580", "MatchingDeviceId": "PCI\\VEN_1002&DEV_67DF"},
            "0004": card,
            "0005": {"DriverDesc": "half an entry"},
        }
    )
    adapters = adapters_in_registry(registry)
    assert [(a.name, a.vendor_id) for a in adapters] == [
        ("NVIDIA GeForce GT 1030", 0x10DE),
        ("AMD Radeon RX 580", 0x1002),
    ]


@pytest.mark.skipif(
    sys.platform == "win32", reason="/sys is made of links, which Windows lets few users make"
)
def test_who_drives_a_card_is_reported(bus, tree, tmp_path):
    add_card(bus, "0000:01:00.0", "0x030000", "0x10de", "0x1d01")
    add_card(bus, "0000:02:00.0", "0x030000", "0x10de", "0x1d01")
    (tmp_path / "drivers" / "nouveau").mkdir(parents=True)
    (bus / "0000:01:00.0" / "driver").symlink_to(tmp_path / "drivers" / "nouveau")
    assert [a.kernel_driver for a in find_adapters(tree)] == ["nouveau", None]


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([], False),
        (["suspended", "suspending"], True),
        (["suspended", "active"], False),
        ([None], False),
    ],
)
def test_all_cards_sleep_only_where_there_are_some_and_none_is_awake(bus, tree, statuses, expected):
    add_card(bus, "0000:00:02.0", "0x030000", "0x8086", "0x9bc5", "active")
    for number, status in enumerate(statuses, start=1):
        add_card(bus, f"0000:0{number}:00.0", "0x030200", "0x10de", "0x1d01", status)
    assert are_all_cards_asleep(tree) is expected
