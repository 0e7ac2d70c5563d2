"""A device with its results: of a standard run, of kept runs, or of a recording; and its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.standard import ITEMS
from gpu_studio.core.benchmark.standard_record import (  # noqa: TC001  # msgspec reads them
    StandardRun,
)
from gpu_studio.core.benchmark.trust import trust_of
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.messages.run_messages import (  # noqa: TC001  # msgspec reads them
    RunFinished,
)
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.texts import listed
from gpu_studio.core.units import format_percent, shown_moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.standard_record import StandardDevice

MOST_SIDES = 7


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """A device and its results, at most one of each work.

    Attributes:
        name: the device's.
        results: what it measured.
        place: what the user calls the run or its PC; often empty.
        made_at: when, in ISO 8601.
        is_here: whether this PC measured it.
        origin: tells what one engine made from the rest: only such runs took turns. 0 for kept
            runs, whose turns have unique names.
        fact: what else to say of it, in a sentence.
        run: the standard run that it is of; None for other results.
        number: its place among the devices of the standard run.
    """

    name: str
    results: tuple[RunFinished, ...]
    place: str = ""
    made_at: str = ""
    is_here: bool = False
    origin: int = 0
    fact: str = ""
    run: StandardRun | None = None
    number: int = 0

    @property
    def device(self) -> StandardDevice | None:
        """What a standard run says of the device; None for other results."""
        return self.run.devices[self.number] if self.run is not None else None

    @property
    def is_spare(self) -> bool:
        """Whether it is the CPU of a standard run that has a card as well."""
        cpus = [device.is_cpu for device in self.run.devices] if self.run is not None else []
        return any(cpus[self.number : self.number + 1]) and not all(cpus)


def sides_of(run: StandardRun, *, is_here: bool = False) -> tuple[Side, ...]:
    """Return all devices of a standard run, the CPU first."""
    sides = (
        Side(
            name=device.name,
            results=tuple(one.result for one in device.figures if one.result is not None),
            place=run.pc_name,
            made_at=run.made_at,
            is_here=is_here,
            origin=id(run),
            run=run,
            number=number,
        )
        for number, device in enumerate(run.devices)
    )
    return tuple(sorted(sides, key=lambda side: not run.devices[side.number].is_cpu))


def with_pc_name(sides: Sequence[Side], name: str) -> Sequence[Side]:
    """Return sides with the name that the user gives to this PC; other PCs keep theirs."""
    own = sides[0]
    if not name or not (own.is_here or _are_of_one_run(sides)):
        return sides
    run = own.run and msgspec.structs.replace(own.run, pc_name=name)
    return [
        msgspec.structs.replace(side, run=run, place=name) if side.origin == own.origin else side
        for side in sides
    ]


def _are_of_one_run(sides: Sequence[Side]) -> bool:
    return sides[0].run is not None and len({side.origin for side in sides}) == 1


# ── in words ─────────────────────────────────────────────────────────────────────────────────────


def side_names(sides: Sequence[Side]) -> tuple[str, ...]:
    """Return a short name for each side, no two alike: ``GTX 1060``, ``GTX 1060 (Lea's PC)``."""
    names = [short_name(side.name) or "unnamed device" for side in sides]
    for details in ([side.place for side in sides], [shown_moment(side.made_at) for side in sides]):
        doubled = [number for number, name in enumerate(names) if names.count(name) > 1]
        if len({(names[one], details[one]) for one in doubled}) > len({names[n] for n in doubled}):
            for number in filter(details.__getitem__, doubled):
                names[number] = f"{names[number]} ({details[number]})"
    used: dict[str, int] = {}
    for number, name in enumerate(names):
        used[name] = used.get(name, 0) + 1
        if used[name] > 1:
            names[number] = f"{name} ({used[name]})"
    return tuple(names)


def trust_of_sides(sides: Sequence[Side]) -> Notice:
    """Return how far to trust the results of all sides."""
    named = zip(side_names(sides), sides, strict=True)
    found = trust_of((name, result) for name, side in named for result in side.results)
    return found if found.sentence or not sides else Notice("Nothing measured", Tone.AMBER)


def facts_of(sides: Sequence[Side]) -> list[str]:
    """Return what stands below a table: a line for each device, and what its run depends on."""
    lines = []
    is_one_run = _are_of_one_run(sides)
    for name, side in zip(side_names(sides), sides, strict=True):
        device = side.device
        if device is None:
            lines.append(f"{name}: {side.fact}")
            continue
        words = (held_words(device), missing_words(device))
        driver = device.driver and f"driver {device.driver}"
        versions = (device.build and f"PyTorch {device.build}", driver)
        of_run = () if is_one_run else _run_words(side)
        lines.append(" ".join(filter(None, (f"{name}:", *words, _dotted(*versions, *of_run)))))
    return [*lines, _dotted(*_run_words(sides[0]))] if is_one_run else lines


def held_words(device: StandardDevice) -> str:
    """Return how a device held its speed in the load, and how hot it was; empty if unknown.

    What the sensors did not report is left out.
    """
    load = device.load
    if load is None:
        return ""
    (low, high), ratio = load.ci95, load.steady_rate / load.first_rate
    change = "held its speed"
    if not low <= 1 <= high:
        change = f"{format_percent(abs(1 - ratio))} {'slower' if ratio < 1 else 'faster'}"
    parts = [change]
    if load.steady_clock_mhz is not None:
        parts.append(f"{load.steady_clock_mhz:.0f}\u202fMHz")
    if load.highest_temperature_c is not None:
        parts.append(f"{load.highest_temperature_c:.0f}\u202f°C")
    if load.highest_hotspot_c is not None:
        parts.append(f"hot spot {load.highest_hotspot_c:.0f}\u202f°C")
    if load.was_throttled:
        parts.append("slowed down by heat or power")
    return f"After {load.seconds:.0f}\u202fs of full load: {', '.join(parts)}."


def missing_words(device: StandardDevice) -> str:
    """Return which items a device has no result of, each with the reason; empty for none."""
    reasons: dict[str, list[str]] = {}
    for figure in device.figures:
        item = ITEMS.get(figure.key)
        if item is not None and figure.result is None:
            reasons.setdefault(figure.skipped, []).append(item.title)
    return " ".join(f"{listed(titles)}: {reason}" for reason, titles in reasons.items())


def _run_words(side: Side) -> tuple[str, ...]:
    run = side.run
    return (run.pc_name, run.system, run.program, shown_moment(run.made_at)[:10]) if run else ()


def _dotted(*words: str | None) -> str:
    return " · ".join(filter(None, words))
