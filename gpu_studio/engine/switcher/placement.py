"""Moving a model between devices: each tensor's place, and proof that nothing changed."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import msgspec
import torch

from gpu_studio.core.device_name import is_cpu, torch_module
from gpu_studio.core.devices.finding import untested_sentence
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.placement_messages import (
    DeviceUsed,
    PlaceFinished,
    PlaceModel,
    PlaceRow,
)
from gpu_studio.core.switcher.placement_words import CONVNET, LINEAR_10, LINEAR_1000, MLP
from gpu_studio.core.tensors import check_dtype
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.device import (
    accelerator_of,
    card_name,
    free_bytes,
    prove_kernels,
    refuse_bfloat16_products,
    synchronize,
    uuid_of,
)
from gpu_studio.engine.device import resolve as resolve_device

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.messages.message import Event

    _Memory = tuple[int | None, int | None, int | None]
    from collections.abc import Iterable

    from torch import nn

    from gpu_studio.core.messages.placement_messages import ModelDescription


def use_device(address: str) -> DeviceUsed:
    """Make a card the current one of this process.

    Raises:
        StudioError: the CPU, no CUDA, or no such card; the sentence has the existing devices.
    """
    device = resolve_device(address)
    if is_cpu(address):
        raise StudioError(FailureKind.NO_SUCH_DEVICE, "Only a card can be the current device.")
    accelerator_of(device).use(device)
    return DeviceUsed(
        device=address,
        name=card_name(device),
        uuid=uuid_of(device),
        snippet=_USE_SNIPPET.format(module=torch_module(address), index=device.index),
    )


class Placement:
    """The last model that was moved. It stays on its device until the next move."""

    def __init__(self) -> None:
        self._placed: PlacedModel | None = None

    def place(self, request: PlaceModel) -> Iterator[Event]:
        """Move a model; yield a row per tensor, then the result.

        Raises:
            StudioError: no such model, device or dtype, or too little memory.
        """
        dtype = _dtype_of(request.dtype)
        device = resolve_device(request.device)
        model, self._placed = self._placed, None
        if model is None or model.name != request.model:
            model = PlacedModel(request.model)
        try:
            _check(model, device, dtype)
        except StudioError:
            self._placed = model  # it stays where it is
            raise
        before = {name: str(tensor.device) for name, _, tensor in model.tensors()}
        model.begin_proof()
        memory_before = _memory(device)
        copy = TimedCopy(device, dtype)
        model.move(copy)
        deltas = [
            None if earlier is None or later is None else later - earlier
            for earlier, later in zip(memory_before, _memory(device), strict=True)
        ]
        rows = [_row_of(name, kind, tensor, before[name]) for name, kind, tensor in model.tensors()]
        yield from rows
        proof = model.end_proof()
        moved = [row for row in rows if row.device_before != row.device_after]
        # Kept only now: a model that was moved only in part is on no single device.
        self._placed = model
        yield PlaceFinished(
            model=model.name,
            device=request.device,
            tensors=len(rows),
            moved_bytes=sum(row.bytes for row in moved),
            elapsed_s=copy.elapsed_s,
            same_output=proof.same,
            largest_difference=proof.largest_difference,
            tolerance=proof.tolerance,
            input_shape=model.built_in.input_shape,
            output_device=proof.device,
            allocated_delta_bytes=deltas[0],
            reserved_delta_bytes=deltas[1],
            card_delta_bytes=deltas[2],
            untested=untested_sentence(accelerator_of(device).maker),
            dtype=request.dtype,
            snippet=model.snippet(request.device, request.dtype),
        )


def _check(model: PlacedModel, device: torch.device, dtype: torch.dtype | None) -> None:
    """Raise `StudioError` if the device cannot take the model."""
    now = {tensor.dtype for _, _, tensor in model.tensors() if tensor.is_floating_point()}
    if torch.bfloat16 in (now if dtype is None else {dtype}):
        refuse_bfloat16_products(device)
    # This also creates a card's context, which takes long and is not part of the move.
    prove_kernels(device)
    _refuse_too_large(model, device)


def _dtype_of(name: str) -> torch.dtype | None:
    if not name:
        return None
    check_dtype(name)
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def _row_of(name: str, kind: str, tensor: torch.Tensor, before: str) -> PlaceRow:
    """Return the row of a tensor that was on another device before."""
    return PlaceRow(
        name=name,
        kind=kind,
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        bytes=tensor.nbytes,
        device_before=before,
        device_after=str(tensor.device),
    )


def _refuse_too_large(model: PlacedModel, device: torch.device) -> None:
    """Raise `StudioError` if the device has too little free memory for a model."""
    needed = sum(tensor.nbytes for _, _, tensor in model.tensors() if tensor.device != device)
    available = free_bytes(device) if needed else 0
    if needed > available:
        raise StudioError(
            FailureKind.TOO_LARGE,
            f"{model.name[:60]} needs {format_bytes(needed)}, but only "
            f"{format_bytes(available)} is free on {device}.",
        )


def _memory(device: torch.device) -> _Memory:
    """Return PyTorch's allocated and reserved bytes, and the card's used bytes; None on the CPU."""
    if is_cpu(device.type):
        return None, None, None
    card = accelerator_of(device)
    free, total = card.free_and_total(device)
    used = None if free is None else total - free
    return card.allocated_bytes(device), card.reserved_bytes(device), used


_USE_SNIPPET = """\
import torch

{module}.set_device({index})
print("now in use:", {module}.current_device(), {module}.get_device_name())
"""


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a move kept the values; ``largest_difference`` is None for NaN."""

    same: bool
    largest_difference: float | None
    tolerance: float
    device: str


class TimedCopy:
    """Copies tensors to a device one after the other, and adds up how long the copies took.

    A move with `Tensor.to` also converts a tensor's type and asks the driver for memory
    (cudaMalloc, which takes longer than copying a few megabytes). None of it crosses the PCIe
    link, so all of it is done before the clock starts.

    Args:
        device: the target device.
        dtype: the type that floating-point tensors become; None leaves it.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype | None = None) -> None:
        self._device, self.dtype = device, dtype
        self.elapsed_s = 0.0

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor on the device; one that is there already is no copy."""
        converts = self.dtype is not None and tensor.is_floating_point()
        source = tensor.to(self.dtype) if converts else tensor
        if source.device == self._device:
            return source
        target = torch.empty_like(source, device=self._device)
        if is_cpu(self._device.type):
            target.zero_()  # the system hands out memory when it is first touched
        for device in (source.device, self._device):
            synchronize(device)
        start_s = time.perf_counter()
        target.copy_(source)
        for device in (source.device, self._device):
            synchronize(device)
        self.elapsed_s += time.perf_counter() - start_s
        return target


class PlacedModel:
    """A built-in model with an input for it; its output is the proof."""

    def __init__(self, name: str) -> None:
        self.built_in: BuiltInModel = find_model(name)
        self.name = name
        self._model, self._example = self.built_in.build()
        self._before: torch.Tensor | None = None
        self._dtypes: set[torch.dtype] = set()

    def tensors(self) -> Iterator[tuple[str, str, torch.Tensor]]:
        for name, parameter in self._model.named_parameters():
            yield name, "parameter", parameter
        for name, buffer in self._model.named_buffers():
            yield name, "buffer", buffer

    def move(self, copy: TimedCopy) -> None:
        """Move the model as its ``to`` does; buffers of whole numbers keep their dtype."""
        self._model._apply(copy)

    def begin_proof(self) -> None:
        self._dtypes = {self._dtype()}
        self._before = self._output().cpu().double()

    def end_proof(self) -> Proof:
        assert self._before is not None
        self._dtypes.add(self._dtype())
        after = self._output()
        difference = float((self._before - after.cpu().double()).abs().max())
        tolerance = self.built_in.tolerance(self._before, self._dtypes)
        self._before = None
        return Proof(
            same=difference <= tolerance,  # false for NaN
            largest_difference=difference if difference == difference else None,
            tolerance=tolerance,
            device=str(after.device),
        )

    def snippet(self, device: str, dtype: str) -> str:
        return _MODEL_SNIPPET.format(
            code=self.built_in.code,
            device=device,
            target=f'"{device}", torch.{dtype}' if dtype else f'"{device}"',
            shape=self.built_in.input_shape,
        )

    def _dtype(self) -> torch.dtype:
        return next(self._model.parameters()).dtype

    def _output(self) -> torch.Tensor:
        """Return the model's output for the input, computed on its device.

        By default, cuDNN may round float32 convolutions to TF32, which is faster but would hide
        the effect of a wrong move. Without cuDNN, they are computed in float32.
        """
        parameter = next(self._model.parameters())
        with torch.no_grad(), torch.backends.cudnn.flags(enabled=False):
            output: torch.Tensor = self._model(self._example.to(parameter.device, parameter.dtype))
        return output


_MODEL_SNIPPET = """\
import io
import torch

model = {code}
x = torch.randn{shape}

model = model.to({target})
x = x.to({target})
y = model(x)
print(y.shape, y.dtype, y.device)
for name, tensor in model.state_dict().items():  # parameters and buffers
    print(name, tuple(tensor.shape), tensor.dtype, tensor.device)

w = torch.ones(3, device="{device}")  # made there at once, without a copy
file = io.BytesIO()  # or the name of a file: "weights.pt"
torch.save(model.state_dict(), file)
file.seek(0)
weights = torch.load(file, map_location="{device}", weights_only=True)  # runs no code of the file
model.load_state_dict(weights)
"""


_SEED = 20250130


class BuiltInModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model and the input for which its outputs are compared.

    ``code`` is the expression that builds the model, here and in the snippet. ``longest_sum`` is
    the largest number of terms in the sum of a single number.
    """

    description: ModelDescription
    code: str
    input_shape: tuple[int, ...]
    longest_sum: int

    def build(self) -> tuple[nn.Module, torch.Tensor]:
        """Return the model in evaluation mode and its input on the CPU, the same every time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            model: nn.Module = eval(self.code, {"torch": torch})
            return model.eval(), torch.randn(self.input_shape)

    def tolerance(self, output: torch.Tensor, dtypes: Iterable[torch.dtype]) -> float:
        """Return the allowed difference between two devices, or between two dtypes on one device.

        The rounding errors of a sum of n terms grow on average as √n · eps (Higham and Mary, A new
        approach to probabilistic rounding error analysis, 2019); the factor 16 covers the layers
        and the tail. Products in half precision are summed in float32, so only the rounding of the
        operands remains, which does not grow with the sum.

        Args:
            output: the output, in any dtype.
            dtypes: the dtypes in which the model computed, before and after.
        """
        coarsest = max(torch.finfo(dtype).eps for dtype in dtypes)
        summed = math.sqrt(self.longest_sum) * torch.finfo(torch.float32).eps
        return 16 * max(coarsest, summed) * float(output.abs().max())


MODELS = (
    BuiltInModel(
        description=LINEAR_10,
        code="torch.nn.Linear(10, 10)",
        input_shape=(8, 10),
        longest_sum=11,
    ),
    BuiltInModel(
        description=LINEAR_1000,
        code="torch.nn.Linear(1000, 500)",
        input_shape=(1000, 1000),
        longest_sum=1001,
    ),
    BuiltInModel(
        description=CONVNET,
        code="""torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1),
    torch.nn.BatchNorm2d(16),
    torch.nn.ReLU(),
    torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(16, 32, 3, padding=1),
    torch.nn.BatchNorm2d(32),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(),
    torch.nn.Linear(32, 10),
)""",
        input_shape=(8, 3, 32, 32),
        longest_sum=145,
    ),
    BuiltInModel(
        description=MLP,
        code="""torch.nn.Sequential(
    torch.nn.Linear(784, 256),
    torch.nn.ReLU(),
    torch.nn.Linear(256, 128),
    torch.nn.ReLU(),
    torch.nn.Linear(128, 10),
)""",
        input_shape=(32, 784),
        longest_sum=785,
    ),
)


def find_model(name: str) -> BuiltInModel:
    """Return a built-in model; raises `StudioError` with the known names."""
    for model in MODELS:
        if model.description.name == name:
            return model
    names = ", ".join(model.description.name for model in MODELS)
    raise StudioError(FailureKind.BAD_REQUEST, f"“{name[:20]}” is not a model: choose {names}.")
