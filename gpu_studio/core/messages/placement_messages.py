"""What window and engine say to each other about cards in use and what is placed on them."""

from __future__ import annotations

import msgspec

from gpu_studio.core.messages.message import Message


class UseDevice(Message, frozen=True, kw_only=True):
    """Make a card the current one (``torch.cuda.set_device``)."""

    cuda_index: int


class InspectFile(Message, frozen=True, kw_only=True):
    """What does a file of tensors hold? Its header is read and nothing of it is loaded."""

    path: str


class PlaceTensors(Message, frozen=True, kw_only=True):
    """Place square matrices of ``size``: one made on the CPU and moved, one made on the device."""

    device: str
    size: int
    dtype: str


class PlaceModel(Message, frozen=True, kw_only=True):
    """Move a model, or a file's tensors, to a device and prove that nothing changed.

    ``model`` names a built-in one; where ``path`` is given it is a file that ``torch.save`` wrote.
    ``dtype`` is what its floating-point tensors become; empty leaves them as they are.
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


class DeviceUsed(Message, frozen=True, kw_only=True):
    """The current card is now this one."""

    cuda_index: int
    name: str
    uuid: str | None = None
    snippet: str = ""


class FileInspected(Message, frozen=True, kw_only=True):
    """What a file says of itself in its header: it can be opened safely.

    ``left_out`` counts the values beside the tensors, which are not loaded. ``is_mapped`` says that
    its tensors can stay in the file until they are moved.
    """

    path: str
    size_bytes: int
    tensors: int
    tensor_bytes: int
    left_out: int = 0
    is_mapped: bool = False
    snippet: str = ""


class PlaceRow(Message, frozen=True, kw_only=True):
    """One tensor that was placed; ``bytes`` is its size in memory after it."""

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    device_before: str
    device_after: str
    dtype_before: str = ""


class PlaceFinished(Message, frozen=True, kw_only=True):
    """A model or a file was moved: what it cost, and the proof.

    ``proof`` says what ``same_output`` compares: the ``output`` for one input before and after,
    within the dtype's tolerance, or the tensors' own ``values``, read back and compared with the
    file. The deltas are what this move took of PyTorch's allocator (allocated, reserved) and of the
    card (driver); null on the CPU, where PyTorch does not count.
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
    dtype: str = ""
    snippet: str = ""


class TensorsPlaced(Message, frozen=True, kw_only=True):
    """Two matrices are on a device: how long each way took, and where their product is.

    ``moved_s`` is for the copy alone, ``made_s`` for making the other one there, both until the
    device was done. ``same_values`` says that the moved one, read back, is bit for bit the same.
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
    snippet: str = ""
