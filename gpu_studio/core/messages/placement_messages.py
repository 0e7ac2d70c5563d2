"""The messages between window and engine about the current card and moving data to it."""

from __future__ import annotations

import msgspec

from gpu_studio.core.messages.message import Event, LastEvent, Request


class UseDevice(Request, frozen=True, kw_only=True):
    """Make a card the current one (``torch.cuda.set_device``)."""

    device: str


class InspectFile(Request, frozen=True, kw_only=True):
    """Ask for the contents of a tensor file. None of its tensors is read."""

    path: str


class PlaceTensors(Request, frozen=True, kw_only=True):
    """Place square matrices of ``size``: one made on the CPU and moved, one made on the device."""

    device: str
    size: int
    dtype: str


class PlaceModel(Request, frozen=True, kw_only=True):
    """Move a model, or a file's tensors, to a device and prove that nothing changed.

    ``model`` names a built-in model; ``path``, if given, is a file from ``torch.save``. ``dtype``
    is the new type of floating-point tensors; empty keeps their types.
    """

    device: str
    model: str = ""
    path: str = ""
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


class FileInspected(LastEvent, frozen=True, kw_only=True):
    """The contents of a file; ``left_out`` counts the values beside the tensors."""

    path: str
    size_bytes: int
    tensors: int
    tensor_bytes: int
    left_out: int = 0
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
    dtype_before: str = ""


class PlaceFinished(LastEvent, frozen=True, kw_only=True):
    """The result of moving a model or a file: its cost, and the proof.

    ``elapsed_s`` is the time of the copies alone: not of reading the file, converting types, or
    asking for memory.
    ``proof`` says what ``same_output`` compares: the ``output`` for one input before and after,
    within the dtype's tolerance, or the ``values`` of the tensors, read back and compared with the
    file. The deltas are the growth of PyTorch's memory (allocated, reserved) and of the card's
    (driver); null on the CPU, which PyTorch does not count. ``untested`` is a sentence if nobody
    has run this program on such a card.
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
    proof: str = "output"
    untested: str = ""
    dtype: str = ""
    snippet: str = ""


class TensorsPlaced(LastEvent, frozen=True, kw_only=True):
    """Two matrices are on a device: the time for each, and the device of their product.

    ``moved_s`` is the time of the copy, ``made_s`` that of creating the other matrix there, both
    until the device had finished. ``same_values``: the moved matrix, read back, is identical bit
    for bit. ``untested`` is a sentence if nobody has run this program on such a card.
    """

    device: str
    size: int
    dtype: str
    moved_bytes: int
    cpu_made_s: float
    moved_s: float
    made_s: float
    same_values: bool
    result_device: str
    allocated_delta_bytes: int | None = None
    untested: str = ""
    snippet: str = ""
