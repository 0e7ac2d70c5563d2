"""What the window knows of a device before an engine describes it, for the record of a check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.check.checked_card import checked_card
from gpu_studio.core.devices.devices import uuid_tail
from gpu_studio.core.messages.check_messages import CheckedDevice

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.model.devices.device_board import DeviceRow


def known_device(
    row: DeviceRow, engine: EngineDescribed | None, inventory: Inventory | None
) -> CheckedDevice:
    """Return a device as the sensors and the engine's description of itself have it."""
    device = row.device
    torch_version = engine.torch_version if engine is not None else ""
    address = row.address or row.number or row.identity
    if device is None:
        return CheckedDevice(address=address, name=row.name, torch_version=torch_version)
    # The inventory's first driver is NVIDIA's, and only its cards have a compute capability.
    is_of_driver = inventory is not None and device.compute_capability is not None
    version = inventory.driver.version if inventory and is_of_driver else device.driver_version
    return msgspec.structs.replace(
        checked_card(device, address),
        driver_version=version,
        torch_version=torch_version,
        uuid_tail=uuid_tail(device.uuid),
    )
