"""Moving a model or a file between devices: each tensor's place, and proof that nothing changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

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
from gpu_studio.core.tensors import check_dtype
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.device import (
    accelerator_of,
    card_name,
    free_bytes,
    prove_kernels,
    refuse_bfloat16_products,
    uuid_of,
)
from gpu_studio.engine.device import resolve as resolve_device
from gpu_studio.engine.switcher.models import find_model
from gpu_studio.engine.switcher.tensor_file import open_tensors, snippet_to_open, version_of
from gpu_studio.engine.switcher.timed_copy import TimedCopy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.messages.message import Event

    _Memory = tuple[int | None, int | None, int | None]
    from gpu_studio.engine.switcher.models import BuiltInModel


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
    """The last model or file that was moved. It stays on its device until the next move."""

    def __init__(self) -> None:
        self._placed: Placed | None = None

    def place(self, request: PlaceModel) -> Iterator[Event]:
        """Move a model or a file's tensors; yield a row per tensor, then the result.

        Raises:
            StudioError: no such model, device or dtype, a rejected file, or too little memory.
        """
        dtype = _dtype_of(request.dtype)
        device = resolve_device(request.device)
        thing = self._load(request)
        self._check(thing, device, dtype)
        before = {name: Place.of(tensor) for name, _, tensor in thing.tensors()}
        thing.begin_proof()
        memory_before = _memory(device)
        elapsed_s = _move(thing, device, dtype)
        deltas = _differences(memory_before, _memory(device))
        rows = [row_of(name, kind, tensor, before[name]) for name, kind, tensor in thing.tensors()]
        yield from rows
        proof = thing.end_proof()
        moved = [row for row in rows if row.device_before != row.device_after]
        # Kept only now: a model that was moved only in part is on no single device.
        self._placed = thing
        yield PlaceFinished(
            model=thing.title,
            device=request.device,
            tensors=len(rows),
            moved_bytes=sum(row.bytes for row in moved),
            elapsed_s=elapsed_s,
            same_output=proof.same,
            largest_difference=proof.largest_difference,
            tolerance=proof.tolerance,
            input_shape=thing.input_shape,
            output_device=proof.device,
            allocated_delta_bytes=deltas[0],
            reserved_delta_bytes=deltas[1],
            card_delta_bytes=deltas[2],
            proof=thing.proof,
            untested=untested_sentence(accelerator_of(device).maker),
            dtype=request.dtype,
            snippet=thing.snippet(request.device, request.dtype),
        )

    def _check(self, thing: Placed, device: torch.device, dtype: torch.dtype | None) -> None:
        """Raise `StudioError` if the device cannot take the thing, which then stays where it is."""
        try:
            if thing.needs_kernels and torch.bfloat16 in _dtypes_after(thing, dtype):
                refuse_bfloat16_products(device)
            if thing.needs_kernels or dtype is not None:
                # This also creates a card's context, which takes long and is not part of the move.
                prove_kernels(device)
            _refuse_too_large(thing, device)
        except StudioError:
            self._placed = thing
            raise

    def _load(self, request: PlaceModel) -> Placed:
        """Return the thing on its current device, or a new one on the CPU.

        A file that has changed since then is opened again: its mapped tensors are no longer valid.
        """
        thing, self._placed = self._placed, None
        is_same = thing is not None and thing.key == (request.model, request.path)
        if thing is not None and is_same and thing.is_current():
            return thing
        del thing
        return placed(request.model, request.path)


class Place(NamedTuple):
    """A tensor's device and dtype, by name."""

    device: str
    dtype: str

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Place:
        return cls(str(tensor.device), str(tensor.dtype).removeprefix("torch."))


def _dtype_of(name: str) -> torch.dtype | None:
    if not name:
        return None
    check_dtype(name)
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def row_of(name: str, kind: str, tensor: torch.Tensor, before: Place) -> PlaceRow:
    """Return the row of a tensor that was in another place before."""
    after = Place.of(tensor)
    return PlaceRow(
        name=name,
        kind=kind,
        shape=tuple(tensor.shape),
        dtype=after.dtype,
        bytes=tensor.numel() * tensor.element_size(),
        device_before=before.device,
        device_after=after.device,
        dtype_before=before.dtype,
    )


def _dtypes_after(thing: Placed, dtype: torch.dtype | None) -> set[torch.dtype]:
    """Return the floating-point dtypes of a thing's tensors after a move."""
    now = {tensor.dtype for _, _, tensor in thing.tensors() if tensor.is_floating_point()}
    return now if dtype is None else {dtype}


def _refuse_too_large(thing: Placed, device: torch.device) -> None:
    """Raise `StudioError` if the device has too little free memory for a thing."""
    needed = sum(
        tensor.numel() * tensor.element_size()
        for _, _, tensor in thing.tensors()
        if tensor.device != device
    )
    available = free_bytes(device) if needed else 0
    if needed > available:
        raise StudioError(
            FailureKind.TOO_LARGE,
            f"{thing.title[:60]} needs {format_bytes(needed)}, but only "
            f"{format_bytes(available)} is free on {device}.",
        )


def _move(thing: Placed, device: torch.device, dtype: torch.dtype | None) -> float:
    """Move a thing; return the seconds of the copies only."""
    copy = TimedCopy(device, dtype)
    thing.move(copy)
    return copy.elapsed_s


def _differences(before: _Memory, after: _Memory) -> list[int | None]:
    return [
        None if earlier is None or later is None else later - earlier
        for earlier, later in zip(before, after, strict=True)
    ]


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


class PlacedModel:
    """A built-in model with an input for it; its output is the proof."""

    proof = "output"
    needs_kernels = True  # on the device, for the proof

    def __init__(self, name: str) -> None:
        self.built_in: BuiltInModel = find_model(name)
        self.key = (name, "")
        self.title = name
        self.input_shape = self.built_in.input_shape
        self._model, self._example = self.built_in.build()
        self._before: torch.Tensor | None = None
        self._dtypes: set[torch.dtype] = set()

    def is_current(self) -> bool:
        return True

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
            target=_target(device, dtype),
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


class PlacedFile:
    """The tensors of a file. The proof reads them back and compares them with the file."""

    proof = "values"
    needs_kernels = False
    input_shape: tuple[int, ...] = ()

    def __init__(self, path: str) -> None:
        self.key = ("", path)
        self.title = Path(path).name
        self._path = path
        self._version = version_of(path)
        self._file = open_tensors(path)
        self._tensors = dict(self._file)
        # The coarsest dtype so far: a conversion to half and back keeps only half's digits.
        self._coarsest: torch.dtype | None = None

    def is_current(self) -> bool:
        """Return whether the file is untouched: its tensors stay in it until they are read."""
        return version_of(self._path) == self._version

    def tensors(self) -> Iterator[tuple[str, str, torch.Tensor]]:
        for name, tensor in self._tensors.items():
            yield name, "tensor", tensor

    def move(self, copy: TimedCopy) -> None:
        """Move one tensor after the other; each old tensor is freed at once."""
        for name, tensor in self._tensors.items():
            self._tensors[name] = copy(tensor, reads_file=True)
        if copy.dtype is not None:
            known = self._coarsest
            if known is None or torch.finfo(copy.dtype).eps > torch.finfo(known).eps:
                self._coarsest = copy.dtype

    def begin_proof(self) -> None:
        """Do nothing: the proof compares with the file itself."""

    def end_proof(self) -> Proof:
        """Compare all bit for bit, or within the rounding of the coarsest dtype."""
        worst, allowed, same = 0.0, 0.0, True
        for name, tensor in self._tensors.items():
            original = self._file[name]
            back = tensor.detach().to("cpu")
            if back.dtype == original.dtype and self._coarsest is None:
                same = same and _same_bits(original, back)
                continue
            if not original.is_floating_point():
                same = same and _same_bits(original, back)
                continue
            difference, tolerance = _rounding(original, back, self._coarsest)
            same = same and difference <= tolerance
            worst, allowed = max(worst, difference), max(allowed, tolerance)
        device = next(iter(self._tensors.values())).device
        return Proof(same=same, largest_difference=worst, tolerance=allowed, device=str(device))

    def snippet(self, device: str, dtype: str) -> str:
        convert = _CONVERT.format(dtype=dtype) if dtype else ""
        opened = snippet_to_open(self._path)
        return f"{opened}\n{_MOVE.format(device=device, convert=convert)}"


Placed: TypeAlias = PlacedModel | PlacedFile


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors are equal bit for bit, NaN included."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    # A conjugate or negative view stores its sign apart from its bytes.
    plain = [tensor.resolve_conj().resolve_neg().contiguous() for tensor in (one, other)]
    raw = [tensor.reshape(-1).view(torch.uint8) for tensor in plain]
    return torch.equal(*raw)


def _rounding(
    original: torch.Tensor, back: torch.Tensor, coarsest: torch.dtype | None
) -> tuple[float, float]:
    """Return the largest difference, and the difference that rounding explains.

    A number beyond the coarsest dtype's range becomes infinite. That is not rounding, so the
    difference is infinite, too.
    """
    if not original.numel():
        return 0.0, 0.0
    exact, found = original.double(), back.double()
    both_nan = exact.isnan() & found.isnan()
    difference = torch.where(both_nan | (exact == found), 0.0, (exact - found).abs())
    finite = exact[exact.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    limits = torch.finfo(coarsest or back.dtype)
    worst = float(difference.nan_to_num(float("inf")).max())
    return worst, max(largest * limits.eps, limits.smallest_normal * limits.eps)


def placed(name: str, path: str) -> Placed:
    """Return a new model or file on the CPU; raises `StudioError`."""
    return PlacedFile(path) if path else PlacedModel(name)


def _target(device: str, dtype: str) -> str:
    return f'"{device}", torch.{dtype}' if dtype else f'"{device}"'


_MODEL_SNIPPET = """\
import torch

model = {code}
x = torch.randn{shape}

model = model.to({target})
x = x.to({target})
y = model(x)
print(y.shape, y.dtype, y.device)
for name, tensor in model.state_dict().items():  # parameters and buffers
    print(name, tuple(tensor.shape), tensor.dtype, tensor.device)
"""

_MOVE = """\
for name, tensor in tensors.items():
    tensors[name] = tensor = tensor.to("{device}"{convert})
    print(name, tuple(tensor.shape), tensor.dtype, tensor.device)
"""
_CONVERT = ", torch.{dtype} if tensor.is_floating_point() else tensor.dtype"
