"""Standard runs side by side: the same work on the devices of several PCs.

The first side is what the others are compared with: this PC, if it has a standard run. Which of two
is faster is up to `claim.claim_of`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.claim import APART_BY, Claim, claim_of
from gpu_studio.core.benchmark.standard import STANDARD_1
from gpu_studio.core.benchmark.trust import computed_in_words, stamp_of
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.listing import listed
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import format_percent, si_step, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.benchmark.standard import StandardItem
    from gpu_studio.core.benchmark.standard_record import StandardDevice, StandardRun
    from gpu_studio.core.messages.run_messages import RunFinished

MOST_FILES = 6
RULE = (
    f"Runs of two times differ by up to {format_percent(APART_BY - 1)}, so only a larger "
    "difference counts."
)
NOT_MEASURED = "not measured"


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
    def result_of(self) -> dict[str, RunFinished]:
        """The results by the keys of their works."""
        return {
            figure.key: figure.result for figure in self.device.figures if figure.result is not None
        }


def usual_device(run: StandardRun) -> int:
    """Return the place of a run's first card, or of its CPU without one."""
    return next((place for place, one in enumerate(run.devices) if not one.is_cpu), 0)


class ComparedFigure(msgspec.Struct, frozen=True):
    """A side's figure.

    Attributes:
        rate: per second, from the median; None if it was not measured.
        low, high: its 95 % interval.
        skipped: why it was not measured; empty if it was.
        comparison: with the first side; None for that side, and if one of the two has no figure.
        note: what else to know about it.
    """

    rate: float | None = None
    low: float = 0.0
    high: float = 0.0
    skipped: str = ""
    comparison: Claim | None = None
    note: str = ""

    @property
    def sign(self) -> int:
        """1 if this side is faster than the first one, -1 if it is slower, 0 otherwise."""
        return self.comparison.sign if self.comparison is not None else 0

    @property
    def words(self) -> str:
        """How it compares with the first side: ``▲ 1.3 × faster``, ``cannot be told``."""
        if self.comparison is None:
            return ""
        arrow = {1: "▲ ", -1: "▼ "}.get(self.sign, "")
        return f"{arrow}{self.comparison.words}"

    @property
    def reason(self) -> str:
        """Why it cannot be told which is faster; empty if it can."""
        return self.comparison.why if self.comparison is not None else ""


class ComparedWork(msgspec.Struct, frozen=True):
    """One work of the standard on each side.

    Attributes:
        item: the work.
        figures: one for each side.
        step: divide a rate by it.
        unit: the unit of a rate, divided so.
    """

    item: StandardItem
    figures: tuple[ComparedFigure, ...]
    step: float
    unit: str

    def shown(self, figure: ComparedFigure) -> str:
        """Return a figure in the unit of its work; ``–`` if there is none."""
        return "–" if figure.rate is None else self.shown_rate(figure.rate)

    def shown_rate(self, rate: float) -> str:
        """Return a rate in the unit of its work."""
        return three_digits(rate / self.step)

    @property
    def note(self) -> str:
        """How the sides computed differently; empty if they did not."""
        notes = {figure.note for figure in self.figures if figure.note}
        return listed(sorted(notes)) if len(notes) > 1 else ""


def compared_works(sides: Sequence[Side]) -> tuple[ComparedWork, ...]:
    """Return the works that at least one side has a figure for, in the order of the standard."""
    results = [side.result_of for side in sides]
    skipped = [{figure.key: figure.skipped for figure in side.device.figures} for side in sides]
    works = []
    for item in STANDARD_1:
        first = results[0].get(item.key) if results else None
        figures = tuple(
            _figure(
                mine.get(item.key), None if number == 0 else first,
                why.get(item.key, "") or NOT_MEASURED,
                are_one_run=sides[number].run is sides[0].run,
            )
            for number, (mine, why) in enumerate(zip(results, skipped, strict=True))
        )  # fmt: skip
        rates = [figure.rate for figure in figures if figure.rate is not None]
        if rates:
            step, prefix = si_step(max(rates))
            works.append(ComparedWork(item, figures, step, f"{prefix}{item.unit}"))
    return tuple(works)


def _figure(
    result: RunFinished | None, first: RunFinished | None, skipped: str, *, are_one_run: bool
) -> ComparedFigure:
    if result is None or min(result.median_s, *result.ci95_s) <= 0:
        return ComparedFigure(skipped=skipped)
    compared = None
    if first is not None:
        # A file may claim the turns of another PC's run, but only one engine takes turns.
        alone = result if are_one_run else msgspec.structs.replace(result, turns="")
        compared = claim_of(first, alone)
    low_s, high_s = result.ci95_s
    return ComparedFigure(
        rate=result.throughput,
        low=result.throughput * result.median_s / high_s,
        high=result.throughput * result.median_s / low_s,
        comparison=compared,
        note=computed_in_words(result),
    )


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


class _Standing(msgspec.Struct, frozen=True):
    """Against another side: how many figures both have, and how many each of the two wins."""

    name: str
    both: int
    won: int
    lost: int


def headline(sides: Sequence[Side], works: Sequence[ComparedWork]) -> tuple[str, str]:
    """Return how the first side does against the others: a heading, and a sentence for the rest.

    Args:
        sides: at least one.
        works: those of `compared_works`.
    """
    names = side_names(sides)
    own = f"Your {names[0]}" if sides[0].is_here else f"The {names[0]}"
    if len(sides) == 1:
        return own, "Add files of other PCs to compare it with them."
    standings = [_standing(works, number, name) for number, name in enumerate(names) if number]
    best = max(standings, key=lambda one: one.won)
    worst = max(standings, key=lambda one: one.lost)
    if best.won:
        heading = f"{own} beats the {best.name} in {_of(best.won, best.both)}"
    elif worst.lost:
        object_ = own[0].lower() + own[1:]
        heading = f"The {worst.name} beats {object_} in {_of(worst.lost, worst.both)}"
    elif any(one.both for one in standings):
        heading = f"No difference between {own[0].lower()}{own[1:]} and the others"
        if len(standings) == 1:
            heading = f"No difference between {own[0].lower()}{own[1:]} and the {names[1]}"
    else:
        heading = "No work was measured on both sides"
    leads = [one for one in standings if one.lost and not (not best.won and one is worst)]
    others = listed(
        f"the {one.name} {'in' if number else 'leads in'} {_of(one.lost, one.both)}"
        for number, one in enumerate(leads)
    )
    return heading, f"{others[0].upper()}{others[1:]}. {RULE}" if others else RULE


def _standing(works: Sequence[ComparedWork], number: int, name: str) -> _Standing:
    compared = [one for work in works if (one := work.figures[number]).comparison is not None]
    signs = [figure.sign for figure in compared]
    return _Standing(name, len(compared), signs.count(-1), signs.count(1))


def _of(count: int, all_: int) -> str:
    if all_ == 1:
        return "the only figure of both"
    return f"all {all_}" if count == all_ else f"{count} of {all_}"


def comparison_trust(sides: Sequence[Side]) -> Notice:
    """Return how many of the results were checked, and what is doubtful, by side."""
    results = [
        (name, result)
        for name, side in zip(side_names(sides), sides, strict=True)
        for result in side.result_of.values()
    ]
    if not results:
        return Notice()
    wrong = sum(result.verified is False for _, result in results)
    unchecked = sum(result.verified is None for _, result in results)
    lines = "\n".join(dict.fromkeys(_doubt_lines(results)))
    if wrong:
        return Notice(f"{wrong} of {len(results)} results wrong", Tone.FAILURE, lines)
    if unchecked:
        return Notice(f"{unchecked} of {len(results)} results not checked", Tone.AMBER, lines)
    doubtful = sum(bool(stamp_of(result).doubts) for _, result in results)
    if doubtful:
        return Notice(f"{doubtful} of {len(results)} results doubtful", Tone.AMBER, lines)
    return Notice(f"All {len(results)} results checked", Tone.GOOD)


def _doubt_lines(results: Sequence[tuple[str, RunFinished]]) -> Iterator[str]:
    for name, result in results:
        for doubt in stamp_of(result).doubts:
            yield f"{name}: {doubt}."


def comparison_table(sides: Sequence[Side]) -> list[tuple[str, ...]]:
    """Return the comparison as rows of texts, the heads first."""
    works = compared_works(sides)
    rows = [("", *side_names(sides))]
    for work in works:
        cells = [
            " ".join(filter(None, (work.shown(figure), figure.words and f"({figure.words})")))
            for figure in work.figures
        ]
        rows.append((f"{work.item.title}, {work.unit}", *cells))
    return rows
