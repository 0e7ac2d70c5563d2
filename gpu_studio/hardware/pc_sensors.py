"""Read this PC's devices and their sensors, in the types of `core.devices.devices`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from gpu_studio.core.devices.devices import CardReading, Inventory, Reading
from gpu_studio.hardware.cpu import CpuSensor, describe_cpu
from gpu_studio.hardware.maker_cards import MakerCards
from gpu_studio.hardware.makers import MAKERS
from gpu_studio.hardware.pci import DisplayAdapter, display_adapters
from gpu_studio.hardware.surroundings import (
    cuda_variables,
    has_secure_boot,
    is_wsl,
    linux_distribution,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.hardware.card_reader import Maker


class PcSensors:
    """The sensors of this PC: of the CPU and of every maker's cards.

    Args:
        makers: whose cards are read; the others' are only named.
        find_adapters: returns the graphics cards on the bus.
        visible_devices: CUDA_VISIBLE_DEVICES of the engines; None means "not set".
        options: passed on to each `MakerCards`.
    """

    def __init__(
        self,
        makers: Sequence[Maker] = MAKERS,
        find_adapters: Callable[[], Sequence[DisplayAdapter]] = display_adapters,
        visible_devices: str | None = os.environ.get("CUDA_VISIBLE_DEVICES"),
        **options: Any,
    ) -> None:
        self._find_adapters = find_adapters
        self._cpu = CpuSensor()
        self._makers = [
            MakerCards(
                maker, find_adapters=find_adapters, visible_devices=visible_devices, **options
            )
            for maker in makers
        ]

    def inventory(self) -> Inventory:
        """Return all devices of this PC, with a first reading."""
        adapters = self._find_adapters()
        found = [cards.find(adapters) for cards in self._makers]
        (driver, _), *others = found
        known = {cards.maker.vendor_id for cards in self._makers}
        return Inventory(
            devices=(
                describe_cpu(self._cpu.read()), *(card for _, cards in found for card in cards),
            ),
            driver=driver,
            other_drivers=tuple(other for other, _ in others),
            other_gpus=tuple(one.name for one in adapters if one.vendor_id not in known),
            is_wsl=is_wsl(),
            distribution=linux_distribution(),
            secure_boot=has_secure_boot(),
            variables=cuda_variables(),
        )  # fmt: skip

    def reading(self) -> Reading:
        """Return one reading of the CPU and of every card of the last inventory."""
        return Reading(
            taken_at_s=time.monotonic(),
            cpu=self._cpu.read(),
            cards=self.card_readings(),
        )

    def card_readings(self) -> tuple[CardReading, ...]:
        """Return one reading of every card of the last inventory."""
        return tuple(reading for cards in self._makers for reading in cards.readings())

    @property
    def is_outdated(self) -> bool:
        """Whether the last inventory is out of date; see `MakerCards.is_outdated`."""
        return any(cards.is_outdated for cards in self._makers)

    def rest(self) -> None:
        """End the sessions with the drivers, so that a card can fall asleep."""
        for cards in self._makers:
            cards.rest()

    @property
    def has_left_behind(self) -> bool:
        """Whether a call into a driver has not returned: its thread cannot be ended."""
        return any(cards.has_left_behind for cards in self._makers)
