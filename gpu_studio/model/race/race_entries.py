"""The contestants that this PC can race, and their names in a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.race.contestant import Contestant, usual_contestants
from gpu_studio.model.benchmark.benchmark_devices import device_choices

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.run_messages import RunFinished, WorkloadDescription


class RaceEntry(NamedTuple):
    """A contestant to choose.

    Attributes:
        contestant: what runs.
        label: its name in a list and on its picture.
    """

    contestant: Contestant
    label: str


def race_entries(
    picture: WorkloadDescription, inventory: Inventory | None, engine: EngineDescribed | None
) -> tuple[RaceEntry, ...]:
    """Return the contestants for a picture: the usual precision first, the CPU before the cards.

    Args:
        picture: says in which precisions it can be drawn.
        inventory: the devices; None before they are found.
        engine: None before it has started: then only the CPU races.
    """
    entries: list[RaceEntry] = []
    for dtype in picture.dtypes:
        suffix = "" if dtype == picture.dtypes[0] else f", {dtype}"
        for threads, label in _cpu_threads(engine):
            contestant = Contestant(device="cpu", threads=threads, dtype=dtype)
            entries.append(RaceEntry(contestant, f"{label}{suffix}"))
        for address, label in _cards(inventory, engine):
            entries.append(RaceEntry(Contestant(device=address, dtype=dtype), f"{label}{suffix}"))
            if picture.race is not None and picture.race.own_kernel:
                own = Contestant(device=address, dtype=dtype, own_kernel=True)
                entries.append(RaceEntry(own, f"{label}, custom CUDA kernel{suffix}"))
    return tuple(entries)


def first_contestants(
    entries: Sequence[RaceEntry], engine: EngineDescribed | None
) -> tuple[Contestant, Contestant]:
    """Return the race that this PC is offered first.

    On a single core without a card, two precisions race.
    """
    cards = [one.contestant.device for one in entries if not is_cpu(one.contestant.device)]
    threads = engine.cpu_threads if engine is not None else 2
    usual = usual_contestants(cards, threads)
    if len(usual) > 1:
        return usual[0], usual[1]
    others = [one.contestant for one in entries if one.contestant.dtype != usual[0].dtype]
    return usual[0], others[0] if others else usual[0]


def _cpu_threads(engine: EngineDescribed | None) -> Iterator[tuple[int | None, str]]:
    count = engine.cpu_threads if engine is not None else 0
    yield 1, "CPU, 1 thread"
    if count != 1:
        yield None, f"CPU, {count} threads" if count else "CPU, all threads"


def _cards(
    inventory: Inventory | None, engine: EngineDescribed | None
) -> Iterator[tuple[str, str]]:
    if engine is None:
        return
    for choice in device_choices(inventory, engine):
        if choice.address is not None and not is_cpu(choice.address):
            yield choice.address, choice.label


def name_of(result: RunFinished) -> str:
    """Return a contestant's name as in the lists."""
    name = short_name(result.device_name)
    if is_cpu(result.device):
        count = result.cpu_threads or 0
        name = f"CPU, {count} {'thread' if count == 1 else 'threads'}"
    if result.has_own_kernel:
        name += ", custom CUDA kernel"
    return name if result.dtype == "float32" else f"{name}, {result.dtype}"
