"""The contestants that can race, and their names in a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.device_name import is_cpu, name_at, pc_of
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.race.contestant import Contestant, usual_contestants
from gpu_studio.core.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.run_messages import RunFinished, WorkloadDescription
    from gpu_studio.model.devices.device_board import DeviceBoard


class RaceEntry(NamedTuple):
    """A contestant to choose.

    Attributes:
        contestant: what runs, on a device by its name in this engine.
        label: its name in a list and on its picture.
        identity: its device's permanent name; empty for a run from elsewhere.
    """

    contestant: Contestant
    label: str
    identity: str = ""

    @property
    def choice(self) -> Contestant:
        """The contestant on its device by the permanent name: the same in every engine."""
        return msgspec.structs.replace(self.contestant, device=self.identity)


def race_entries(
    picture: WorkloadDescription,
    board: DeviceBoard,
    engines: Mapping[str, EngineDescribed | None],
) -> tuple[RaceEntry, ...]:
    """Return the contestants for a picture: the usual precision first, the CPUs before the cards.

    Args:
        picture: says in which precisions it can be drawn.
        board: the devices of all PCs.
        engines: know their numbers of threads, by the names of their PCs; None before they start.
    """
    entries: list[RaceEntry] = []
    for dtype in picture.dtypes:
        suffix = "" if dtype == picture.dtypes[0] else f", {dtype}"
        for cpu in board.cpus:
            if cpu.address is None:  # of a PC that is not connected
                continue
            for threads, label in _cpu_threads(engines.get(cpu.pc)):
                contestant = Contestant(device=cpu.address, threads=threads, dtype=dtype)
                name = name_at(cpu.pc, f"{label}{suffix}")
                entries.append(RaceEntry(contestant, name, cpu.identity))
        for card in board.usable_cards:
            contestant = Contestant(device=card.address or "", dtype=dtype)
            entries.append(RaceEntry(contestant, f"{card.label}{suffix}", card.identity))
    return tuple(entries)


def first_contestants(
    entries: Sequence[RaceEntry], engine: EngineDescribed | None
) -> tuple[Contestant, Contestant]:
    """Return the race that this PC is offered first.

    On a single core without a card, two precisions race.
    """
    entries = [one for one in entries if not pc_of(one.contestant.device)]
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
        yield None, f"CPU, {counted(count, 'thread')}" if count else "CPU, all threads"


def name_of(result: RunFinished, device_name: str = "") -> str:
    """Return a contestant's name as in the lists.

    Args:
        result: its result.
        device_name: its device's name on this PC; by default that of the result.
    """
    name = device_name or name_at(pc_of(result.device), short_name(result.device_name))
    if is_cpu(result.device):
        count = result.conditions.cpu_threads or 0
        name = f"CPU, {count} {'thread' if count == 1 else 'threads'}"
        name = name_at(pc_of(result.device), name)
    if result.has_own_kernel:
        name += ", custom CUDA kernel"
    return name if result.dtype == "float32" else f"{name}, {result.dtype}"
