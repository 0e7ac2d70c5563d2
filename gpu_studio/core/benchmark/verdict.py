"""The sentence on top of the results, written from the numbers in the table and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.crossover import (
    SAME_WITHIN,
    CrossoverKind,
    find_crossover,
    ratios_of,
)
from gpu_studio.core.units import format_duration, format_ratio, format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpu_studio.core.benchmark.crossover import Crossover, SizeRatio
    from gpu_studio.core.protocol import RunFinished

_OPENING = "On this PC "
_RECORDED = "In the recording "
# A crossing between two sizes that are no further apart is called by the upper one alone.
_NEAR = 1.1


def speed_up(result: RunFinished, results: Sequence[RunFinished]) -> float | None:
    """Return the ratio of medians CPU / device for the same work; None where there is no CPU run.

    Of several CPU runs of the same work the latest counts, as in the verdict. For a CPU run it is
    None as well: it is the reference. The CPU's operands are where it computes, so that its runs
    stand beside a card's with transfers and without.
    """
    if result.device == "cpu":
        return None
    for other in reversed(results):
        if other.device == "cpu" and other.size == result.size and same_kind(other, result):
            return other.median_s / result.median_s if result.median_s else None
    return None


def same_kind(result: RunFinished, other: RunFinished) -> bool:
    """Return whether two results may stand on one curve: the same work but for size and device.

    What was recorded elsewhere stands on no curve of this PC's.
    """
    return _kind_of(result) == _kind_of(other)


def verdict(results: Sequence[RunFinished], *, in_brief: bool = False) -> str:
    """Return a few sentences about finished runs of the latest kind of work; empty without any.

    Args:
        results: in the order of the runs.
        in_brief: leave it at the first comparison, and what has to be said of wrong results.
    """
    if not results:
        return ""
    latest = results[-1]
    alike = [result for result in results if same_kind(result, latest)]
    devices = dict.fromkeys(result.device for result in alike if result.device != "cpu")
    opening = _opening(latest)
    work = f" ({_work_words(latest, results)})"
    sentences = [text for device in devices for text in _compared(alike, device, work)]
    if in_brief:
        del sentences[1:]
    if sentences:
        # Work and recording are the same for each: the first sentence says them for all.
        others = (
            text.replace(work, "").replace(_label(latest), "").removeprefix(opening)
            for text in sentences[1:]
        )
        sentences[1:] = [text[:1].upper() + text[1:] for text in others]
    else:
        sentences = [_alone(alike)]
    return " ".join([*sentences, *_warning(alike)])


def crossover_sentences(results: Sequence[RunFinished]) -> list[str]:
    """Return where each card and the CPU change places, with the uncertainty of the place.

    One sentence for computing only and one with the transfers, for each card of the latest kind of
    work; empty where only one device was measured.
    """
    if not results:
        return []
    alike = [result for result in results if same_kind(result, results[-1])]
    sentences: list[str] = []
    for device in dict.fromkeys(result.device for result in alike if result.device != "cpu"):
        for with_transfers in (False, True):
            crossover = find_crossover(ratios_of(alike, device, with_transfers=with_transfers))
            if crossover.kind is not CrossoverKind.NOT_MEASURED:
                mode = "With transfers" if with_transfers else "Computing only"
                if alike[-1].recording and not sentences:
                    mode = f"{_RECORDED.strip()}, {mode[0].lower()}{mode[1:]}"
                sentences.append(f"{mode}, {_places(crossover, alike, device)}")
    return sentences


def _places(crossover: Crossover, results: Sequence[RunFinished], device: str) -> str:
    card, size_text = _name_of(results, device), results[-1].size_text
    first, last = (format_size(crossover.ratios[index].size, size_text) for index in (0, -1))
    span = f"at {first}" if len(crossover.ratios) == 1 else f"from {first} to {last}"
    ties = ", ".join(format_size(size, size_text) for size in crossover.ties)
    but = f", but at {ties} nobody can tell" if ties else ""
    match crossover.kind:
        case CrossoverKind.ALWAYS:
            return f"{card} is always faster {span}{but}: the curves do not cross."
        case CrossoverKind.NEVER:
            return f"{card} is never faster {span}{but}: the curves do not cross."
        case CrossoverKind.CROSSES:
            places = (
                f"at about {format_size(round(crossing.size), size_text)} (measured: between "
                f"{format_size(crossing.low, size_text)} and "
                f"{format_size(crossing.high, size_text)})"
                for crossing in crossover.crossings
            )
            return f"{card} and the CPU change places {', and '.join(places)}."
    return f"which is faster cannot be told {span}: the intervals of both overlap."


def _warning(results: Sequence[RunFinished]) -> list[str]:
    """Return what has to be said before anybody relies on the rest: speed is nothing if wrong."""
    wrong = dict.fromkeys(_short(result) for result in results if result.verified is False)
    return [f"But {' and '.join(wrong)} gave wrong results: do not rely on this."] if wrong else []


def _short(result: RunFinished) -> str:
    return "the CPU" if result.device == "cpu" else f"the {_card_name(result)}"


def _card_name(result: RunFinished) -> str:
    return result.device_name.removeprefix("NVIDIA ")


def _name_of(results: Sequence[RunFinished], device: str) -> str:
    return _short(next(result for result in reversed(results) if result.device == device))


def _kind_of(result: RunFinished) -> tuple[object, ...]:
    return (
        result.workload, result.dtype, sorted(result.options.items()), result.cache,
        result.recording,
    )  # fmt: skip


def _work_words(result: RunFinished, results: Iterable[RunFinished]) -> str:
    """Return what tells a result's work from that of the others: options only where they differ."""
    alike = [other for other in results if other.workload == result.workload]
    chosen = (
        f"{name} {value}"
        for name, value in result.options.items()
        if any(other.options.get(name) != value for other in alike)
    )
    cold = ["cold cache"] if result.cache == "cold" else []
    return ", ".join([result.workload, result.dtype, *chosen, *cold])


def _compared(results: Sequence[RunFinished], device: str, work: str) -> Iterable[str]:
    """Yield a sentence about computing only, and one with the transfers, where they are known."""
    latest = next(result for result in reversed(results) if result.device == device)
    computing = find_crossover(ratios_of(results, device))
    if computing.ratios:
        yield f"{_opening(latest)}{_Answer(computing, latest, work).text()}"
    transferring = find_crossover(ratios_of(results, device, with_transfers=True))
    if transferring.ratios:
        answer = _Answer(transferring, latest, work).text()
        yield f"{_opening(latest)}with the transfers {answer}"


def _opening(result: RunFinished) -> str:
    return _RECORDED if result.recording else _OPENING


class _Answer:
    """One comparison as the end of a sentence.

    Args:
        crossover: with at least one ratio.
        latest: the newest result of the device.
        work: the kind of work in parentheses, a space before it.
    """

    def __init__(self, crossover: Crossover, latest: RunFinished, work: str) -> None:
        self._crossover = crossover
        self._ratios = crossover.ratios
        self._name = _short(latest)
        self._size_text = latest.size_text
        self._work = work
        self._label = _label(latest)
        self._best = max(self._ratios, key=lambda ratio: ratio.ratio)
        self._worst = min(self._ratios, key=lambda ratio: ratio.ratio)

    def text(self) -> str:
        """Return the answer, its full stop included."""
        match self._crossover.kind:
            case CrossoverKind.ALWAYS:
                return (
                    f"{self._name} wins at every size measured{self._but_ties()}{self._work}: up "
                    f"to {self._times(self._best)} faster, at {self._at(self._best)}{self._label}."
                )
            case CrossoverKind.NEVER:
                return (
                    f"the CPU wins at every size measured{self._but_ties()}{self._work}: at "
                    f"{self._at(self._worst)} it is {self._times(self._worst)} faster than "
                    f"{self._name}{self._label}."
                )
            case CrossoverKind.CROSSES:
                return self._crossing()
        return self._undecided()

    def _crossing(self) -> str:
        crossings = self._crossover.crossings
        if len(crossings) > 1 and not crossings[-1].device_wins_above:
            return (
                f"it depends on the size{self._work}: {self._name} is {self._times(self._best)} "
                f"faster at {self._at(self._best)}, the CPU {self._times(self._worst)} at "
                f"{self._at(self._worst)}{self._label}."
            )
        last = crossings[-1]
        coarse = ", of the sizes measured" if last.high > _NEAR * last.low else ""
        winner, loser, extreme = "the CPU", self._name, self._best
        if last.device_wins_above:
            winner, loser, extreme = self._name, "the CPU", self._worst
        return (
            f"{winner} wins from {format_size(last.high, self._size_text)} on{coarse}"
            f"{self._work}; at {self._at(extreme)} {loser} is {self._times(extreme)} faster"
            f"{self._label}."
        )

    def _undecided(self) -> str:
        if all(1 / SAME_WITHIN < ratio.ratio < SAME_WITHIN for ratio in self._ratios):
            return f"the CPU and {self._name} are equally fast{self._work}{self._label}."
        return (
            f"nobody can tell whether the CPU or {self._name} is faster{self._work}: their "
            f"intervals overlap at every size measured{self._label}."
        )

    def _but_ties(self) -> str:
        ties = self._crossover.ties
        if not ties:
            return ""
        sizes = ", ".join(format_size(size, self._size_text) for size in ties)
        return f" but {sizes}"

    def _at(self, ratio: SizeRatio) -> str:
        return format_size(ratio.size, self._size_text)

    def _times(self, ratio: SizeRatio) -> str:
        return format_ratio(max(ratio.ratio, 1 / ratio.ratio))


def _label(result: RunFinished) -> str:
    return f" (recording: {result.recording})" if result.recording else ""


def _alone(results: Sequence[RunFinished]) -> str:
    latest = results[-1]
    text = (
        f"{latest.device_name} needs {format_duration(latest.median_s)} for one call of "
        f"{latest.workload} at {format_size(latest.size, latest.size_text)}, {latest.dtype}."
    )
    if latest.recording:
        return f"{_RECORDED}{text.removesuffix('.')}{_label(latest)}."
    if latest.device == "cpu":
        return text + " With a GPU measured as well, this line compares the two."
    return text + " With the CPU measured as well, this line compares the two."
