"""The facts about a PC, its driver and its PyTorch, as the findings need them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpu_studio.core import operating_system
from gpu_studio.core.devices.access import (
    capability_of,
    has_code,
    lists_code,
    numbered_cards,
    probe_of,
)
from gpu_studio.core.devices.cards import (
    chip_of_card,
    driver_branches,
    first_drivers,
    torch_card_of,
)
from gpu_studio.core.devices.devices import CUDA_BUILD
from gpu_studio.core.devices.link import links_under_load
from gpu_studio.core.devices.maker_cards import maker_cards
from gpu_studio.core.maker_builds import JudgedCard, judge, serves, version_numbers
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.core.wheel_table import PublishedBuild, TorchBuild, WheelTable, load_table
from gpu_studio.core.wheels import (
    CudaCard,
    WheelChoice,
    choose_wheel,
    driver_floor,
    last_build,
    platform_key,
    published_build,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.devices.access import CardProbed, PcProbed
    from gpu_studio.core.devices.devices import CardReading, Device, Inventory, Reading
    from gpu_studio.core.devices.link import Link
    from gpu_studio.core.messages.engine_messages import EngineDescribed, TorchCard


class PcFacts:
    """The facts behind all findings, and the questions that several findings share.

    Args:
        inventory: the devices that the sensor reader found.
        engine: the engine's description of itself, None before it is known.
        system: "Linux" or "Windows".
        machine: "x86_64" or "aarch64".
        probe: the results of a real kernel on each card; None if the cards were not tested.
        readings: the sensor readings since then, oldest first.
        links: the fastest link of each card under load; None takes it from ``readings``.
        absence: why there is no PyTorch for an engine; empty if there is one.

    Attributes:
        python: the Python that builds are looked for, this one's.
        driver_system: the system that NVIDIA's driver is for: in WSL 2 it is the one of Windows.
        nvidia_cards: the cards of NVIDIA's, which these findings are mostly about.
        others: the cards of all other makers.
        cards: NVIDIA's readable cards, with this engine's numbers.
        numbered: all cards, with this engine's numbers.
        sleeping: the cards that are switched off, with their numbers: PyTorch wakes them.
    """

    def __init__(
        self,
        inventory: Inventory,
        engine: EngineDescribed | None,
        system: str,
        machine: str,
        probe: PcProbed | None = None,
        readings: Sequence[Reading] = (),
        links: Mapping[str, Link] | None = None,
        absence: str = "",
    ) -> None:
        self.inventory = inventory
        self.absence = absence
        self.engine = engine
        self.driver = inventory.driver
        self.system = system
        self.driver_system = "Windows" if inventory.is_wsl else system
        self.probe = probe
        self.readings = readings
        self.links = links_under_load(inventory.cards, readings) if links is None else links
        self._machine = machine
        self._platform_key = platform_key(system, machine)
        self.python = sys.version_info[:2]
        visible_devices = engine.visible_devices if engine else None
        self.nvidia_cards = [card for card in inventory.cards if card.build_kind == CUDA_BUILD]
        self.others = [card for card in inventory.cards if card.build_kind != CUDA_BUILD]
        # CUDA counts a sleeping card, too.
        usable = [card for card in self.nvidia_cards if card.is_cudas and card.answers_or_sleeps]
        numbered = numbered_cards(usable, visible_devices)
        self.cards = [card for card in numbered if card.unreadable is None]
        self.sleeping = [card for card in numbered if card.unreadable is not None]
        self.numbered = numbered_cards(
            inventory.cards,
            visible_devices,
            engine.build_kind if engine else CUDA_BUILD,
            engine.cards if engine else (),
        )
        self._table = _table()

    @property
    def judged_cards(self) -> list[tuple[Device, JudgedCard]]:
        """The AMD and Intel cards, each with the build that is for it here, or why none is."""
        table = self._table
        if table is None:
            return []
        kernel = operating_system.release() if self.system == "Linux" else ""
        return [
            (card, judge(known, table, self._platform_key, kernel, self.python))
            for card, known in maker_cards(self.inventory)
        ]

    @property
    def cuda_build(self) -> EngineDescribed | None:
        """The engine, if its PyTorch is built for CUDA."""
        return self.engine if self.engine and self.engine.cuda_build else None

    @property
    def driver_number(self) -> int | None:
        """The first number of the installed driver's version: 580; None if unknown."""
        numbers = version_numbers(self.driver.version or self.driver.library_version)
        return numbers[0] if numbers else None

    def choice(self, cards: Sequence[Device]) -> WheelChoice | None:
        """Return the build that supports the cards; None if that is not known."""
        known = _cuda_cards(cards)
        if self._table is None or not known or not version_numbers(self.driver.version):
            return None
        build = self._installed_build()
        return choose_wheel(
            known,
            self.driver.version,
            system=self.system,
            machine=self._machine,
            driver_system=self.driver_system,
            installed_tag=build.tag if build else None,
            table=self._table,
        )

    def _own_arch_list(self) -> Sequence[str]:
        """Return the architectures that the installed PyTorch has code for; empty if unknown."""
        engine = self.cuda_build
        if engine is None or self._table is None:
            return engine.arch_list if engine else ()
        if engine.arch_list:
            return engine.arch_list
        # PyTorch does not report it if CUDA cannot start.
        own = self._installed_build()
        if own is not None and version_numbers(engine.torch_version) == version_numbers(
            self._table.torch_version
        ):
            return own.arch_list.get(self._platform_key, ())
        published = published_build(self._table, engine.torch_version, engine.cuda_build)
        return published.arch_list if published else ()

    def has_code(self, card: Device) -> bool | None:
        """Return whether the installed PyTorch has code for a card; None if unknown.

        The result of a real kernel overrules the lists.
        """
        return has_code(card, self._own_arch_list(), self.probed(card))

    def lists_code(self, card: Device) -> bool | None:
        """Return whether PyTorch's own list has code for a card; None if unknown."""
        return lists_code(card, self._own_arch_list())

    @property
    def has_cuda_builds(self) -> bool:
        """Whether PyTorch publishes CUDA builds for this system and processor."""
        builds = self._table.builds if self._table else ()
        return any(self._platform_key in build.arch_list for build in builds)

    def any_build(self, card: Device) -> TorchBuild | None:
        """Return the build of the program's PyTorch version with code for a card.

        Of several builds it is the one that runs with the oldest driver.
        """
        capability = capability_of(card)
        builds = self._table.builds if self._table else ()
        serving = [
            build
            for build in builds
            if capability and serves(build.arch_list.get(self._platform_key, ()), capability)
        ]
        return min(serving, key=lambda build: version_numbers(self.floor_of(build)), default=None)

    def floor_of(self, build: TorchBuild) -> str:
        """Return the oldest driver that runs a build of the program's PyTorch version."""
        return build.driver_floor[self.driver_system.lower()]

    def served_less(self, tag: str) -> list[str]:
        """Return the cards that the installed PyTorch supports, but the given build does not."""
        builds = self._table.builds if self._table else ()
        archs = [b.arch_list.get(self._platform_key, ()) for b in builds if b.tag == tag]
        return [
            card.short_name
            for card in self.cards
            if self.has_code(card)
            and (capability := capability_of(card)) is not None
            and not any(serves(arch_list, capability) for arch_list in archs)
        ]

    @property
    def knows_older_builds(self) -> bool:
        """Whether the table of published builds is for this kind of processor."""
        return self._platform_key.endswith("-x86_64")

    def last_build(self, card: Device) -> PublishedBuild | None:
        """Return the newest published build with code for a card, of any PyTorch version."""
        capability = capability_of(card)
        return last_build(self._table, capability) if self._table and capability else None

    def driver_floor(self) -> str | None:
        """Return the oldest driver for the installed PyTorch, if this PC's driver is older."""
        engine, own = self.cuda_build, version_numbers(self.driver.version)
        if engine is None or self._table is None or not own:
            return None
        floor = driver_floor(self._table, engine.cuda_build, self.driver_system)
        return floor if floor and own < version_numbers(floor) else None

    def last_driver(self, card: Device) -> str:
        """Return the last drivers that support a card, ``branch 580``; empty if the newest does.

        Windows shows no branch, only the drivers' own numbers: ``581 or 582``.
        """
        branches = driver_branches(architecture_of(card))
        if branches is None:
            return ""
        return branches.windows if self.driver_system == "Windows" else f"branch {branches.last}"

    def is_dropped(self, card: Device) -> bool:
        """Return whether the installed driver no longer supports a card."""
        branches, number = driver_branches(architecture_of(card)), self.driver_number
        if card.unreadable is None or branches is None or number is None:
            return False
        return number >= branches.first_without

    def needed_driver(self, card: Device) -> str:
        """Return the first driver for a card that the installed one is too old for; else empty."""
        chip, installed = chip_of_card(card), self.driver.version or self.driver.library_version
        first = first_drivers(chip.compute_capability) if chip is not None else None
        if card.unreadable is None or first is None or not version_numbers(installed):
            return ""
        needed = first.windows if self.driver_system == "Windows" else first.linux
        return needed if version_numbers(installed) < version_numbers(needed) else ""

    def probed(self, card: Device) -> CardProbed | None:
        """Return the result of a kernel on a card; None if the card was not tested."""
        return probe_of(card, self.probe)

    def torch_card(self, card: Device) -> TorchCard | None:
        """Return PyTorch's properties of a card; None if there are none."""
        torch_card = torch_card_of(card, self.engine.cards) if self.engine else None
        probed = self.probed(card)
        return torch_card or (probed.card if probed else None)

    def reading_of(self, card: Device) -> CardReading | None:
        """Return the last reading of a card."""
        return self.readings[-1].card(card) if self.readings else None

    def _installed_build(self) -> TorchBuild | None:
        """Return the program's row for the installed CUDA build; None if it has none."""
        numbers = version_numbers(self.cuda_build.cuda_build) if self.cuda_build else ()
        tag = "cu" + "".join(map(str, numbers[:2]))
        builds = self._table.builds if self._table else ()
        return next((build for build in builds if build.tag == tag), None)


def architecture_of(card: Device) -> str | None:
    """Return a card's architecture; its chip's if the card does not report it."""
    chip = chip_of_card(card)
    return card.architecture or (chip.architecture if chip else None)


def recommended_build(inventory: Inventory) -> WheelChoice:
    """Return the build to install on a PC, with the reason.

    Raises:
        MissingResourceError: The table of builds is missing or broken.
    """
    return choose_wheel(
        _cuda_cards(inventory.cards),
        inventory.driver.version,
        others=[card for _, card in maker_cards(inventory)],
        driver_system="Windows" if inventory.is_wsl else None,
    )


def _cuda_cards(cards: Sequence[Device]) -> list[CudaCard]:
    return [CudaCard(card.name, known) for card in cards if (known := capability_of(card))]


def _table() -> WheelTable | None:
    try:
        return load_table()
    except MissingResourceError:
        return None
