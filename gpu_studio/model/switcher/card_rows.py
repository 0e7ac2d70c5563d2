"""The devices that the Switcher offers, as rows, and whether PyTorch can use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.devices.facts import identity_line
from gpu_studio.core.devices.findings import find
from gpu_studio.core.units import format_bytes
from gpu_studio.model.devices.card_access import access_of, counted_cards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpu_studio.core.devices.devices import Device, Inventory, Telemetry
    from gpu_studio.core.messages.engine_messages import EngineDescribed


class CardRow(msgspec.Struct, frozen=True, kw_only=True):
    """One device to choose.

    Attributes:
        number: ``cpu``, ``cuda:0``, ``hidden``, or a dash if PyTorch has no number for it.
        facts: the texts after the name: free memory, "current", why it is hidden.
        about: the card's numbers, its compute capability, and whether PyTorch can use it.
        address: the target of a move; None if this engine cannot address the device.
        cuda_index: the argument of ``torch.cuda.set_device``, even if CUDA does not work.
        uuid: the value for CUDA_VISIBLE_DEVICES; None if the card reports none.
        warning: why PyTorch cannot use the card; empty if it can.
    """

    identity: str
    number: str
    name: str
    facts: str
    address: str | None
    cuda_index: int | None = None
    uuid: str | None = None
    is_current: bool = False
    warning: str = ""
    about: str = ""


def counted_rows(description: EngineDescribed, current_device: int | None) -> list[CardRow]:
    """Return the CPU and the cards that an engine counts; nothing else is known about them."""
    rows = [
        CardRow(identity="cpu", number="cpu", name="CPU", facts="always available", address="cpu")
    ]
    for index, address in enumerate(counted_cards(description)):
        is_current = index == (current_device or 0)
        rows.append(
            CardRow(
                identity=address,
                number=address,
                name="Card",
                facts="current" if is_current else "",
                address=address,
                cuda_index=index,
                is_current=is_current,
            )
        )
    return rows


def card_rows(
    inventory: Inventory,
    description: EngineDescribed | None,
    current_device: int | None,
    latest: Callable[[Device], Telemetry | None],
    warnings: Mapping[str, str],
) -> list[CardRow]:
    """Return the CPU and every card.

    Args:
        inventory: the devices with the numbers of this engine.
        description: the engine's description of itself; None before it starts.
        current_device: the card chosen in this engine; CUDA's default is the first.
        latest: returns the newest telemetry of a device.
        warnings: the results of `card_warnings`.
    """
    free = _free(latest(inventory.cpu))
    cpu = CardRow(
        identity="cpu",
        number="cpu",
        name=inventory.cpu.short_name,
        facts="  ·  ".join(
            part for part in ("always available", free and f"{free} RAM free") if part
        ),
        address="cpu",
    )
    return [
        cpu,
        *(
            _card_row(
                card, description, current_device, latest(card), warnings.get(card.identity, "")
            )
            for card in inventory.cards
        ),
    ]


def _card_row(
    card: Device,
    description: EngineDescribed | None,
    current_device: int | None,
    telemetry: Telemetry | None,
    warning: str,
) -> CardRow:
    access = access_of(card, description)
    is_current = access.address is not None and card.cuda_index == (current_device or 0)
    facts = [_free_of(card, telemetry)]
    if is_current:
        facts.append("current" if current_device is not None else "current by default")
    if access.is_hidden:
        facts.append("hidden by CUDA_VISIBLE_DEVICES")
    return CardRow(
        identity=card.identity,
        number=access.address or ("hidden" if access.is_hidden else "–"),
        name=card.short_name,
        facts="  ·  ".join(fact for fact in facts if fact),
        address=access.address,
        cuda_index=card.cuda_index,
        uuid=card.uuid,
        is_current=is_current,
        warning=warning,
        about="  ·  ".join(part for part in _about(card, access.address, warning) if part),
    )


def _about(card: Device, address: str | None, warning: str) -> Iterator[str]:
    yield identity_line(card)
    if card.compute_capability:
        yield f"compute capability {card.compute_capability}"
    if address is not None and not warning:
        yield "this PyTorch can use it"


def card_warnings(inventory: Inventory, description: EngineDescribed | None) -> dict[str, str]:
    """Return why PyTorch cannot use a card, by identity, worded as on the Devices tab."""
    if description is None:
        return {}
    found = find(inventory, description)
    warnings = {}
    for card in inventory.cards:
        access = access_of(card, description)
        about = [finding for finding in found if finding.severity in ("failure", "warning")]
        usable = {finding.device_uuid for finding in found if finding.code == "ok"}
        own = [
            finding.sentence
            for finding in about
            if finding.device_uuid == card.identity and card.identity not in usable
        ]
        common = [finding.sentence for finding in about if finding.device_uuid is None]
        if access.address is None and not access.is_hidden:
            warnings[card.identity] = (own + common + [access.reason])[0]
        elif own and not access.is_hidden:
            warnings[card.identity] = own[0]
    return warnings


def _free_of(card: Device, telemetry: Telemetry | None) -> str:
    total = format_bytes(card.memory_total_bytes) if card.memory_total_bytes else ""
    free = _free(telemetry)
    if free and total:
        return f"{free} of {total} free"
    return f"{free} free" if free else total


def _free(telemetry: Telemetry | None) -> str:
    if telemetry is None or telemetry.memory_free_bytes is None:
        return ""
    return format_bytes(telemetry.memory_free_bytes)
