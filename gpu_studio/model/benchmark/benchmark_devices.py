"""The devices that a benchmark can run on, and their names beside a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.wheels import serves, version_numbers
from gpu_studio.model.devices.card_access import access_of

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.devices.devices import Device, Inventory
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.run_messages import RunFinished


class BenchmarkDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device to benchmark. ``address`` is None if PyTorch cannot use it, for the ``reason``."""

    identity: str
    label: str
    name: str
    address: str | None
    reason: str = ""


def device_choices(
    inventory: Inventory | None, description: EngineDescribed | None
) -> list[BenchmarkDevice]:
    """Return the CPU and then every card; only the CPU until the devices are found."""
    name = inventory.cpu.name if inventory else "CPU"
    choices = [BenchmarkDevice(identity="cpu", label="CPU", name=name, address="cpu")]
    for card in inventory.cards if inventory else ():
        address, reason = _address(card, description)
        label = _card_label(card, inventory)
        choices.append(
            BenchmarkDevice(
                identity=card.identity, label=label, name=card.name, address=address, reason=reason
            )
        )
    return choices


def device_label(address: str, inventory: Inventory | None) -> str:
    """Return a device's name beside its numbers: ``CPU`` or ``GT 1030``."""
    if is_cpu(address):
        return "CPU"
    card = inventory.find(address) if inventory else None
    return _card_label(card, inventory) if card else address


def run_label(run: Run, inventory: Inventory | None) -> str:
    """Return the name of a run's device; a recording names its own devices."""
    name = run.result.device_name if run.result else run.device_name
    return _label_of(run.request.device, name, run.recording, inventory)


def result_label(result: RunFinished, inventory: Inventory | None) -> str:
    """Return the name of a result's device, as `run_label` does."""
    return _label_of(result.device, result.device_name, result.recording, inventory)


def _label_of(address: str, name: str, recording: str | None, inventory: Inventory | None) -> str:
    if recording is None:
        return device_label(address, inventory)
    return f"{'CPU' if is_cpu(address) else short_name(name or address)}, recorded"


def _card_label(card: Device, inventory: Inventory | None) -> str:
    """Return the card's short name; cards of the same name also get their addresses."""
    same = [other for other in inventory.cards if other.name == card.name] if inventory else []
    if len(same) > 1:
        return f"{card.short_name} ({card.address or card.pci_bus_id or card.identity})"
    return card.short_name


def _address(card: Device, description: EngineDescribed | None) -> tuple[str | None, str]:
    if description is None:
        return None, "Not known until the engine has started."
    access = access_of(card, description)
    if access.address is None:
        return None, access.reason
    capability = version_numbers(card.compute_capability)[:2]
    if len(capability) == 2 and description.arch_list:
        major, minor = capability
        if not serves(description.arch_list, (major, minor)):
            return None, f"This PyTorch has no code for it ({card.compute_capability})."
    return access.address, ""
