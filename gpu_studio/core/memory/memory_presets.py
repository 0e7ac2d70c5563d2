"""The experiments of the memory lab: Python that makes tensors and drops them.

Each is a generator. What it yields is a moment (`core.memory.memory_bench`) at which somebody may
read the memory, or an event; when it goes on, so does the experiment. To drop a tensor is to drop
the last reference to it, as in any program with PyTorch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.activation_presets import activations
from gpu_studio.core.memory.fragmentation_preset import fragmentation
from gpu_studio.core.memory.memory_bench import ALLOCATED, EMPTIED, FREED, FULL, HELD, Bench
from gpu_studio.core.tensors import ITEM_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from gpu_studio.core.messages.memory_messages import StageBegan

    Moments = Generator[str | StageBegan, None, None]

MIB = 1 << 20
_GT_1030_BYTES = 8192 * 8192 * 4
_SMALL_BYTES = 256 * 256 * 4


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment as people choose it.

    Attributes:
        ends_in: the outcomes it is made to end in: with a budget, and on the whole card.
        source: where it is from; empty where we made it up.
    """

    name: str
    title: str
    sentence: str
    ends_in: tuple[str, str]
    source: str = ""


PRESETS = (
    Preset(
        name="gt1030",
        title="8192 × 8192 until it breaks",
        sentence="Matrices of 8192 × 8192 float32, 256 MiB each, are made until memory ends.",
        ends_in=("over_budget", "card_full"),
        source="“How can I run any code on my GPU, instead on CPU?” by Radosław Śmigielski",
    ),
    Preset(
        name="many_small",
        title="Many small tensors",
        sentence=(
            "Tensors of 256 KiB are made until memory ends. Eight of them share one segment of "
            "2 MiB, so what is reserved grows in steps."
        ),
        ends_in=("over_budget", "card_full"),
    ),
    Preset(
        name="one_big",
        title="One that is too big",
        sentence="A single square matrix is asked for that is larger than all there is.",
        ends_in=("over_budget", "card_full"),
    ),
    Preset(
        name="fragmentation",
        title="Enough is free, and yet it fails",
        sentence=(
            "Small tensors settle in the front of large ones that were freed. Then a tensor is "
            "asked for that is smaller than what is free, and larger than every piece of it."
        ),
        ends_in=("fragmented", "fragmented"),
    ),
    Preset(
        name="leak",
        title="A leak",
        sentence=(
            "A training loop keeps every step's loss together with its graph, as "
            "“history.append(loss)” does, instead of the number."
        ),
        ends_in=("leak", "leak"),
    ),
    Preset(
        name="activations",
        title="The batch that is too large",
        sentence=(
            "The batch is doubled until a training step breaks, then until a step under "
            "torch.no_grad() does, which keeps no activations for the way back."
        ),
        ends_in=("over_budget", "card_full"),
    ),
    Preset(
        name="after_the_error",
        title="After the error",
        sentence=(
            "A function fills the card and fails. As long as somebody holds the exception, its "
            "traceback holds the function's variables, and they hold the tensors."
        ),
        ends_in=("over_budget", "card_full"),
    ),
    Preset(
        name="custom",
        title="Your own",
        sentence="Square tensors as the sliders say, until all are there or memory ends.",
        ends_in=("over_budget", "card_full"),
    ),
)


def find_preset(name: str) -> Preset:
    """Return a preset; raises `StudioError` with the names there are."""
    for preset in PRESETS:
        if preset.name == name:
            return preset
    names = ", ".join(preset.name for preset in PRESETS)
    raise StudioError(
        FailureKind.BAD_REQUEST,
        f"“{name[:20]}” is not a preset of the memory lab: there are {names}.",
    )


def moments_of(name: str, bench: Bench) -> Moments:
    """Return a preset's experiment, which has not begun."""
    return _SCRIPTS[find_preset(name).name](bench)


def _until_full(bench: Bench, sizes: Iterable[int]) -> Moments:
    """Make tensors and keep them."""
    kept = []
    for size_bytes in sizes:
        tensor = bench.take(size_bytes)
        if tensor is None:
            yield FULL
            return
        kept.append(tensor)
        del tensor
        yield ALLOCATED
    yield HELD


def _same(size_bytes: int) -> Iterator[int]:
    while True:
        yield size_bytes


def _gt1030(bench: Bench) -> Moments:
    return _until_full(bench, _same(_GT_1030_BYTES))


def _many_small(bench: Bench) -> Moments:
    return _until_full(bench, _same(_SMALL_BYTES))


def _one_big(bench: Bench) -> Moments:
    return _until_full(bench, [4 * (math.isqrt(bench.room_bytes // 4) + 1) ** 2])


def _custom(bench: Bench) -> Moments:
    plan = bench.plan
    if plan is None:
        raise StudioError(FailureKind.BAD_REQUEST, "“custom” needs a plan: which tensors to make.")
    kept: list[object] = []
    number = 0
    while plan.count is None or number < plan.count:
        side = plan.size + number * plan.growth
        tensor = bench.take(side * side * ITEM_BYTES[plan.dtype])
        if tensor is None:
            yield FULL
            return
        kept.append(tensor)
        del tensor
        number += 1
        yield ALLOCATED
        if plan.frees_every_second and number % 2 == 1 and number > 1:
            del kept[-2]
            bench.drop()
            yield FREED
    yield HELD


def _leak(bench: Bench) -> Moments:
    """Keep a third of what every step takes."""
    kept_bytes = max(bench.room_bytes // 24 // MIB * MIB, MIB)
    history = []
    while True:
        activation = bench.take(2 * kept_bytes)
        loss = None if activation is None else bench.take(kept_bytes)
        if loss is None:
            yield FULL
            return
        yield ALLOCATED
        history.append(loss)
        bench.drop()
        del activation, loss
        bench.note_step_end()
        yield FREED


def _fill_and_fail(bench: Bench, size_bytes: int) -> Moments:
    """Fill a list that only this function knows, until memory ends."""
    batches = []
    while True:
        batches.append(bench.take_or_raise(size_bytes))
        yield ALLOCATED


def _after_the_error(bench: Bench) -> Moments:
    size_bytes = max(bench.room_bytes * 3 // 16 // MIB * MIB, MIB)
    held: BaseException | None = None
    yield bench.begin(
        "filling", "A function makes tensors and keeps them in a variable of its own."
    )
    try:
        yield from _fill_and_fail(bench, size_bytes)
    except RuntimeError as error:
        if not bench.card.is_out_of_memory(error):
            raise
        bench.note_end(error)
        held = error
    yield FULL
    yield bench.begin("held", "The function is over, and its exception is held.")
    bench.card.empty_cache()
    yield EMPTIED
    bench.note_stage("held", "empty_cache() gives nothing back: the traceback holds the tensors.")
    del held
    yield bench.begin("let go", "The exception is let go, and with it the tensors.")
    yield FREED
    bench.note_stage(
        "let go", "Nothing is allocated any more; PyTorch keeps the memory for itself."
    )
    bench.card.empty_cache()
    yield EMPTIED
    bench.note_stage("emptied", "Now empty_cache() gives it all back.")


if TYPE_CHECKING:
    _Script = Callable[[Bench], Moments]

_SCRIPTS: dict[str, _Script] = {
    "gt1030": _gt1030,
    "many_small": _many_small,
    "one_big": _one_big,
    "fragmentation": fragmentation,
    "leak": _leak,
    "activations": activations,
    "after_the_error": _after_the_error,
    "custom": _custom,
}
