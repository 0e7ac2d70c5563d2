"""Devices side by side: the same works of standard runs, kept runs and recordings, and who wins.

The first side is what the others are compared with. Which of two is faster is up to
`claim.claim_of`. The words are the same on History, on the picture and in the terminal.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from gpu_studio.core.benchmark.ceilings import believed_share
from gpu_studio.core.benchmark.claim import APART_BY, CANNOT_BE_TOLD, Claim, Outcome, claim_of
from gpu_studio.core.benchmark.options import mode_words, value_words
from gpu_studio.core.benchmark.standard import ITEMS, STANDARD_1
from gpu_studio.core.benchmark.standard_record import StandardRun  # noqa: TC001  # msgspec reads them
from gpu_studio.core.benchmark.trust import computed_in_words, doubts_of, trust_of
from gpu_studio.core.benchmark.verdict import sizes_words
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.messages.run_messages import RunFinished  # noqa: TC001  # msgspec reads the annotations
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.texts import listed
from gpu_studio.core.units import (
    counted,
    format_duration,
    format_percent,
    format_size,
    shown_moment,
    si_step,
    three_digits,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpu_studio.core.benchmark.standard_record import StandardDevice

RULE = (
    f"Runs of two times differ by up to {format_percent(APART_BY - 1)}, so only a larger "
    "difference counts."
)
# The first that both sides have is the ratio in the sentence: people train more than they multiply.
_HEADLINES = ("training_step", "convolution", "product_float32", "bandwidth")
_NO_TITLES: Mapping[str, str] = MappingProxyType({})


class ComparedFigure(msgspec.Struct, frozen=True):
    """A side's figure.

    Attributes:
        result: None if it was not measured.
        claim: against the first side; None for that side, and if one of the two has no figure.
    """

    result: RunFinished | None = None
    claim: Claim | None = None

    @property
    def rate(self) -> float | None:
        """Per second, from the median; None if it was not measured, or is wrong."""
        if self.result is None or self.result.verified is False:
            return None
        return self.result.throughput

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of its rate, low and high; None if it was not measured, or is wrong."""
        if self.result is None or self.rate is None:
            return None
        low_s, high_s = self.result.ci95_s
        work = self.result.throughput * self.result.median_s
        return work / high_s, work / low_s

    @property
    def share(self) -> float | None:
        """The share of the device's own ceiling; None if that is unknown or not believed."""
        return believed_share(self.result) if self.result is not None else None

    @property
    def sign(self) -> int:
        """1 if this side is faster than the first one, -1 if it is slower, 0 otherwise."""
        return self.claim.sign if self.claim is not None else 0

    @property
    def words(self) -> str:
        """How it compares with the first side: ``▲ 1.3 × faster``, ``cannot be told``."""
        if self.result is None:
            return "not measured"
        if self.result.verified is False:
            return "wrong results"
        arrow = {1: "▲ ", -1: "▼ "}.get(self.sign, "")
        return f"{arrow}{self.claim.words}" if self.claim is not None else ""


class ComparedWork(msgspec.Struct, frozen=True):
    """One work on each side.

    ``key`` is that of the standard's item, empty for other work. Rates are in ``base_unit``, and
    shown in ``unit``.
    """

    key: str
    title: str
    base_unit: str
    figures: tuple[ComparedFigure, ...]

    @property
    def _step(self) -> tuple[float, str]:
        return si_step(max((figure.rate or 0.0 for figure in self.figures), default=0.0))

    @property
    def unit(self) -> str:
        """The unit of the shown rates."""
        return f"{self._step[1]}{self.base_unit}"

    def shown(self, rate: float | None) -> str:
        """Return a rate in the unit of its work; ``–`` if there is none."""
        return "–" if rate is None else three_digits(rate / self._step[0])

    @property
    def note(self) -> str:
        """How the sides computed differently; empty if they did not."""
        notes = {computed_in_words(one.result) for one in self.figures if one.result is not None}
        notes.discard("")
        return listed(sorted(notes)) if len(notes) > 1 else ""


# ── which work is the same ───────────────────────────────────────────────────────────────────────


def difference(result: RunFinished, other: RunFinished) -> str:
    """Return why another result is not comparable, in a sentence; empty if its work is the same."""
    own, its = _parts_of(result), _parts_of(other)
    if own["work"] != its["work"]:  # a size of another workload means something else
        return f"Not comparable: it is {its['work']}, not {own['work']}."
    names = dict.fromkeys((*own, *its))
    if not ("copies" in own and "copies" in its):
        names.pop("copies", None)  # a CPU needs none: its runs can be compared with both
    parts = [
        f"its {name} is {its.get(name, 'unknown')}, not {own.get(name, 'unknown')}"
        for name in names
        if own.get(name) != its.get(name)
    ]
    return f"Not comparable: {'; '.join(parts)}." if parts else ""


def work_words(result: RunFinished, titles: Mapping[str, str] = _NO_TITLES) -> str:
    """Return what a result is of: ``Matrix product, 512 × 512, float32, cold cache``."""
    title = titles.get(result.workload, result.workload.replace("_", " "))
    size = format_size(result.size, result.size_text)
    return ", ".join(filter(None, (title, size, result.dtype, mode_words(result))))


def _parts_of(result: RunFinished) -> dict[str, str]:
    """Return everything that makes a work another one, by its name in a sentence."""
    parts = {
        "work": result.workload,
        "size": format_size(result.size, result.size_text),
        "precision": result.dtype,
        "cache": result.cache,
        "time": "sustained" if result.sustained else "short",
        "picture": (result.race.photo or "built in") if result.race is not None else "",
    }
    parts |= {
        name.replace("_", " "): f"“{value_words(value)}”" for name, value in result.options.items()
    }
    if not is_cpu(result.device):
        parts["copies"] = "with" if result.transfers else "without"
    return parts


Work = tuple[tuple[tuple[str, str], ...], str]


def work_of(result: RunFinished) -> Work:
    """Return what the same work has alike, and whether it has copies; empty on a CPU."""
    parts = _parts_of(result)
    copies = parts.pop("copies", "")
    return tuple(sorted(parts.items())), copies


def compared_works(
    sides: Sequence[Side], titles: Mapping[str, str] = _NO_TITLES
) -> tuple[ComparedWork, ...]:
    """Return the works that two sides have, those of the standard first and in its order.

    Of standard runs alone, and of one side, all works.

    Args:
        sides: the first one is what the others are compared with.
        titles: what to call a workload, by its name.
    """
    found = [{work_of(result): result for result in side.results} for side in sides]
    works = dict.fromkeys(work for results in found for work in results)
    with_copies = {work for work, copies in works if copies}
    rows: list[tuple[tuple[int, str, int], ComparedWork]] = []
    for work, copies in works:
        if not copies and work in with_copies:
            continue  # the CPU's stands beside those of the cards
        shown = [results.get((work, copies)) or results.get((work, "")) for results in found]
        if sum(one is not None for one in shown) < min(len(sides), 2) and not _are_standard(sides):
            continue
        result = max((one for one in shown if one is not None), key=lambda one: one.transfers)
        place, key, title = _standard_place(result)
        if not key:
            title = work_words(result, titles)
        figures = tuple(
            _figure(one, side, shown[0], sides[0]) for one, side in zip(shown, sides, strict=True)
        )
        row = ComparedWork(key, title, result.throughput_unit, figures)
        rows.append(((place, result.workload, result.size), row))
    if _are_standard(sides):
        rows += _unmeasured_rows(sides, {row.key for _, row in rows})
    return tuple(row for _, row in sorted(rows, key=lambda one: one[0]))


def _are_standard(sides: Sequence[Side]) -> bool:
    return all(side.run is not None for side in sides)


def _standard_place(result: RunFinished) -> tuple[int, str, str]:
    """Return the place, the key and the title of the standard's item that a result is of."""
    for place, item in enumerate(STANDARD_1):
        if item.is_of(result):
            return place, item.key, item.title
    return len(STANDARD_1), "", ""


def _unmeasured_rows(
    sides: Sequence[Side], known: set[str]
) -> Iterator[tuple[tuple[int, str, int], ComparedWork]]:
    """Yield the works of the standard that no side has measured."""
    asked = {figure.key for side in sides if side.device for figure in side.device.figures}
    figures = tuple(ComparedFigure() for _ in sides)
    for place, item in enumerate(STANDARD_1):
        if item.key in asked - known:
            row = ComparedWork(item.key, item.title, item.unit, figures)
            yield (place, item.title, 0), row


def _figure(
    result: RunFinished | None, side: Side, reference: RunFinished | None, first: Side
) -> ComparedFigure:
    if result is None or min(result.median_s, *result.ci95_s) <= 0:
        return ComparedFigure()
    claim = None
    if side is not first and reference is not None:
        # A file may claim the turns of another PC's run, but only one engine takes turns.
        is_one_run = side.origin == first.origin
        alone = result if is_one_run else msgspec.structs.replace(result, turns="")
        claim = claim_of(reference, alone)
    return ComparedFigure(result, claim=claim)


# ── in sentences ─────────────────────────────────────────────────────────────────────────────────


def headline(sides: Sequence[Side], works: Sequence[ComparedWork]) -> tuple[str, str]:
    """Return who is faster, as a heading, and a sentence for the rest.

    Args:
        sides: at least one.
        works: those of `compared_works`.
    """
    names = [f"the {name}" for name in side_names(sides)]
    if sides[0].is_here and not all(side.is_here for side in sides):
        names[0] = f"your {names[0].removeprefix('the ')}"
    if len(sides) == 1 and sides[0].run is None and len(works) == 1:
        time = format_duration(sides[0].results[0].median_s)
        return f"{_capital(names[0])}: {time} per call", f"{works[0].title}. {sides[0].fact}"
    if len(sides) == 1:
        got = sum(work.figures[0].result is not None for work in works)
        return _capital(names[0]), sides[0].fact or f"{counted(got, 'result')}."
    if not works:
        own, its = (side.results for side in sides[:2])
        return "Not comparable", difference(own[0], its[0]) if own and its else ""
    first, *others = [_against(works, names, number) for number in range(1, len(sides))]
    rule = "" if len({side.origin for side in sides}) == 1 else RULE
    parts = (*(f"{one}." for one in others), _ratio_words(works, names), rule)
    return first, " ".join(filter(None, parts))


def _against(works: Sequence[ComparedWork], names: Sequence[str], number: int) -> str:
    """Return how often the first side and another win, without a full stop.

    Of one work, by how much.
    """
    claims = [one.claim for work in works if (one := work.figures[number]).claim is not None]
    signs = [claim.sign for claim in claims]
    wins, losses = signs.count(1), signs.count(-1)
    winner, loser = (number, 0) if wins > losses else (0, number)
    if not claims:
        return f"No work was measured on both {names[0]} and {names[number]}"
    if len(claims) == 1:
        return _capital(_single(claims[0], names[number], names[0]))
    if not wins + losses:
        unclear = [claim for claim in claims if claim.outcome is not Outcome.EQUAL]
        if unclear:
            return _single(unclear[0], names[number], names[0])
        return f"No difference between {names[0]} and {names[number]}"
    if wins == losses:
        return _capital(f"{names[0]} and {names[number]} win in {wins} each")
    more, fewer = max(wins, losses), min(wins, losses)
    every = "both" if more == 2 else f"all {more}"
    count = every if more == len(signs) else f"{more} of {len(signs)}"
    but = f" and loses in {fewer}" if fewer else ""
    return _capital(f"{names[winner]} beats {names[loser]} in {count}{but}")


def _single(claim: Claim, name: str, first: str) -> str:
    if claim.sign:
        return f"{name} is {claim.words} than {first}"
    if claim.outcome is Outcome.EQUAL:
        return f"{name} is as fast as {first}"
    if claim.outcome is Outcome.WRONG:
        return f"No winner between {first} and {name}: wrong results"
    return f"Which of {first} and {name} is faster {CANNOT_BE_TOLD}: {claim.why}"


def _ratio_words(works: Sequence[ComparedWork], names: Sequence[str]) -> str:
    """Return how many times faster the second side is in the work that people ask for most.

    Of one work in several sizes, at each of them; of other work, in the largest size.
    """
    if len(works) == 1:
        return f"{works[0].title}."
    both = [(work.figures[1].result, work.figures[1].claim) for work in works]
    told = [(result, claim) for result, claim in both if result and claim]
    if len(told) > 1 and len({(result.kind, result.transfers) for result, _ in told}) == 1:
        said = sizes_words({result.size: claim for result, claim in told}, told[0][0].size_text)
        return f"{_capital(names[1])}: {said}."
    asked = [work for key in _HEADLINES for work in works if work.key == key]
    for work in (*asked, *reversed(works)):
        claim = work.figures[1].claim
        if claim is not None and claim.sign:
            return f"{work.title}: {names[claim.sign > 0]} is {claim.times} faster."
    return ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


TABLE_HEAD = ("Work", "Device", "Result", "95 % interval", "Compared with the first")


def table_rows(
    sides: Sequence[Side], works: Sequence[ComparedWork]
) -> list[tuple[str, str, str, str, str]]:
    """Return the cells of `TABLE_HEAD` for each figure.

    The work stands beside the first device alone.
    """
    rows = []
    for work in works:
        titles = iter([f"{work.title} · {work.note}" if work.note else work.title])
        for name, figure in zip(side_names(sides), work.figures, strict=True):
            shown, interval = "–", ""
            if figure.interval is not None:
                shown = f"{work.shown(figure.rate)} {work.unit}"
                interval = " to ".join(map(work.shown, figure.interval))
            rows.append((next(titles, ""), name, shown, interval, figure.words))
    return rows


def compared_rows(sides: Sequence[Side]) -> Iterator[dict[str, Any]]:
    """Yield each figure of each side, as the terminal's JSON has it; None is unknown.

    ``per_second`` and its interval are in ``unit`` without its ``/s``. ``compared`` is in words,
    and ``ratio`` how many times faster it is than the first side, None if no difference counts.
    """
    named = [*zip(side_names(sides), sides, strict=True)]
    for work in compared_works(sides):
        for (name, side), figure in zip(named, work.figures, strict=True):
            result = figure.result
            low, high = figure.interval or (None, None)
            yield {
                "work": work.title,
                "unit": work.base_unit,
                "device": name,
                "pc": side.place,
                "made_at": side.made_at,
                "per_second": figure.rate,
                "ci95_low": low,
                "ci95_high": high,
                "compared": figure.words,
                "ratio": figure.claim.ratio if figure.claim and figure.sign else None,
                "share_of_ceiling": figure.share,
                "verified": result.verified if result else None,
                "doubts": "; ".join(one.word for one in doubts_of(result)) if result else "",
            }


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
