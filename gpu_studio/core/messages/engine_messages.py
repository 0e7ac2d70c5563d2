"""The messages between window and engine about the engine itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from gpu_studio.core.device_name import DeviceName, is_cpu
from gpu_studio.core.failure import Failure  # noqa: TC001  # msgspec reads the annotations
from gpu_studio.core.messages.message import (
    Bytes,
    CardCount,
    Count,
    LastEvent,
    Message,
    Request,
)
from gpu_studio.core.messages.pitfall_messages import PitfallDescription  # noqa: TC001
from gpu_studio.core.messages.placement_messages import ModelDescription  # noqa: TC001
from gpu_studio.core.messages.run_messages import WorkloadDescription  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Iterable

BuildKind = Literal["cuda", "rocm", "xpu", "cpu"]
BUILD_WORDS = {
    "cuda": "NVIDIA cards (CUDA)",
    "rocm": "AMD cards (ROCm)",
    "xpu": "Intel cards (XPU)",
    "cpu": "the CPU only",
}
"""What a kind of build is for, after "a build for"."""


class DescribeEngine(Request, frozen=True, kw_only=True):
    """Ask for the engine's properties and workloads. Makes no CUDA context.

    Asking CUDA wakes cards that the system has switched off to save power. With ``wakes_cards``
    False, CUDA is not asked if all cards are asleep, and the answer says so.
    """

    wakes_cards: bool = True


class Stop(Request, frozen=True, kw_only=True):
    """End the running request between two calls. Has no answer of its own."""


class TorchCard(msgspec.Struct, frozen=True, kw_only=True):
    """One card according to ``torch.cuda.get_device_properties``.

    ``torch_index`` is its number among PyTorch's accelerators of its kind. None means that this
    PyTorch does not have the property. Clocks are in MHz and ``pci_bus_id`` has NVML's form.
    ``architecture`` is AMD's name of the chip, ``gfx1032``; a compute capability is NVIDIA's.
    ``pc`` is the name of the other PC that has it; empty for this one.
    """

    torch_index: int
    name: str
    kind: str = "cuda"
    maker: str = "NVIDIA"
    uuid: str | None = None
    pci_bus_id: str | None = None
    pci_device_id: int | None = None
    compute_capability: str | None = None
    architecture: str | None = None
    is_integrated: bool = False
    multiprocessors: int | None = None
    memory_total_bytes: int | None = None
    l2_cache_bytes: int | None = None
    memory_bus_width_bits: int | None = None
    sm_clock_max_mhz: float | None = None
    memory_clock_max_mhz: float | None = None
    pc: str = ""

    @property
    def address(self) -> str:
        """PyTorch's name for the card, ``cuda:0``, after that of another PC."""
        return str(DeviceName(self.kind, self.torch_index, self.pc))


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """What a program can compute on without PyTorch, as one graphics interface's driver has it.

    A card is there once for each interface. ``is_software``: its driver computes on the CPU.
    ``vendor_id`` and ``device_id`` are those of PCI; of equal cards, only the order tells which
    is which. ``has_clock``: it can tell the times of its own work.
    """

    address: str
    name: str
    interface: str
    driver: str = ""
    is_software: bool = False
    vendor_id: Count = 0
    device_id: Count = 0
    dtypes: tuple[str, ...] = ()
    has_clock: bool = False
    largest_buffer_bytes: Bytes = 0

    @property
    def title(self) -> str:
        """Its name in a result: ``Radeon RX 580 by Vulkan``, ``llvmpipe (software) by Vulkan``."""
        return f"{self.name}{' (software)' if self.is_software else ''} by {self.interface}"

    @property
    def full_name(self) -> str:
        """Its name where it is chosen; that of software says what computes."""
        is_software = self.is_software
        return f"This processor, by {self.interface} ({self.name})" if is_software else self.title

    @property
    def identity(self) -> str:
        """What stays the same at the next start, unless its kind or its order changes."""
        kind = f"{self.vendor_id:x}-{self.device_id:x}"
        return f"{self.address}-{kind}-{self.name.replace('/', ' ')}"


def identity_at(address: str, cards: Iterable[TorchCard]) -> str:
    """Return the permanent name of a device; empty if PyTorch does not report that of the card."""
    if is_cpu(address):
        return address
    return next((card.uuid or "" for card in cards if card.address == address), "")


class StartError(msgspec.Struct, frozen=True, kw_only=True):
    """The error with which PyTorch's part for the cards did not start.

    ``text`` is its first line, ``code`` its number among CUDA's, None if unknown. ``library`` is
    the path of the driver's library that the process has loaded; empty if unknown.
    """

    text: str = ""
    code: int | None = None
    library: str = ""


class EngineDescribed(LastEvent, frozen=True, kw_only=True):
    """The engine's description of itself.

    With ``cards_asleep``, CUDA was not asked, so that the cards stay asleep; ``cuda_available``
    then means nothing. ``pictures`` are the
    workloads of races. ``accelerator`` is PyTorch's word for the cards: ``cuda`` or ``xpu``.
    ``first_card`` is the number of the card that it begins with: not one inside a processor.
    ``cuda_reason`` says why they cannot be used, ``start_error`` with which error.
    ``adapters`` are what an engine without PyTorch computes on, beside the CPU.
    ``hip_build`` and ``xpu_build`` are the versions of AMD's and Intel's software that this PyTorch
    is built for. ``pc`` is the name of the other PC on which it works; empty for this one.
    """

    pid: int
    torch_version: str
    cuda_build: str | None = None
    cuda_available: bool = False
    cuda_reason: str | None = None
    start_error: StartError | None = None
    device_count: CardCount = 0
    arch_list: tuple[str, ...] = ()
    cpu_capability: str | None = None
    cpu_threads: Count = 0
    visible_devices: str | None = None
    allocator_configuration: str | None = None
    python_version: str = ""
    workloads: tuple[WorkloadDescription, ...] = ()
    pictures: tuple[WorkloadDescription, ...] = ()
    models: tuple[ModelDescription, ...] = ()
    pitfalls: tuple[PitfallDescription, ...] = ()
    snippet: str = ""
    recording: str | None = None
    cards: tuple[TorchCard, ...] = ()
    cards_asleep: bool = False
    accelerator: str = "cuda"
    first_card: CardCount = 0
    hip_build: str | None = None
    xpu_build: str | None = None
    pc: str = ""
    adapters: tuple[Adapter, ...] = ()

    @property
    def build_kind(self) -> BuildKind:
        """What its PyTorch is built for; the version's local part names it as well."""
        local = self.torch_version.partition("+")[2]
        if self.cuda_build is not None:
            return "cuda"
        if self.hip_build is not None or local.startswith("rocm"):
            return "rocm"
        return "xpu" if self.xpu_build is not None or local.startswith("xpu") else "cpu"

    @property
    def built_for(self) -> str:
        """What its PyTorch is built for, in words: ``CUDA 12.6``, ``AMD cards (ROCm)``."""
        is_of_nvidia = self.cuda_build is not None
        return f"CUDA {self.cuda_build}" if is_of_nvidia else BUILD_WORDS[self.build_kind]

    @property
    def build_words(self) -> str:
        """The kind of build, as a sentence about this PyTorch ends: ``a CPU-only build``."""
        return {"cpu": "a CPU-only build"}.get(self.build_kind, f"built for {self.built_for}")

    def address(self, index: int) -> str:
        """Return the name of a card of this engine: ``cuda:0``."""
        return str(DeviceName(self.accelerator, index, self.pc))

    @property
    def first_address(self) -> str:
        """The name of the card that the engine begins with."""
        return self.address(self.first_card)

    @property
    def card_addresses(self) -> list[str]:
        """The names of the cards that PyTorch sees, whether or not it has code for them."""
        return [self.address(index) for index in range(self.device_count)]


class RequestFailed(LastEvent, frozen=True, kw_only=True):
    """A request other than a run failed."""

    failure: Failure

    @property
    def ends_engine(self) -> bool:
        """Whether the engine cannot work any more."""
        return self.failure.fatal


class EngineEnded(LastEvent, frozen=True, kw_only=True):
    """The engine's process ended before it answered, with an exit code, negative for a signal.

    ``stopped``: the user ended it, because a call took longer than a stop may wait.
    """

    exit_code: int | None
    stopped: bool = False

    @property
    def ends_engine(self) -> bool:
        """Return True."""
        return True


class Heartbeat(Message, frozen=True, kw_only=True):
    """A sign of life: a child process sends it after a second without any other message.

    It answers nothing and is not part of a recording.
    """


class RecordingHeader(Message, frozen=True, kw_only=True):
    """The first line of a recording: the source of its events.

    ``device_name`` has the cards, ``pc`` their processor and system, ``recorded_at`` is ISO 8601,
    ``source`` is the program. ``is_simulated`` means that the cards were simulated, as in this
    program's own tests.
    """

    schema: int = 1
    title: str
    device_name: str
    driver_version: str | None
    torch_version: str
    recorded_at: str
    source: str
    pc: str = ""
    is_simulated: bool = False
