"""The devices of a PC, their sensors and the processes on them.

A card's identity is its UUID. Its numbers can change from start to start: ``torch_index`` is the
one among PyTorch's accelerators of its kind, ``driver_index`` the one in its driver's list.
A value that a card does not report is None, never 0; the maker's file in hardware/ decides that.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from gpu_studio.core.device_name import CPU, DeviceName, address_at
from gpu_studio.core.devices.signs import Signs, lender_of
from gpu_studio.core.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Sequence

# Why a card cannot be read. "silent": a call into its driver never returned. "driver_updated": the
# driver's library and its kernel module have different versions.
Unreadable = Literal[
    "asleep", "lost", "not_served", "no_driver", "no_permission", "silent", "driver_updated",
    "unknown",
]  # fmt: skip
# Why a driver cannot be asked. "driver_updated" is the same as above.
DriverProblem = Literal[
    "not_installed", "not_running", "driver_updated", "no_permission", "unknown",
]  # fmt: skip
CUDA_BUILD: Final = "cuda"
MAKERS: Final = {CUDA_BUILD: "NVIDIA", "rocm": "AMD", "xpu": "Intel"}
"""Whose cards each kind of PyTorch's builds uses."""
_BUILD_KINDS = {maker: kind for kind, maker in MAKERS.items()}
_CUDA = "cuda"
# Drivers of NVIDIA's cards that are part of Linux: NVML and CUDA know nothing of their cards.
OPEN_NVIDIA_DRIVERS = frozenset({"nouveau", "nova", "nova_core", "nova_drm"})
# The compute modes that let no program, and only one, run on a card.
PROHIBITED, EXCLUSIVE_PROCESS = "prohibited", "exclusive process"
# `Device.unreadable` of a card that is asleep.
ASLEEP = (
    "The card is asleep to save power, and reading it would wake it. It wakes when a program uses "
    "it."
)


class GpuProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that holds a context on a card; its memory is None if the system hides it.

    ``kind`` is "compute", "graphics", or both; empty if nothing says it. ``busy_percent`` is its
    part of the card's time in the last ``busy_over_s`` seconds. ``shared_bytes`` is the PC's memory
    that it has through the card. ``is_yours``: your user's, which you may end. ``unit`` is the
    container or the service that it belongs to. ``family`` are the processes that led to it, its
    parent first.
    """

    pid: int
    name: str = "unknown"
    user: str | None = None
    kind: str = "compute"
    memory_bytes: int | None = None
    busy_percent: float | None = None
    shared_bytes: int | None = None
    busy_over_s: float = 1.0
    is_yours: bool | None = None
    unit: str = ""
    family: tuple[int, ...] = ()


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """The CPU or one card, with the facts that do not change while the program runs.

    ``kind`` is PyTorch's word, ``cpu`` or ``cuda``; ``maker`` is a card's, ``NVIDIA``.
    ``pcie_generation_max`` is the maximum of card and slot together. ``sm_clock_base_mhz`` is the
    advertised clock, below the highest boost.
    ``pci_device_id`` is the chip's number without the vendor id.
    ``bar1_bytes`` is how much of the card the CPU can reach at once, with Resizable BAR all of it.
    ``kernel_driver`` is the card's driver on Linux, ``nvidia`` or ``nouveau``, ``driver_version``
    its version where the card has a driver of its own. ``is_off_bus``: the slot of a card that
    cannot be read answers with ones only, ``rev ff`` in lspci. ``chip`` is its name, ``Navi 23``,
    and ``architecture`` that of its units, ``Pascal`` or ``gfx1032``. An integrated card has the
    PC's memory: ``memory_total_bytes`` are then the ``dedicated_memory_bytes`` that are set aside
    for it and the ``shared_memory_bytes`` that it may take. ``unreadable`` says in a sentence why a
    card cannot be read, and ``unreadable_code`` says it to programs. The device slows itself down
    from ``slowdown_c`` on. ``is_laptop``: the PC has a battery.
    """

    kind: str
    name: str
    maker: str = ""
    uuid: str | None = None
    memory_total_bytes: int | None = None
    telemetry: Telemetry = Telemetry()
    # Cards only.
    compute_capability: str | None = None
    architecture: str | None = None
    torch_index: int | None = None
    driver_index: int | None = None
    pci_bus_id: str | None = None
    multiprocessors: int | None = None
    cuda_cores: int | None = None
    memory_bus_width_bits: int | None = None
    bar1_bytes: int | None = None
    sm_clock_max_mhz: float | None = None
    sm_clock_base_mhz: float | None = None
    memory_clock_max_mhz: float | None = None
    pcie_generation_max: int | None = None
    pcie_width_max: int | None = None
    vbios: str | None = None
    display_active: bool | None = None
    compute_mode: str | None = None
    ecc_enabled: bool | None = None
    mig_enabled: bool | None = None
    processes: tuple[GpuProcess, ...] = ()
    shutdown_c: float | None = None
    slowdown_c: float | None = None
    operating_max_c: float | None = None
    pci_device_id: int | None = None
    kernel_driver: str | None = None
    driver_version: str | None = None
    is_off_bus: bool = False
    chip: str | None = None
    is_integrated: bool | None = None
    dedicated_memory_bytes: int | None = None
    shared_memory_bytes: int | None = None
    unreadable: str | None = None
    unreadable_code: Unreadable | None = None
    # CPU only.
    cores: int | None = None
    threads: int | None = None
    clock_max_mhz: float | None = None
    is_laptop: bool = False
    # The name of the other PC that has it; empty for this one.
    pc: str = ""

    @property
    def is_cpu(self) -> bool:
        """Whether this is the CPU and not a card."""
        return self.kind == CPU

    @property
    def build_kind(self) -> str | None:
        """The kind of PyTorch's builds that use such cards; None if no build does."""
        return _BUILD_KINDS.get(self.maker, CUDA_BUILD if self.kind == _CUDA else None)

    @property
    def has_open_driver(self) -> bool:
        """Whether Linux' own driver holds a card of NVIDIA's, which CUDA then does not see."""
        return self.build_kind == CUDA_BUILD and self.kernel_driver in OPEN_NVIDIA_DRIVERS

    @property
    def lender(self) -> str:
        """The driver that holds the card for a virtual machine; empty if none does."""
        return lender_of(self.kernel_driver)

    @property
    def is_apart(self) -> bool:
        """Whether it is lent, lost or off the bus: no driver and no build changes that."""
        return bool(self.lender) or self.is_off_bus or self.unreadable_code == "lost"

    @property
    def is_cudas(self) -> bool:
        """Whether CUDA could count it."""
        return self.build_kind == CUDA_BUILD and not self.has_open_driver

    @property
    def is_asleep(self) -> bool:
        """Whether the system has switched it off to save power."""
        return self.unreadable_code == "asleep"

    @property
    def answers_or_sleeps(self) -> bool:
        """Whether CUDA counts it: it can be read, or could be if reading would not wake it."""
        return self.unreadable is None or self.is_asleep

    @property
    def address(self) -> str | None:
        """PyTorch's name for the device, ``cpu`` or ``cuda:0``; None if CUDA does not see it.

        That of another PC's device begins with the PC's name: ``attic/cuda:0``.
        """
        if self.is_cpu:
            return address_at(self.pc, CPU)
        if self.torch_index is None:
            return None
        return str(DeviceName(self.kind, self.torch_index, self.pc))

    @property
    def identity(self) -> str:
        """A permanent name for the device: its UUID, or its slot if the card reports no UUID."""
        if self.is_cpu:
            return address_at(self.pc, CPU)
        if self.uuid:
            return self.uuid
        slot = self.pci_bus_id or f"{self.maker or self.kind} {self.driver_index}"
        return address_at(self.pc, slot)

    @property
    def short_name(self) -> str:
        """The name without the maker's words; unchanged if the card reports only a generic name.

        “Radeon Graphics” and “Intel Graphics” are names of many: they come with the chip.
        """
        name = short_name(self.name)
        is_of_many = self.chip is not None and _NAME_OF_MANY.fullmatch(name) is not None
        return f"{name} ({self.chip})" if is_of_many else name


# "Core i7-8700K CPU @ 3.70GHz", "Ryzen 7 5700G with Radeon Graphics", "Ryzen 5 5600 6-Core
# Processor", "GTX 1650 with Max-Q Design": what is no part of the model's own name.
_SPARE_WORDS = re.compile(
    r"\s+(CPU\s+)?@.*|\s+with \S.* Graphics$|\s+\d+-Core Processor$|\s+with(?= Max-Q)"
    r"|(?<=Max-Q) Design$"
)

_MAKERS = ("NVIDIA ", "AMD ", "Intel ", "Intel(R) ")
UUID_TAIL = 4
_GENERIC_NAME = re.compile(r"\S+ card\b")
_ONLY_GRAPHICS = re.compile(r"(?:AMD|Intel(?:\(R\))?) Graphics")
_NAME_OF_MANY = re.compile(r"(?:AMD |Intel |NVIDIA )?(?:Radeon |U?HD |Arc )?Graphics")


def without_maker(name: str) -> str:
    """Return a card's name as it is sold: ``GeForce GT 1030``."""
    if _GENERIC_NAME.match(name):
        return name
    for maker in _MAKERS:
        name = name.removeprefix(maker)
    return name


def uuid_tail(uuid: str | None) -> str:
    """Return the end of a card's UUID: enough to see that two records are of the same card."""
    return "" if uuid is None else uuid[-UUID_TAIL:]


def short_name(name: str) -> str:
    """Return a device's name in the form of `Device.short_name`."""
    if _GENERIC_NAME.match(name):
        return name
    makers = () if _ONLY_GRAPHICS.fullmatch(name) else _MAKERS
    for word in ("(R)", "(TM)", *makers, "GeForce "):
        name = name.replace(word, "")
    return _SPARE_WORDS.sub("", " ".join(name.split())).strip()


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """A maker's driver; ``error`` says why it cannot be asked.

    ``version`` is the version of the running driver. ``library_version`` is that of its library,
    which changes as soon as the driver is updated. ``is_silent``: the driver never answered.
    ``was_updated``: the driver was replaced on the disk while this program used it. ``evidence`` is
    the error in the driver's own terms.
    """

    version: str | None = None
    library_version: str | None = None
    is_silent: bool = False
    cuda_version: str | None = None
    nvml_version: str | None = None
    error: str | None = None
    error_code: DriverProblem | None = None
    evidence: str = ""
    was_updated: bool = False


class Inventory(msgspec.Struct, frozen=True, kw_only=True, tag="inventory"):
    """Everything found in this PC; the CPU is always the first device.

    ``variables`` are the variables of your environment that CUDA reads; ``distribution`` is the
    name of the Linux distribution, followed by the ones it is based on (``ubuntu debian``). With
    ``secure_boot``, Linux may refuse a driver that is not signed with a key the firmware knows.
    ``driver`` is NVIDIA's. ``unread_cards`` are the cards that no part of this program reads, and
    ``other_gpus`` their names. ``signs`` are what else tells why a card is not used; None where the
    system is not Linux, or is another PC's copy.
    """

    devices: tuple[Device, ...]
    driver: Driver = Driver()
    other_gpus: tuple[str, ...] = ()
    unread_cards: tuple[Device, ...] = ()
    is_wsl: bool = False
    distribution: str = ""
    secure_boot: bool = False
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    signs: Signs | None = None

    @property
    def cpu(self) -> Device:
        return self.devices[0]

    @property
    def cards(self) -> tuple[Device, ...]:
        """The cards of all makers, each maker's in its driver's order."""
        return tuple(device for device in self.devices if not device.is_cpu)

    @property
    def asks_driver(self) -> bool:
        """Whether the program reads sensors through an NVIDIA driver, which PyTorch also loads."""
        cards = [card for card in self.cards if card.is_cudas]
        asked = (card.unreadable_code not in ("asleep", "no_driver") for card in cards)
        return self.driver.is_silent or any(asked)

    def find(self, address: str) -> Device | None:
        """Return the device that PyTorch calls ``cpu`` or ``cuda:N``, or None."""
        return next((device for device in self.devices if device.address == address), None)

    def device_with(self, identity: str) -> Device | None:
        return next((device for device in self.devices if device.identity == identity), None)


class CardReading(msgspec.Struct, frozen=True, kw_only=True):
    """One card's sensors and processes at one time.

    ``uuid`` is the `Device.identity`. If there is no reading, ``error`` is the reason as a sentence
    and ``error_code`` the reason for programs. ``processes`` is None if nobody wanted them.
    """

    uuid: str
    telemetry: Telemetry
    processes: tuple[GpuProcess, ...] | None = ()
    error: str | None = None
    error_code: Unreadable | None = None


class Reading(msgspec.Struct, frozen=True, kw_only=True, tag="reading"):
    """One poll of all sensors; ``taken_at_s`` is the reader's monotonic clock."""

    taken_at_s: float
    cpu: Telemetry
    cards: tuple[CardReading, ...] = ()

    def card(self, device: Device) -> CardReading | None:
        """Return what was read of a card; None if it was not there."""
        return next((card for card in self.cards if card.uuid == device.identity), None)

    def telemetry(self, device: Device) -> Telemetry | None:
        """Return the telemetry of a device, which is empty for a card that cannot be read."""
        if device.is_cpu:
            return self.cpu
        card = self.card(device)
        return None if card is None else card.telemetry


SensorEvent = Inventory | Reading


_sensor_encoder = msgspec.json.Encoder()
_sensor_decoder = msgspec.json.Decoder(SensorEvent)


def encode_sensor_event(event: SensorEvent) -> bytes:
    """Return an event of the sensor reader as one line of JSON, including the newline."""
    return _sensor_encoder.encode(event) + b"\n"


def decode_sensor_event(line: bytes) -> SensorEvent:
    """Return the event in a line; raise `msgspec.DecodeError` for anything else."""
    event: SensorEvent = _sensor_decoder.decode(line)
    return event


def number_cards(cards: list[Device], visible_devices: str | None) -> list[Device]:
    """Return the cards with the ``torch_index`` that an engine gives them.

    Every engine runs with CUDA_DEVICE_ORDER=PCI_BUS_ID, so CUDA counts the visible cards in the
    order of their bus addresses, unless ``visible_devices`` gives another order. That is the value
    of CUDA_VISIBLE_DEVICES: numbers or UUID prefixes, up to the first entry that matches no card.
    See the CUDA C++ Programming Guide, "CUDA Environment Variables".
    """
    by_bus = sorted(cards, key=lambda card: card.pci_bus_id or "")
    order = by_bus if visible_devices is None else _visible(by_bus, visible_devices)
    index_of = {card.identity: index for index, card in enumerate(order)}
    return [
        msgspec.structs.replace(card, torch_index=index_of.get(card.identity)) for card in cards
    ]


def _visible(by_bus: list[Device], visible_devices: str) -> list[Device]:
    chosen: list[Device] = []
    for entry in (part.strip() for part in visible_devices.split(",")):
        card = _named(by_bus, entry)
        if card in chosen:  # a repeated card hides all: torch.cuda._parse_visible_devices
            return []
        if card is None:
            break
        chosen.append(card)
    return chosen


def _named(by_bus: list[Device], entry: str) -> Device | None:
    if entry.isdecimal():
        return by_bus[int(entry)] if int(entry) < len(by_bus) else None
    if not entry.startswith("GPU-"):
        return None
    matches = [card for card in by_bus if (card.uuid or "").startswith(entry)]
    return matches[0] if len(matches) == 1 else None


COLOR_COUNT = 3
"""More cards than colors share the last color."""
MOST_CARDS = 16
"""A list of cards has no more than these."""


def with_cards(known: Sequence[str], present: Sequence[str]) -> tuple[str, ...]:
    """Return the cards by their colors: the place of a card in the list is its color.

    A card keeps its place while it is known, also out of the PC, so that its kept runs keep their
    color. A new card gets a color that no card has, then that of a card that is gone.

    Args:
        known: the list so far.
        present: the permanent names of the cards of this PC, in their order.
    """
    cards = list(dict.fromkeys(known))[:MOST_CARDS]
    for card in present:
        if card in cards:
            continue
        gone = next((one for one in cards[:COLOR_COUNT] if one not in present), None)
        if len(cards) < COLOR_COUNT or gone is None:
            cards.append(card)
        else:
            cards[cards.index(gone)] = card
    return tuple(cards[:MOST_CARDS])
