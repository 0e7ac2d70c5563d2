"""Rows that people read, and what they are made from: window, report and terminal show the same.

A value that a device refuses is "n/a" with its reason, never 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.pc.devices import CardReading, Device, Inventory, Reading, Telemetry
from gpu_studio.core.pc.silicon import torch_card_of
from gpu_studio.core.units import format_bytes, three_digits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpu_studio.core.pc.link import Link
    from gpu_studio.core.pc.torch_facts import TorchCard
    from gpu_studio.core.protocol import EngineDescribed, MemoryRead

NOT_AVAILABLE = "n/a"
SPACE = "\u202f"  # narrow no-break space: a number and its unit stay on one line


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One row: ``reason`` says why a value is "n/a", or more about one that is there."""

    key: str
    label: str
    value: str
    reason: str = ""

    @property
    def is_known(self) -> bool:
        """Whether there is a value."""
        return not self.value.startswith(NOT_AVAILABLE)


class FactGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Rows under one heading."""

    title: str
    facts: tuple[Fact, ...]


class PcSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known of the PC at one time.

    ``memory`` is by PyTorch's address, ``links`` (as a card had it while it worked) by identity.
    """

    inventory: Inventory
    reading: Reading | None = None
    engine: EngineDescribed | None = None
    current_device: int | None = None
    memory: Mapping[str, MemoryRead] = {}
    links: Mapping[str, Link] = {}

    def telemetry(self, device: Device) -> Telemetry:
        """Return the newest telemetry of a device: of the last reading, or of its finding."""
        if self.reading is None:
            return device.telemetry
        if device.kind == "cpu":
            return self.reading.cpu
        card = self.card_reading(device)
        return Telemetry() if card is None else card.telemetry

    def torch_card(self, device: Device) -> TorchCard | None:
        """Return PyTorch's own account of a card; None where there is none."""
        return torch_card_of(device, self.engine.cards) if self.engine else None

    def card_reading(self, device: Device) -> CardReading | None:
        """Return what the last reading says of a card."""
        cards = self.reading.cards if self.reading else ()
        return next((card for card in cards if card.uuid == device.identity), None)

    def trouble(self, device: Device) -> str:
        """Return the sentence that says why a card cannot be read; empty where it can."""
        card = self.card_reading(device)
        return (card.error if card else device.unreadable) or ""


def fact(key: str, label: str, value: str | None, why_not: str = "", note: str = "") -> Fact:
    """Return a row; ``why_not`` is said where there is no value, ``note`` where there is one."""
    text = value or NOT_AVAILABLE
    is_known = not text.startswith(NOT_AVAILABLE)
    return Fact(key=key, label=label, value=text, reason=note if is_known else why_not)


def bytes_text(size_bytes: int | None) -> str | None:
    """Return a size in words."""
    return None if size_bytes is None else format_bytes(size_bytes)


def percent_text(percent: float | None) -> str | None:
    """Return a percentage in words: ``4 %``."""
    return None if percent is None else f"{percent:.0f}{SPACE}%"


def celsius_text(temperature_c: float | None) -> str | None:
    """Return a temperature in words: ``41 °C``."""
    return None if temperature_c is None else f"{temperature_c:.0f}{SPACE}°C"


def amount_text(
    value: float | None, most: float | None, unit: str, most_word: str = "highest"
) -> str | None:
    """Return a value beside what it may be at most: ``9.5 of 30 W``; a card may tell only one."""
    if value is None and most is None:
        return None
    most_text = None if most is None else f"{_number(most, unit)}{SPACE}{unit}"
    if value is None:
        return f"{NOT_AVAILABLE} ({most_word} {most_text})"
    text = _number(value, unit)
    return f"{text} of {most_text}" if most_text else f"{text}{SPACE}{unit}"


def _number(value: float, unit: str) -> str:
    if unit != "W":
        return f"{value:.0f}"
    return f"{value:.0f}" if value == int(value) else three_digits(value)
