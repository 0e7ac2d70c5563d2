"""What is in a PC: devices, their sensors and the processes on them.

A card's identity is its UUID; ``cuda_index`` and ``nvml_index`` are only today's numbers for it.
What a card refuses to tell is None, decided in hardware/nvml.py, never 0.
"""

from __future__ import annotations

from typing import Literal

import msgspec

# Why a card cannot be read: "silent" is a call into its driver that never returned,
# "driver_updated" a driver whose halves have two versions.
Unreadable = Literal[
    "asleep", "lost", "not_served", "no_driver", "no_permission", "silent", "driver_updated",
    "unknown",
]  # fmt: skip
# The compute mode in which a card lets no program compute.
PROHIBITED = "prohibited"
# What `Device.unreadable` says of a card that Linux has switched off.
ASLEEP = (
    "The card is asleep to save power, and reading it would wake it. It wakes when a program uses "
    "it."
)
# Results of float32 a clock and multiprocessor: CUDA C++ Programming Guide, table "Throughput of
# Native Arithmetic Instructions"; sold as "CUDA cores".
CORES_PER_MULTIPROCESSOR: dict[tuple[int, int], int] = {
    (3, 0): 192, (3, 5): 192, (3, 7): 192,
    (5, 0): 128, (5, 2): 128, (5, 3): 128,
    (6, 0): 64, (6, 1): 128, (6, 2): 128,
    (7, 0): 64, (7, 2): 64, (7, 5): 64,
    (8, 0): 64, (8, 6): 128, (8, 7): 128, (8, 9): 128,
    (9, 0): 128, (10, 0): 128, (10, 3): 128, (12, 0): 128, (12, 1): 128,
}  # fmt: skip


class Telemetry(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of a device's sensors; None is "not supported by this device"."""

    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    fan_percent: float | None = None
    utilization_percent: float | None = None
    memory_utilization_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_free_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    pstate: int | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    pcie_rx_bytes_per_s: float | None = None
    pcie_tx_bytes_per_s: float | None = None
    clock_event_reasons: int | None = None


class GpuProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that holds a context on a card; its memory is None where the system hides it."""

    pid: int
    name: str
    user: str | None = None
    kind: str = "compute"
    memory_bytes: int | None = None


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """The CPU or one card, with the facts that do not change while the program runs.

    ``pcie_generation_max`` is what card and slot can do together, ``pcie_generation_card_max`` the
    card alone; ``pci_device_id`` is the maker's number of the chip, without the maker's own;
    ``mig_instances`` are the names of the parts that a card of a data center is divided into;
    ``kernel_driver`` is who drives it on Linux, ``nvidia`` or ``nouveau``. Of a card that cannot be
    read, ``unreadable`` says so in a sentence and ``unreadable_code`` to programs.
    """

    kind: Literal["cpu", "cuda"]
    name: str
    uuid: str | None = None
    memory_total_bytes: int | None = None
    telemetry: Telemetry = Telemetry()
    # A card's own.
    compute_capability: str | None = None
    architecture: str | None = None
    cuda_index: int | None = None
    nvml_index: int | None = None
    pci_bus_id: str | None = None
    multiprocessors: int | None = None
    cuda_cores: int | None = None
    memory_bus_width_bits: int | None = None
    sm_clock_max_mhz: float | None = None
    memory_clock_max_mhz: float | None = None
    pcie_generation_max: int | None = None
    pcie_width_max: int | None = None
    vbios: str | None = None
    display_active: bool | None = None
    compute_mode: str | None = None
    ecc_enabled: bool | None = None
    mig_enabled: bool | None = None
    mig_instances: tuple[str, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    pcie_generation_card_max: int | None = None
    serial: str | None = None
    pci_device_id: int | None = None
    kernel_driver: str | None = None
    unreadable: str | None = None
    unreadable_code: Unreadable | None = None
    # The CPU's own.
    cores: int | None = None
    threads: int | None = None
    clock_max_mhz: float | None = None

    @property
    def address(self) -> str | None:
        """The name PyTorch knows it by: ``cpu`` or ``cuda:0``; None for a card CUDA cannot see."""
        if self.kind == "cpu":
            return "cpu"
        return None if self.cuda_index is None else f"cuda:{self.cuda_index}"

    @property
    def identity(self) -> str:
        """What names this device for good: the UUID, or the slot of a card that tells none."""
        if self.kind == "cpu":
            return "cpu"
        return self.uuid or self.pci_bus_id or f"NVML {self.nvml_index}"

    @property
    def short_name(self) -> str:
        """The name without what every card of the maker carries; one that tells none keeps all."""
        return short_name(self.name)


def short_name(name: str) -> str:
    """Return a device's name as `Device.short_name` does."""
    if name.startswith("NVIDIA card"):
        return name
    for word in ("NVIDIA ", "GeForce ", "(R)", "(TM)", "AMD ", "Intel "):
        name = name.replace(word, "")
    return " ".join(name.split())


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """The NVIDIA driver as NVML tells it; ``error`` says why there is nothing to tell.

    ``library_version`` is that of the driver's library, which an update changes at once, where
    ``version`` is told by the driver that runs. ``is_silent`` is a driver that never answered.
    ``was_updated`` is one that was replaced on the disk while this program used it.
    """

    version: str | None = None
    library_version: str | None = None
    is_silent: bool = False
    cuda_version: str | None = None
    nvml_version: str | None = None
    error: str | None = None
    error_code: int | None = None
    was_updated: bool = False


class Inventory(msgspec.Struct, frozen=True, kw_only=True, tag="inventory"):
    """Everything found in this PC; the CPU is always the first device.

    ``variables`` are those of the user's own environment that CUDA reads; ``distribution`` is the
    name of a Linux and of those it descends from (``ubuntu debian``).
    """

    devices: tuple[Device, ...]
    driver: Driver = Driver()
    other_gpus: tuple[str, ...] = ()
    is_wsl: bool = False
    distribution: str = ""
    variables: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def cpu(self) -> Device:
        """The CPU."""
        return self.devices[0]

    @property
    def cards(self) -> tuple[Device, ...]:
        """The NVIDIA cards in NVML's order."""
        return tuple(device for device in self.devices if device.kind == "cuda")

    @property
    def asks_driver(self) -> bool:
        """Whether an NVIDIA driver is asked for its cards' sensors, and by PyTorch at its start."""
        asked = (card.unreadable_code not in ("asleep", "no_driver") for card in self.cards)
        return self.driver.is_silent or any(asked)

    def find(self, address: str) -> Device | None:
        """Return the device PyTorch knows as ``cpu`` or ``cuda:N``, or None."""
        return next((device for device in self.devices if device.address == address), None)


class CardReading(msgspec.Struct, frozen=True, kw_only=True):
    """One card's sensors and processes at one time.

    ``uuid`` is the `Device.identity`; ``error`` is a sentence that says why there is no reading,
    ``error_code`` says it to programs.
    """

    uuid: str
    telemetry: Telemetry
    processes: tuple[GpuProcess, ...] = ()
    error: str | None = None
    error_code: Unreadable | None = None


class Reading(msgspec.Struct, frozen=True, kw_only=True, tag="reading"):
    """One poll of all sensors; ``taken_at_s`` is the reader's monotonic clock."""

    taken_at_s: float
    cpu: Telemetry
    cards: tuple[CardReading, ...] = ()


SensorEvent = Inventory | Reading


_sensor_encoder = msgspec.json.Encoder()
_sensor_decoder = msgspec.json.Decoder(SensorEvent)


def encode_sensor_event(event: SensorEvent) -> bytes:
    """Return an event of the sensor reader as one line of JSON, newline included."""
    return _sensor_encoder.encode(event) + b"\n"


def decode_sensor_event(line: bytes) -> SensorEvent:
    """Return the event in a line; raises `msgspec.DecodeError` for anything else."""
    event: SensorEvent = _sensor_decoder.decode(line)
    return event


def number_cards(cards: list[Device], visible_devices: str | None) -> list[Device]:
    """Return the cards with the ``cuda_index`` that an engine gives them.

    Every engine runs with CUDA_DEVICE_ORDER=PCI_BUS_ID, so CUDA counts the visible cards in the
    order of their bus addresses, or in the order that ``visible_devices`` (the value of
    CUDA_VISIBLE_DEVICES; numbers or UUID prefixes, the list ends at the first entry that names no
    card) gives; see the CUDA C++ Programming Guide, "CUDA Environment Variables".
    """
    by_bus = sorted(cards, key=lambda card: card.pci_bus_id or "")
    order = by_bus if visible_devices is None else _visible(by_bus, visible_devices)
    index_of = {card.identity: index for index, card in enumerate(order)}
    return [msgspec.structs.replace(card, cuda_index=index_of.get(card.identity)) for card in cards]


def _visible(by_bus: list[Device], visible_devices: str) -> list[Device]:
    chosen: list[Device] = []
    for entry in (part.strip() for part in visible_devices.split(",")):
        card = _named(by_bus, entry)
        if card in chosen:  # a card named twice hides all: torch.cuda._parse_visible_devices
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


# nvmlClocksEventReasons of nvml.h; more than one may hold.
_REASONS = {
    0x001: "idle", 0x002: "set by an application", 0x004: "at the power limit",
    0x008: "hardware brake", 0x010: "in step with other cards", 0x020: "hot (driver's brake)",
    0x040: "hot (hardware's brake)", 0x080: "power brake", 0x100: "set by the display",
}  # fmt: skip
_POWER_CAP = 0x004
# Hardware slowdown, software and hardware thermal slowdown, power brake.
_BRAKES = 0x008 | 0x020 | 0x040 | 0x080
# What makes a card slower than it could be; the power limit does, too, but that is normal.
_HELD_BACK = _POWER_CAP | _BRAKES
_LOWEST_CLOCK_SHARE = 0.75


def clock_event_words(reasons: int | None) -> str | None:
    """Return why the clocks are what they are, in words; None where the card does not say."""
    if reasons is None:
        return None
    return _words(reasons) or "not held back"


def held_back_words(reasons: int) -> str:
    """Return what holds a card back, in words; empty where nothing does."""
    return _words(reasons & _HELD_BACK)


def is_throttled(
    reasons: int | None, sm_clock_mhz: float | None, base_clock_mhz: float | None
) -> bool | None:
    """Return whether a card slows itself down now; None where it tells neither.

    Heat and a brake do; so does a clock under 75 % of the base clock. The highest boost is no
    measure: laptops and old cards live below it. The power limit alone is none either: a card at
    work is meant to reach it (`is_power_capped`).

    Args:
        reasons: NVML's clock-event reasons.
        sm_clock_mhz: the clock under load.
        base_clock_mhz: the clock that the card is sold with; None where it is not told.
    """
    told = []
    if reasons is not None:
        told.append(bool(reasons & _BRAKES))
    if sm_clock_mhz is not None and base_clock_mhz:
        told.append(sm_clock_mhz < _LOWEST_CLOCK_SHARE * base_clock_mhz)
    return any(told) if told else None


def is_power_capped(reasons: int | None) -> bool | None:
    """Return whether a card's power limit sets its clock; None where it does not say."""
    return None if reasons is None else bool(reasons & _POWER_CAP)


def _words(reasons: int) -> str:
    return ", ".join(word for bit, word in _REASONS.items() if reasons & bit)
