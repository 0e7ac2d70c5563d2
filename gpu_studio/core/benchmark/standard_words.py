"""Standard runs in words and tables: the devices of one run, or of several PCs, side by side.

The first side is what the others are compared with: of one run its CPU, of several PCs this one.
Which of two is faster is up to `claim.claim_of`. All of it is the same on the page Compare, on
the picture, in Markdown, in CSV and in the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from gpu_studio.core.benchmark.ceilings import believed_share
from gpu_studio.core.benchmark.claim import APART_BY, Claim, claim_of
from gpu_studio.core.benchmark.standard import STANDARD, STANDARD_1
from gpu_studio.core.benchmark.trust import computed_in_words, stamp_of, trust_of
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.shared_texts import without_identifiers
from gpu_studio.core.texts import csv_line, listed, markdown_table, markdown_text
from gpu_studio.core.units import counted, format_percent, shown_moment, si_step, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpu_studio.core.benchmark.standard import StandardItem
    from gpu_studio.core.benchmark.standard_record import StandardDevice, StandardRun
    from gpu_studio.core.messages.run_messages import RunFinished

MOST_FILES = 6
RULE = (
    f"Runs of two times differ by up to {format_percent(APART_BY - 1)}, so only a larger "
    "difference counts."
)
NOT_MEASURED = "not measured"
# The first that both sides have is the ratio in the sentence: people train more than they multiply.
_HEADLINES = ("training_step", "convolution", "product_float32", "bandwidth")


class Side(msgspec.Struct, frozen=True):
    """A device of a standard run; ``is_here`` if the run is this PC's own."""

    run: StandardRun
    number: int = 0
    is_here: bool = False

    @property
    def device(self) -> StandardDevice:
        """What the run says of the device itself."""
        return self.run.devices[self.number]

    @property
    def results(self) -> list[RunFinished]:
        """The results that the device has."""
        return [figure.result for figure in self.device.figures if figure.result is not None]


def sides_of(run: StandardRun) -> tuple[Side, ...]:
    """Return all devices of one run, the CPU first."""
    numbers = sorted(range(len(run.devices)), key=lambda number: not run.devices[number].is_cpu)
    return tuple(Side(run, number) for number in numbers)


def usual_device(run: StandardRun) -> int:
    """Return the place of a run's first card, or of its CPU without one."""
    return next((place for place, one in enumerate(run.devices) if not one.is_cpu), 0)


def are_of_one_run(sides: Sequence[Side]) -> bool:
    """Return whether these are the devices of one run, and none of another PC."""
    return all(side.run is sides[0].run for side in sides)


def with_pc_name(sides: Sequence[Side], name: str) -> Sequence[Side]:
    """Return sides with the name that the user gives to this PC; other PCs keep theirs."""
    own = sides[0].run
    if not name or not (sides[0].is_here or are_of_one_run(sides)):
        return sides
    named = msgspec.structs.replace(own, pc_name=name)
    return [msgspec.structs.replace(side, run=named) if side.run is own else side for side in sides]


class ComparedFigure(msgspec.Struct, frozen=True):
    """A side's figure.

    Attributes:
        result: None if it was not measured.
        skipped: why it was not measured; empty if it was.
        claim: against the first side; None for that side, and if one of the two has no figure.
    """

    result: RunFinished | None = None
    skipped: str = ""
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
        if self.result is not None and self.result.verified is False:
            return "wrong results"
        arrow = {1: "▲ ", -1: "▼ "}.get(self.sign, "")
        return f"{arrow}{self.claim.words}" if self.claim is not None else ""


class ComparedWork(msgspec.Struct, frozen=True):
    """One work of the standard on each side; a rate divided by ``step`` is in ``unit``."""

    item: StandardItem
    figures: tuple[ComparedFigure, ...]
    step: float
    unit: str

    def shown(self, rate: float | None) -> str:
        """Return a rate in the unit of its work; ``–`` if there is none."""
        return "–" if rate is None else three_digits(rate / self.step)

    @property
    def note(self) -> str:
        """How the sides computed differently; empty if they did not."""
        notes = {computed_in_words(one.result) for one in self.figures if one.result is not None}
        notes.discard("")
        return listed(sorted(notes)) if len(notes) > 1 else ""


def compared_works(sides: Sequence[Side]) -> tuple[ComparedWork, ...]:
    """Return the works that at least one side has a figure for, in the order of the standard."""
    works = []
    for item in STANDARD_1:
        figures = tuple(_figure(item.key, side, sides[0]) for side in sides)
        if any(side.device.figure(item.key) for side in sides):
            step, prefix = si_step(max((figure.rate or 0.0 for figure in figures), default=0.0))
            works.append(ComparedWork(item, figures, step, f"{prefix}{item.unit}"))
    return tuple(works)


def _figure(key: str, side: Side, first: Side) -> ComparedFigure:
    figure, reference = side.device.figure(key), first.device.result(key)
    result = figure.result if figure is not None else None
    if result is None or min(result.median_s, *result.ci95_s) <= 0:
        return ComparedFigure(skipped=(figure.skipped if figure else "") or NOT_MEASURED)
    compared = None
    if side is not first and reference is not None:
        # A file may claim the turns of another PC's run, but only one engine takes turns.
        is_one_run = side.run is first.run
        alone = result if is_one_run else msgspec.structs.replace(result, turns="")
        compared = claim_of(reference, alone)
    return ComparedFigure(result, claim=compared)


def side_names(sides: Sequence[Side]) -> tuple[str, ...]:
    """Return a short name for each side, no two alike: ``GTX 1060``, ``GTX 1060, Lea's PC``."""
    names = [short_name(side.device.name) or "unnamed device" for side in sides]
    for number, side in enumerate(sides):
        if side.run.pc_name and names.count(names[number]) > 1:
            names[number] = f"{names[number]}, {side.run.pc_name}"
    used: dict[str, int] = {}
    for number, name in enumerate(names):
        used[name] = used.get(name, 0) + 1
        if used[name] > 1:
            names[number] = f"{name} ({used[name]})"
    return tuple(names)


def headline(sides: Sequence[Side], works: Sequence[ComparedWork]) -> tuple[str, str]:
    """Return who wins how often, as a heading, and a sentence for the rest.

    Args:
        sides: at least one.
        works: those of `compared_works`.
    """
    names = [f"the {name}" for name in side_names(sides)]
    if sides[0].is_here:
        names[0] = f"your {names[0].removeprefix('the ')}"
    if len(sides) == 1:
        count = sum(work.figures[0].rate is not None for work in works)
        return _capital(names[0]), f"{_capital(counted(count, 'figure'))} of standard {STANDARD}."
    first, *others = (_against(works, names, number) for number in range(1, len(sides)))
    rule = "" if are_of_one_run(sides) else RULE
    parts = (*(f"{one}." for one in others), _ratio_words(works, names), rule)
    return first, " ".join(filter(None, parts))


def _against(works: Sequence[ComparedWork], names: Sequence[str], number: int) -> str:
    """Return how often the first side and another win, without a full stop."""
    signs = [one.sign for work in works if (one := work.figures[number]).claim is not None]
    wins, losses = signs.count(1), signs.count(-1)
    winner, loser = (number, 0) if wins > losses else (0, number)
    if not signs:
        return f"No work was measured on both {names[0]} and {names[number]}"
    if not wins + losses:
        return f"No difference between {names[0]} and {names[number]}"
    more, fewer = max(wins, losses), min(wins, losses)
    count = f"all {more}" if more == len(signs) else f"{more} of {len(signs)}"
    but = f" and loses in {fewer}" if fewer else ""
    return _capital(f"{names[winner]} beats {names[loser]} in {count}{but}")


def _ratio_words(works: Sequence[ComparedWork], names: Sequence[str]) -> str:
    """Return how many times faster the second side is in the work that people ask for most."""
    by_key = {work.item.key: work for work in works}
    for key in _HEADLINES:
        figure = by_key[key].figures[1] if key in by_key else ComparedFigure()
        if figure.sign:
            assert figure.claim is not None
            winner = names[figure.sign > 0]
            return f"{by_key[key].item.title}: {winner} is {figure.claim.times} faster."
    return ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def trust_of_sides(sides: Sequence[Side]) -> Notice:
    """Return how far to trust the results of all sides."""
    found = trust_of((name, result) for name, side in _named(sides) for result in side.results)
    return found if found.sentence or not sides else Notice("Nothing measured", Tone.AMBER)


def _named(sides: Sequence[Side]) -> Iterable[tuple[str, Side]]:
    return zip(side_names(sides), sides, strict=True)


# ── of one device ────────────────────────────────────────────────────────────────────────────────


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
    for item in STANDARD_1:
        figure = device.figure(item.key)
        if figure is not None and figure.result is None:
            reasons.setdefault(figure.skipped, []).append(item.title)
    return " ".join(f"{listed(titles)}: {reason}" for reason, titles in reasons.items())


def run_facts(sides: Sequence[Side]) -> list[str]:
    """Return what stands below a table: a line for each device, and what its run depends on."""
    lines = []
    is_one_run = are_of_one_run(sides)
    for name, side in _named(sides):
        device = side.device
        words = (held_words(device), missing_words(device))
        driver = device.driver and f"driver {device.driver}"
        versions = (device.build and f"PyTorch {device.build}", driver)
        of_run = () if is_one_run else _run_words(side.run)
        lines.append(" ".join(filter(None, (f"{name}:", *words, _dotted(*versions, *of_run)))))
    return [*lines, _dotted(*_run_words(sides[0].run))] if is_one_run else lines


def _run_words(run: StandardRun) -> tuple[str, ...]:
    return run.pc_name, run.system, run.program, shown_moment(run.made_at)[:10]


def _dotted(*words: str | None) -> str:
    return " · ".join(filter(None, words))


# ── to share ─────────────────────────────────────────────────────────────────────────────────────


def to_markdown(sides: Sequence[Side]) -> str:
    """Return sides as Markdown for a forum, without identifiers in its texts."""
    sides = masked(sides)
    works = compared_works(sides)
    heading, sentence = headline(sides, works)
    rows = [("Work", *side_names(sides))]
    for work in works:
        cells = [" · ".join(_cell(work, figure)) for figure in work.figures]
        rows.append((f"{work.item.title}, {work.unit}", *cells))
    facts = "".join(
        f"- {markdown_text(line)}\n" for line in (trust_of_sides(sides).sentence, *run_facts(sides))
    )
    return (
        f"**{markdown_text(f'GPU Studio, standard run {STANDARD}: {heading}')}**\n\n"
        f"{markdown_text(sentence)}\n\n{markdown_table(rows)}\n{facts}"
    )


def _cell(work: ComparedWork, figure: ComparedFigure) -> Iterator[str]:
    yield figure.skipped or work.shown(figure.rate)
    if figure.words:
        yield figure.words
    if figure.share is not None:
        yield f"{format_percent(figure.share)} of its ceiling"


def compared_rows(sides: Sequence[Side]) -> Iterator[dict[str, Any]]:
    """Yield each figure of each side, as CSV and JSON have it; None is unknown.

    ``per_second`` and its interval are in ``unit`` without its ``/s``. ``compared`` is in words,
    and ``ratio`` how many times faster it is than the first side, None if no difference counts.
    """
    for work in compared_works(sides):
        for (name, side), figure in zip(_named(sides), work.figures, strict=True):
            result = figure.result
            low, high = figure.interval or (None, None)
            yield {
                "work": work.item.title,
                "unit": work.item.unit,
                "device": name,
                "pc": side.run.pc_name,
                "made_at": side.run.made_at,
                "per_second": figure.rate,
                "ci95_low": low,
                "ci95_high": high,
                "compared": figure.words,
                "ratio": figure.claim.ratio if figure.claim and figure.sign else None,
                "share_of_ceiling": figure.share,
                "verified": result.verified if result else None,
                "doubts": "; ".join(stamp_of(result).words) if result else "",
                "skipped": figure.skipped,
            }


def to_csv(sides: Sequence[Side]) -> str:
    """Return sides as CSV, a line for each figure, without identifiers in its texts."""
    rows = list(compared_rows(masked(sides)))
    return "".join(
        csv_line(row) for row in (rows[0] if rows else (), *(row.values() for row in rows))
    )


def masked(sides: Sequence[Side]) -> list[Side]:
    """Return sides without identifiers in their texts; those of one run still have one run."""
    runs = {id(side.run): without_identifiers(side.run) for side in sides}
    return [msgspec.structs.replace(side, run=runs[id(side.run)]) for side in sides]
