"""What is known of a PC, its driver and its PyTorch, and the questions findings ask of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.devices import ASLEEP, number_cards
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.core.wheel_table import TorchBuild, WheelTable, load_table
from gpu_studio.core.wheels import (
    CudaCard,
    WheelChoice,
    choose_wheel,
    platform_key,
    serves,
    version_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.devices import Device, Inventory
    from gpu_studio.core.protocol import EngineDescribed


class PcFacts:
    """Inventory and engine together, with the questions that more than one finding asks.

    Args:
        inventory: what the sensor reader found.
        engine: the engine's account of itself, None while it is not known.
        system: "Linux" or "Windows".
        machine: "x86_64" or "aarch64".

    Attributes:
        cards: those that can be read, with the numbers that this engine gives them.
    """

    def __init__(
        self, inventory: Inventory, engine: EngineDescribed | None, system: str, machine: str
    ) -> None:
        self.inventory = inventory
        self.engine = engine
        self.driver = inventory.driver
        self.system = system
        self._machine = machine
        self._platform_key = platform_key(system, machine)
        visible_devices = engine.visible_devices if engine else None
        # CUDA counts a sleeping card too.
        usable = [card for card in inventory.cards if card.unreadable in (None, ASLEEP)]
        numbered = number_cards(usable, visible_devices)
        self.cards = [card for card in numbered if card.unreadable is None]
        self._table = _table()

    @property
    def cuda_build(self) -> EngineDescribed | None:
        """The engine, if its PyTorch is built for CUDA."""
        return self.engine if self.engine and self.engine.cuda_build else None

    def choice(self, cards: Sequence[Device]) -> WheelChoice | None:
        """Return the build that serves cards; None where that cannot be said."""
        known = [
            CudaCard(card.name, capability) for card in cards if (capability := capability_of(card))
        ]
        if self._table is None or not known or not version_numbers(self.driver.version):
            return None
        build = self.installed_build()
        return choose_wheel(
            known,
            self.driver.version,
            system=self.system,
            machine=self._machine,
            installed_tag=build.tag if build else None,
            table=self._table,
        )

    def installed_build(self) -> TorchBuild | None:
        """Return the table's row for the installed PyTorch; None where it has none."""
        return self._build_named("".join(map(str, self._cuda_version()[:2])))

    def has_code(self, card: Device) -> bool | None:
        """Return whether the installed PyTorch has code for a card; None where not known."""
        capability = capability_of(card)
        if self.cuda_build is None or capability is None:
            return None
        arch_list: Sequence[str] = self.cuda_build.arch_list
        build = self.installed_build()
        if not arch_list and build:
            # PyTorch does not tell it where CUDA cannot be started.
            arch_list = build.arch_list.get(self._platform_key, ())
        return serves(arch_list, capability) if arch_list else None

    def has_any_build(self, card: Device) -> bool:
        """Return whether any published PyTorch of the program's version has code for a card."""
        capability = capability_of(card)
        if capability is None or self._table is None:
            return False
        arch_lists = [build.arch_list.get(self._platform_key, ()) for build in self._table.builds]
        return any(serves(arch_list, capability) for arch_list in arch_lists)

    def driver_floor(self) -> str | None:
        """Return the oldest driver that runs the installed PyTorch, if this one is older.

        It is the same for all of a CUDA's generation (CUDA minor version compatibility).
        """
        build = self._build_named("".join(map(str, self._cuda_version()[:1])))
        floor = build.driver_floor.get(self.system.lower()) if build else None
        own = version_numbers(self.driver.version)
        return floor if floor and own and own < version_numbers(floor) else None

    def _cuda_version(self) -> tuple[int, ...]:
        return version_numbers(self.cuda_build.cuda_build) if self.cuda_build else ()

    def _build_named(self, digits: str) -> TorchBuild | None:
        builds = self._table.builds if self._table and digits else ()
        return next((build for build in builds if build.tag.startswith(f"cu{digits}")), None)


def capability_of(card: Device) -> tuple[int, int] | None:
    """Return a card's compute capability as a pair of whole numbers."""
    numbers = version_numbers(card.compute_capability)
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _table() -> WheelTable | None:
    try:
        return load_table()
    except MissingResourceError:
        return None
