"""What one call of a user's code does, seen by PyTorch while it runs.

The pitfalls it falls into come from here, each with its line, and never from the text. Random
numbers are drawn on the CPU, from one seed, so that both sides compute with the same ones.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.switcher.pitfalls import MODEL_ON_CPU, STARVED_GPU, TINY_MODEL
from gpu_studio.core.units import counted, format_bytes, format_count
from gpu_studio.engine.own_code.limits import NAME, line_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.messages.pitfall_messages import PitfallDescription

_COPIES = ("aten::_to_copy", "aten::copy_")
_HEAVY = tuple(
    f"aten::{name}"
    for name in ("mm", "addmm", "bmm", "baddbmm", "convolution", "_scaled_dot", "dot", "mv")
)
_NO_WORK = ("aten::empty", "aten::lift", "aten::detach", "aten::alias")
_SMALL = 1 << 16  # numbers: less than a card computes in the time of launching it
_FEW_ITEMS = 3  # numbers that a call fetches at its end
# Less is what a script has to copy anyway: its input, the numbers of its small model.
_MUCH_COPIED_BYTES, _MANY_COPIES = 256 << 10, 10


class CodeFinding(NamedTuple):
    """A sentence about what a call falls into, and the lesson about it, if there is one."""

    sentence: str
    lesson: PitfallDescription | None = None

    def __str__(self) -> str:
        """Return the sentence, with the lesson's title."""
        return (
            f"{self.sentence} See the lesson “{self.lesson.title}”."
            if self.lesson
            else self.sentence
        )


class Observer(TorchDispatchMode):
    """Watches one call.

    Args:
        device: the side whose turn it is.

    Attributes:
        operations: the number of PyTorch's operations that compute.
        dtypes: how often each type of floating-point numbers is a result.
        last: the last tensor that was computed.
        is_on_device: whether anything was computed on the device.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._device = device
        self.operations, self.largest = 0, 0
        self.dtypes: Counter[str] = Counter()
        self.last: torch.Tensor | None = None
        self.is_on_device = False
        self._copied: defaultdict[int, list[int]] = defaultdict(list)
        self._items: Counter[int] = Counter()
        self._doubles: Counter[int] = Counter()
        self._elsewhere: Counter[int] = Counter()
        self.generators: Counter[int] = Counter()

    def __enter__(self) -> Observer:
        self._generator, generators = torch.Generator, self.generators

        class Counted(torch.Generator):
            def __new__(cls, *args: Any, **options: Any) -> Any:
                asking = sys._getframe(1)
                if asking.f_code.co_filename == NAME:  # not a data set that shuffles
                    generators[asking.f_lineno] += 1
                return super().__new__(cls, *args, **options)

        torch.Generator = Counted  # type: ignore[misc]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *about: Any) -> None:
        super().__exit__(*about)  # type: ignore[no-untyped-call]
        torch.Generator = self._generator  # type: ignore[misc]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Do an operation, and note what is to be said about it."""
        options = kwargs or {}
        is_random = torch.Tag.nondeterministic_seeded in func.tags and not is_cpu(self._device.type)
        result = _on_cpu(func, args, options) if is_random else func(*args, **options)
        self._note(func, args, result)
        return result

    def _note(self, func: Any, args: tuple[Any, ...], result: Any) -> None:
        name = func.name().partition(".")[0]
        made = result[0] if isinstance(result, (tuple, list)) and result else result
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if name == "aten::_local_scalar_dense":
            if first is not None and first.device.type == self._device.type:
                self._items[line_of(sys._getframe())] += 1
            return
        if not isinstance(made, torch.Tensor):
            return
        if name in _COPIES:
            source = args[1] if name == "aten::copy_" else first
            if isinstance(source, torch.Tensor) and source.device != made.device:
                self._copied[line_of(sys._getframe())].append(made.nbytes)
            return
        if func.is_view or name.startswith(_NO_WORK):
            return
        self._count(name, made)

    def _count(self, name: str, made: torch.Tensor) -> None:
        self.operations += 1
        self.largest = max(self.largest, made.numel())
        self.is_on_device = self.is_on_device or made.device.type == self._device.type
        if made.dtype.is_floating_point:
            self.dtypes[str(made.dtype).removeprefix("torch.")] += 1
            self.last = made.detach()
        if made.dtype == torch.float64 and made.dim():
            self._doubles[line_of(sys._getframe())] += 1
        if made.device.type != self._device.type and name.startswith(_HEAVY):
            self._elsewhere[line_of(sys._getframe())] += 1

    # ── what is said ─────────────────────────────────────────────────────────────────────────────

    def findings(self, *, is_slow_in_float64: bool) -> Iterator[CodeFinding]:
        """Yield what the call falls into, with its line.

        Args:
            is_slow_in_float64: whether the device computes float64 far slower than float32.
        """
        for line, count in sorted(self._elsewhere.items()):
            yield CodeFinding(
                f"Line {line} computes on the CPU{_times(count)}, although the card is timed.",
                MODEL_ON_CPU,
            )
        for line, sizes in sorted(self._copied.items()):
            if sum(sizes) < _MUCH_COPIED_BYTES and len(sizes) < _MANY_COPIES:
                continue
            yield CodeFinding(
                f"Line {line} copies {format_bytes(sum(sizes))} between CPU and card in each run"
                f"{_pieces(len(sizes))}. Copy once, before the loop.",
                STARVED_GPU,
            )
        for line, count in sorted(self._items.items()):
            if count > _FEW_ITEMS and not is_cpu(self._device.type):
                yield CodeFinding(
                    f"Line {line} fetches a number from the card{_times(count)} (.item(), print, "
                    "if). The CPU waits for the card each time."
                )
        if is_slow_in_float64:
            for line, _ in self._doubles.most_common(1):
                yield CodeFinding(
                    f"Line {line} computes in float64, which this card does at a small part of its "
                    "speed. Use float32 if it is exact enough."
                )
        for line, count in sorted(self.generators.items()):
            yield CodeFinding(
                f"Line {line} makes a random generator in each run{_times(count)}. Make it once."
            )
        if self.operations and self.largest < _SMALL:
            yield CodeFinding(
                f"It is small: {counted(self.operations, 'operation')} on at most "
                f"{counted(self.largest, 'number')}. Launching them is most of a card's time.",
                TINY_MODEL,
            )


def _times(count: int) -> str:
    return f" {format_count(count)} times" if count > 1 else ""


def _pieces(count: int) -> str:
    return f", in {format_count(count)} pieces" if count > 1 else ""


def _on_cpu(func: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Draw random numbers with the CPU's generator, and put them where they were wanted."""
    places = [one.device for one in args if isinstance(one, torch.Tensor)]
    wanted = places[0] if places else torch.device(options.get("device") or "cpu")

    def here(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.cpu()
        if isinstance(value, torch.device):
            return torch.device("cpu")
        return None if isinstance(value, torch.Generator) else value

    drawn = func(*tree_map(here, args), **tree_map(here, options))
    if func._schema.is_mutable and places:
        return args[0].copy_(drawn)
    return tree_map(lambda one: one.to(wanted) if isinstance(one, torch.Tensor) else one, drawn)
