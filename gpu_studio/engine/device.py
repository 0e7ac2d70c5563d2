"""Addresses, devices and their state: the only module that asks PyTorch which there are.

PyTorch's description of each card, without a CUDA context.

Snippets that see the cards in the same way as this engine.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import torch

from gpu_studio.core.device_name import CPU, DeviceName
from gpu_studio.core.error_table import Family
from gpu_studio.core.errors.reader import family_of
from gpu_studio.core.failure import FailureKind, StudioError, first_line
from gpu_studio.core.messages.engine_messages import StartError, TorchCard
from gpu_studio.core.switcher import whole_snippet
from gpu_studio.engine.accelerators.accelerator import Accelerator
from gpu_studio.engine.accelerators.cuda import Cuda
from gpu_studio.engine.accelerators.rocm import Rocm
from gpu_studio.engine.accelerators.xpu import Xpu

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)
# A build of PyTorch is for one of these at most; the first speaks for a build without any.
ACCELERATORS: list[Accelerator] = [Cuda(), Rocm(), Xpu()]
_CPU = Accelerator()
_LONGEST_SHOWN = 20
_CARDS_ASLEEP = (
    "This PC's {maker} cards are asleep to save power, and starting {platform} would wake them."
)
_are_cards_left_alone = threading.Event()


class AcceleratorState(NamedTuple):
    """Whether cards can be used; if not, why, and PyTorch's own error."""

    is_available: bool
    reason: str | None = None
    error: StartError | None = None


def accelerator() -> Accelerator:
    """Return what this PyTorch is built for."""
    return next((one for one in ACCELERATORS if one.build is not None), ACCELERATORS[0])


def accelerator_of(device: torch.device) -> Accelerator:
    """Return what PyTorch offers on a device: a card, or the CPU; `meta` is like the CPU."""
    cards = accelerator()
    return cards if device.type == cards.kind else _CPU


def addresses() -> list[str]:
    """Return the devices: ``cpu``, then ``cuda:0`` and so on. Creates no context."""
    cards = accelerator()
    indices = range(cards.count() if accelerator_state().is_available else 0)
    return [CPU, *(str(DeviceName(cards.kind, index)) for index in indices)]


def resolve(address: str) -> torch.device:
    """Return the device of an address; starts CUDA for a card, but creates no context.

    Raises:
        StudioError: no such device; the message names the existing devices.
    """
    if address == CPU:  # of this PC
        return torch.device(CPU)
    index = _index_of(address)
    state = accelerator_state()
    if index is not None and not state.is_available:
        raise StudioError(
            FailureKind.NO_CUDA, f"There is no {address} here, only cpu. {state.reason}"
        )
    if index is None or index >= accelerator().count():
        there_are = ", ".join(addresses())
        verb = "are" if "," in there_are else "is"
        shown = address if len(address) <= _LONGEST_SHOWN else f"{address[: _LONGEST_SHOWN - 3]}…"
        raise StudioError(
            FailureKind.NO_SUCH_DEVICE, f"There is no {shown} here; there {verb} {there_are}."
        )
    start_accelerator()
    return torch.device(accelerator().kind, index)


def _index_of(address: str) -> int | None:
    """Return the number of a card of this PyTorch; None for any other text."""
    try:
        name = DeviceName.parse(address)
    except ValueError:
        return None
    return name.index if name.kind == accelerator().kind and not name.pc else None


def start_accelerator() -> None:
    """Start PyTorch's part for the cards once; its warnings (an unsupported card) go to the log."""
    if accelerator().is_started():
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        accelerator().start()
    for warning in caught:
        _log.warning("%s: %s", accelerator().platform, warning.message)
    first = first_card()
    if first:
        accelerator().use(torch.device(accelerator().kind, first))


def first_card() -> int:
    """Return the number of the card to begin with: PyTorch's first outside a processor.

    On a Ryzen beside a Radeon, PyTorch's first card may be the one in the processor.
    """
    cards = accelerator()
    numbers = range(cards.count())
    return next((number for number in numbers if not cards.is_integrated(number)), 0)


def leave_cards_alone(is_wished: bool) -> bool:
    """Stop calling CUDA, or allow it again; return whether CUDA is left alone.

    Every call to CUDA needs ``cuInit``, which wakes sleeping cards. If this process has already
    called CUDA, there is nothing left to protect.
    """
    if is_wished and not _first_state.cache_info().currsize:
        _are_cards_left_alone.set()
    else:
        _are_cards_left_alone.clear()
    return _are_cards_left_alone.is_set()


def accelerator_state() -> AcceleratorState:
    """Return whether cards can be used, and if not, why. Creates no context.

    The state does not change while a process lives, because CUDA reads its environment once. While
    the cards are left alone, they cannot be used and are not called.
    """
    if _are_cards_left_alone.is_set():
        cards = accelerator()
        reason = _CARDS_ASLEEP.format(maker=cards.maker, platform=cards.platform)
        return AcceleratorState(False, reason)
    return _first_state()


@lru_cache(maxsize=1)
def _first_state() -> AcceleratorState:
    cards = accelerator()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = cards.is_available()
    for warning in caught:
        _log.warning("%s: %s", accelerator().platform, warning.message)
    if available:
        return AcceleratorState(True)
    try:
        # This cannot succeed now, and its error says more than is_available does.
        cards.start()
    except Exception as error:  # AssertionError, RuntimeError: it depends on the build
        text = str(error)
    else:
        text = ""
    failed = StartError(
        text=first_line(text, 400), code=cards.start_code(text), library=cards.driver_library()
    )
    return AcceleratorState(False, cards.explain(text), failed)


def prove_kernels(device: torch.device) -> None:
    """Run one small kernel: the only proof that PyTorch has code for a card.

    Everything else works without code: the card is listed, memory is allocated, copies run.

    Raises:
        StudioError: this build has no code for the card; the message names both.
    """
    try:
        torch.zeros(1, device=device).add_(1)
        synchronize(device)
    except RuntimeError as error:
        if family_of(str(error)) is not Family.NO_CODE:
            raise
        cards = accelerator_of(device)
        listed = ", ".join(cards.arch_list())
        message = (
            f"This PyTorch ({torch.__version__}) has no code for the {cards.name(device)} "
            f"({cards.architecture(device)}){f', only for {listed}' if listed else ''}. "
            f"{cards.advice(device)}"
        )
        raise StudioError(FailureKind.NO_KERNEL, message) from error


def refuse_bfloat16_products(device: torch.device) -> None:
    """Raise `StudioError` for a card that cannot multiply matrices in bfloat16."""
    reason = accelerator_of(device).refuses_bfloat16_products(device)
    if reason:
        raise StudioError(FailureKind.DTYPE_UNSUPPORTED, reason)


def refuse_dtype(device: torch.device, dtype: torch.dtype) -> None:
    """Raise `StudioError` for a card that cannot compute in a dtype."""
    name = str(dtype).removeprefix("torch.")
    reason = accelerator_of(device).refuses_dtype(device, name)
    if reason:
        raise StudioError(FailureKind.DTYPE_UNSUPPORTED, reason)


def synchronize(device: torch.device) -> None:
    """Wait until a device has finished all its work."""
    accelerator_of(device).synchronize(device)


def time_once(call: Callable[[], object], device: torch.device) -> float:
    """Return the seconds of one call until the device is idle, by the wall clock."""
    wait = accelerator_of(device).synchronize
    start_s = time.perf_counter()
    call()
    wait(device)
    return time.perf_counter() - start_s


def card_name(device: torch.device) -> str:
    """Return a card's name."""
    return accelerator_of(device).name(device)


def uuid_of(device: torch.device) -> str | None:
    """Return a card's UUID in the driver's format; None for the CPU."""
    return accelerator_of(device).uuid(device)


def free_bytes(device: torch.device) -> int:
    """Return the bytes that can be allocated now; on a card, this includes PyTorch's free memory.

    Creates a context on a card.
    """
    cards = accelerator_of(device)
    free, total = cards.free_and_total(device)
    reserved, allocated = cards.reserved_bytes(device), cards.allocated_bytes(device)
    if free is None:  # unknown: what other programs hold is found out only by trying
        free = total - (reserved or 0)
    return free + (reserved or 0) - (allocated or 0)


def total_bytes(device: torch.device) -> int:
    """Return a device's whole memory in bytes; creates a context on a card."""
    return accelerator_of(device).free_and_total(device)[1]


def torch_cards() -> tuple[TorchCard, ...]:
    """Return the cards that PyTorch sees, in its order; facts missing in an old one are None."""
    if not accelerator_state().is_available:
        return ()
    start_accelerator()
    return tuple(torch_card(index) for index in range(accelerator().count()))


def torch_card(index: int) -> TorchCard:
    """Return one card; only its number if PyTorch fails to describe it."""
    cards = accelerator()
    try:
        return cards.card(index)
    except (RuntimeError, UnicodeDecodeError) as error:
        _log.warning("PyTorch cannot describe %s:%s: %s", cards.kind, index, error)
        return TorchCard(
            torch_index=index, name=f"{cards.maker} card", kind=cards.kind, maker=cards.maker
        )


def complete(snippet: str) -> str:
    """Return a snippet with the lines that `whole_snippet.complete` adds on this PC."""
    if "cuda" not in snippet or not accelerator_state().is_available:
        return snippet
    return whole_snippet.complete(
        snippet,
        device_count=accelerator().count(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
    )
