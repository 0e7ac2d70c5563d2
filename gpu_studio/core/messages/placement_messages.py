"""The messages between window and engine about the current card and moving data to it."""

from __future__ import annotations

import msgspec

from gpu_studio.core.messages.message import Event, LastEvent, Request


class UseDevice(Request, frozen=True, kw_only=True):
    """Make a card the current one (``torch.cuda.set_device``)."""

    device: str


class PlaceModel(Request, frozen=True, kw_only=True):
    """Move a built-in model to a device and prove that nothing changed.

    ``dtype`` is the new type of floating-point tensors; empty keeps their types.
    """

    device: str
    model: str
    dtype: str = ""


class ModelDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A built-in model of the Switcher tab."""

    name: str
    title: str
    sentence: str


class DeviceUsed(LastEvent, frozen=True, kw_only=True):
    """The new current card; ``device`` is PyTorch's name for it, ``cuda:0``."""

    device: str
    name: str
    uuid: str | None = None
    snippet: str = ""


class PlaceRow(Event, frozen=True, kw_only=True):
    """One moved tensor; ``bytes`` is its size in memory afterwards."""

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    device_before: str
    device_after: str


class PlaceFinished(LastEvent, frozen=True, kw_only=True):
    """The result of moving a model: its cost, and the proof.

    ``elapsed_s`` is the time of the copies alone: not of converting types or asking for memory.
    ``same_output`` compares the output for one input before and after, within the dtype's
    tolerance. The deltas are the growth of PyTorch's memory (allocated, reserved) and of the
    card's (driver); null on the CPU, which PyTorch does not count. ``untested`` is a sentence if
    nobody has run this program on such a card.
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
    reserved_delta_bytes: int | None = None
    card_delta_bytes: int | None = None
    untested: str = ""
    dtype: str = ""
    snippet: str = ""
