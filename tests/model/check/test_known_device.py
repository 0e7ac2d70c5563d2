from __future__ import annotations

from gpu_studio.core.devices.devices import Device, Driver, Inventory
from gpu_studio.model.check.card_check import known_device
from gpu_studio.model.devices.device_board import DeviceRow


def test_each_card_has_the_version_of_its_own_driver_in_the_record():
    inventory = Inventory(devices=(), driver=Driver(version="595.71.05"))
    radeon = Device(kind="cuda", maker="AMD", name="Radeon RX 6600", driver_version="6.12.12")
    geforce = Device(kind="cuda", maker="NVIDIA", name="GTX 1650", compute_capability="7.5")
    versions = [
        known_device(
            DeviceRow(identity=one.name, name=one.name, label=one.name, device=one), None, inventory
        ).driver_version
        for one in (radeon, geforce)
    ]
    assert versions == ["6.12.12", "595.71.05"]
