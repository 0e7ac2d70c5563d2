"""What window and engine say to each other about cards in use and what is placed on them."""

from __future__ import annotations

import msgspec

from gpu_studio.core.message import Message


class UseDevice(Message, frozen=True, kw_only=True):
    """Make a card the current one (``torch.cuda.set_device``)."""

    cuda_index: int


class PlaceModel(Message, frozen=True, kw_only=True):
    """Move a built-in model to a device and prove that its output stays the same."""

    model: str
    device: str


class ModelDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A built-in model of the Switcher tab."""

    name: str
    title: str
    sentence: str


class DeviceUsed(Message, frozen=True, kw_only=True):
    """The current card is now this one."""

    cuda_index: int
    name: str
    uuid: str | None = None
    snippet: str = ""


class PlaceRow(Message, frozen=True, kw_only=True):
    """One tensor of a moved model; ``bytes`` is its size in memory."""

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    device_before: str
    device_after: str


class PlaceFinished(Message, frozen=True, kw_only=True):
    """A model was moved: what it cost, and the proof.

    ``same_output`` compares the output for one input before and after within the dtype's
    tolerance; ``allocated_delta_bytes`` is null on the CPU, where PyTorch does not count.
    """

    model: str
    device: str
    tensors: int
    moved_bytes: int
    elapsed_s: float
    same_output: bool | None
    largest_difference: float | None
    tolerance: float
    input_shape: tuple[int, ...]
    output_device: str
    allocated_delta_bytes: int | None = None
    snippet: str = ""
