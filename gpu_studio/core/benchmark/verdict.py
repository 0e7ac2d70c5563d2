"""The sentence above the results, written only from the numbers in the table."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.comparison import Claim, compare, next_steps
from gpu_studio.core.benchmark.crossover import CrossoverKind, find_crossover, ratios_of
from gpu_studio.core.benchmark.option_words import option_words
from gpu_studio.core.benchmark.sizes import sizes_text
from gpu_studio.core.benchmark.trust import timing_doubts
from gpu_studio.core.device_name import CPU, is_cpu
from gpu_studio.core.units import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpu_studio.core.benchmark.comparison import Comparison
    from gpu_studio.core.benchmark.crossover import Crossing, Crossover
    from gpu_studio.core.messages.run_messages import RunFinished

_OPENING = "On this PC "
_RECORDED = "In the recording "
# If the two sizes of a crossing are no further apart, only the upper one is named.
_NEAR = 1.1


def speed_up(result: RunFinished, results: Sequence[RunFinished]) -> Comparison | None:
    """Return a result's comparison with the CPU at the same work; None if there is none.

    Of several CPU runs of the same work the latest counts, as in the verdict. A CPU run has no
    comparison, because it is the reference. The CPU's operands are in place, so its runs can be
    compared with a card's runs with or without transfers.
    """
    if is_cpu(result.device):
        return None
    for other in reversed(results):
        if is_cpu(other.device) and other.size == result.size and same_kind(other, result):
            return compare(other, result)
    return None


def same_kind(result: RunFinished, other: RunFinished) -> bool:
    """Return whether two results belong on one curve: the same work except for size and device.

    Recorded results never share a curve with this PC's.
    """
    return _kind_of(result) == _kind_of(other)


def verdict(
    results: Sequence[RunFinished],
    *,
    in_brief: bool = False,
    titles: Mapping[str, str] = MappingProxyType({}),
    below_headline: bool = False,
) -> str:
    """Return some sentences about finished runs of the latest kind of work; empty without any.

    Wrong results come first, and a device with a wrong result never wins.

    Args:
        results: in the order of the runs.
        in_brief: only the first comparison, and any warning about wrong results.
        titles: what to call a workload, by its name; the terminal calls it by its name.
        below_headline: whether a headline says above it that results are wrong, and at which sizes.
    """
    if not results:
        return ""
    latest = results[-1]
    alike = [result for result in results if same_kind(result, latest)]
    wrong = {result.device for result in alike if result.verified is False}
    devices = dict.fromkeys(result.device for result in alike if not is_cpu(result.device))
    comparable = [] if CPU in wrong else [device for device in devices if device not in wrong]
    opening = _opening(latest)
    work = f" ({_work_words(latest, results, titles)})"
    sentences = [text for device in comparable for text in _compared(alike, device, work)]
    if in_brief:
        del sentences[1:]
    if sentences:
        # The work and the recording are common to all: only the first sentence names them.
        others = (
            text.replace(work, "").replace(_label(latest), "").removeprefix(opening)
            for text in sentences[1:]
        )
        sentences[1:] = [text[:1].upper() + text[1:] for text in others]
    else:
        sentences = [_alone(alike, titles, is_wrong=bool(wrong))]
    return " ".join([*_warning(alike, below_headline=below_headline), *sentences])


def is_doubted(results: Sequence[RunFinished]) -> bool:
    """Return whether a verdict relies on wrong results or doubtful times.

    Args:
        results: as of `verdict`.
    """
    alike = [result for result in results if same_kind(result, results[-1])]
    if any(result.verified is False for result in alike):
        return True
    devices = dict.fromkeys(result.device for result in alike if not is_cpu(result.device))
    ratios = [
        ratio
        for device in devices
        for with_transfers in (False, True)
        for ratio in ratios_of(alike, device, with_transfers=with_transfers)
    ]
    if ratios:
        return any(ratio.doubts for ratio in ratios)
    return bool(alike) and bool(timing_doubts(alike[-1]))


def crossover_sentences(results: Sequence[RunFinished]) -> list[str]:
    """Return where each card overtakes the CPU, with the uncertainty.

    Each card in the latest kind of work has one sentence for computing only and one with
    copies; empty if only one device was measured.
    """
    if not results:
        return []
    alike = [result for result in results if same_kind(result, results[-1])]
    sentences: list[str] = []
    wrong = {result.device for result in alike if result.verified is False}
    devices = dict.fromkeys(result.device for result in alike if not is_cpu(result.device))
    for device in devices if CPU not in wrong else ():
        if device in wrong:
            continue
        for with_transfers in (False, True):
            crossover = find_crossover(ratios_of(alike, device, with_transfers=with_transfers))
            if crossover.kind is not CrossoverKind.NOT_MEASURED:
                mode = "With copies" if with_transfers else "Computing only"
                if alike[-1].recording and not sentences:
                    mode = f"{_RECORDED.strip()}, {mode[0].lower()}{mode[1:]}"
                sentences.append(f"{mode}, {_places(crossover, alike, device)}")
    return sentences


def _places(crossover: Crossover, results: Sequence[RunFinished], device: str) -> str:
    card, size_text = _name_of(results, device), results[-1].size_text
    first, last = (format_size(crossover.ratios[index].size, size_text) for index in (0, -1))
    span = f"at {first}" if len(crossover.ratios) == 1 else f"from {first} to {last}"
    but = "".join(f", {text}" for text in _ties_texts(crossover.ratios, size_text))
    match crossover.kind:
        case CrossoverKind.ALWAYS:
            return f"{card} is faster {span}{but}: the curves do not cross."
        case CrossoverKind.NEVER:
            return f"{card} is slower {span}{but}: the curves do not cross."
        case CrossoverKind.CROSSES:
            places = (_place(crossing, size_text) for crossing in crossover.crossings)
            but = "".join(f", {text}" for text in _ties_texts(_beside(crossover), size_text))
            return f"{card} {' and '.join(places)}{but}."
        case CrossoverKind.EQUAL:
            return f"{card} and the CPU are equally fast {span}."
    return f"it is too close to call {span}: {_reason(crossover.ratios)}."


def _beside(crossover: Crossover) -> list[Comparison]:
    """Return the ratios outside of every crossing; a crossing's own range tells its ties."""
    return [
        ratio
        for ratio in crossover.ratios
        if not any(place.low <= ratio.size <= place.high for place in crossover.crossings)
    ]


def _place(crossing: Crossing, size_text: str) -> str:
    verb = "overtakes the CPU" if crossing.device_wins_above else "falls behind the CPU"
    low, high = format_size(crossing.low, size_text), format_size(crossing.high, size_text)
    at = format_size(round(crossing.size), size_text)
    return f"{verb} at about {at} (measured: between {low} and {high})"


def _ties_texts(ratios: Iterable[Comparison], size_text: str) -> Iterable[str]:
    """Yield the sizes without a winner: ``equally fast at …``, ``too close to call at …``."""
    named = {
        Claim.EQUAL: "equally fast", Claim.UNDECIDED: "too close to call",
        Claim.WRONG: "wrong results",
    }  # fmt: skip
    for outcome, words in named.items():
        sizes = [ratio.size for ratio in ratios if ratio.outcome is outcome]
        if sizes:
            yield f"{words} at {_sizes(sizes, size_text)}"


def _sizes(sizes: Iterable[int], size_text: str) -> str:
    return sizes_text([format_size(size, size_text) for size in sizes])


def _reason(ratios: Iterable[Comparison]) -> str:
    """Return the reasons why sizes have no winner, each once."""
    reasons = dict.fromkeys(ratio.reason or ratio.outcome.value for ratio in ratios)
    return "; ".join(reasons)


def _warning(results: Sequence[RunFinished], *, below_headline: bool) -> list[str]:
    """Return the warnings to show first: speed means nothing if the results are wrong."""
    told: dict[str, str] = {}
    for device in dict.fromkeys(result.device for result in results):
        wrong = [each for each in results if each.device == device and each.verified is False]
        if wrong:
            sizes = _sizes(sorted({each.size for each in wrong}), wrong[-1].size_text)
            told[_short(wrong[-1])] = sizes
    if below_headline and len(set(told.values())) == 1:
        return [f"Don't trust {' and '.join(told)} here."]
    return [f"Don't trust {name} here: wrong results at {sizes}." for name, sizes in told.items()]


def _short(result: RunFinished) -> str:
    return "the CPU" if is_cpu(result.device) else f"the {_card_name(result)}"


def _card_name(result: RunFinished) -> str:
    return result.device_name.removeprefix("NVIDIA ")


def _name_of(results: Sequence[RunFinished], device: str) -> str:
    return _short(next(result for result in reversed(results) if result.device == device))


def _kind_of(result: RunFinished) -> tuple[object, ...]:
    return (
        result.workload, result.dtype, sorted(result.options.items()), result.cache,
        result.sustained, result.race, result.recording,
    )  # fmt: skip


def _work_words(
    result: RunFinished, results: Iterable[RunFinished], titles: Mapping[str, str]
) -> str:
    """Return the words that identify a result's work; options only if they differ."""
    alike = [other for other in results if other.workload == result.workload]
    chosen = option_words(
        {
            name: value
            for name, value in result.options.items()
            if any(other.options.get(name) != value for other in alike)
        }
    )
    cold = ["cold cache"] if result.cache == "cold" else []
    lasting = ["sustained"] if result.sustained else []
    title = titles.get(result.workload, result.workload)
    return ", ".join([title, result.dtype, *chosen, *cold, *lasting, *_kernel_words(result)])


def _kernel_words(result: RunFinished) -> list[str]:
    return ["custom CUDA kernel"] if result.has_own_kernel else []


def _compared(results: Sequence[RunFinished], device: str, work: str) -> Iterable[str]:
    """Yield a sentence about computing only, and one with copies, if they are known."""
    latest = next(result for result in reversed(results) if result.device == device)
    computing = find_crossover(ratios_of(results, device))
    if computing.ratios:
        yield f"{_opening(latest)}{_Answer(computing, latest, work).text()}"
    transferring = find_crossover(ratios_of(results, device, with_transfers=True))
    if transferring.ratios:
        answer = _Answer(transferring, latest, work).text()
        yield f"{_opening(latest)}with the copies {answer}"


def _opening(result: RunFinished) -> str:
    return _RECORDED if result.recording else _OPENING


class _Answer:
    """One comparison as the end of a sentence.

    Args:
        crossover: with at least one ratio.
        latest: the newest result of the device.
        work: the kind of work in parentheses, after a space.
    """

    def __init__(self, crossover: Crossover, latest: RunFinished, work: str) -> None:
        self._crossover = crossover
        self._ratios = crossover.ratios
        self._name = _short(latest)
        self._size_text = latest.size_text
        self._work = work
        self._label = _label(latest)
        # Only decided sizes count for the best; if there are none, neither is used.
        decided = [ratio for ratio in self._ratios if ratio.sign] or self._ratios
        self._best = max(decided, key=lambda ratio: ratio.ratio)
        self._worst = min(decided, key=lambda ratio: ratio.ratio)

    def text(self) -> str:
        """Return the answer with its period."""
        match self._crossover.kind:
            case CrossoverKind.ALWAYS:
                return (
                    f"{self._name} wins at {self._where()}{self._work}: up to {self._best.times} "
                    f"faster, at {self._at(self._best)}{self._but(self._ratios)}{self._label}."
                )
            case CrossoverKind.NEVER:
                return (
                    f"the CPU wins at {self._where()}{self._work}: at {self._at(self._worst)} it "
                    f"is {self._worst.times} faster than {self._name}{self._but(self._ratios)}"
                    f"{self._label}."
                )
            case CrossoverKind.CROSSES:
                return self._crossing()
            case CrossoverKind.EQUAL:
                return f"the CPU and {self._name} are equally fast{self._work}{self._label}."
        return self._undecided()

    def _crossing(self) -> str:
        crossings = self._crossover.crossings
        if len(crossings) > 1 and not crossings[-1].device_wins_above:
            return (
                f"it depends on the size{self._work}: {self._name} is {self._best.times} "
                f"faster at {self._at(self._best)}, the CPU {self._worst.times} at "
                f"{self._at(self._worst)}{self._label}."
            )
        last = crossings[-1]
        coarse = ", of the sizes measured" if last.high > _NEAR * last.low else ""
        winner, loser, extreme = "the CPU", self._name, self._best
        if last.device_wins_above:
            winner, loser, extreme = self._name, "the CPU", self._worst
        above = [ratio for ratio in self._ratios if ratio.size > last.high]
        return (
            f"{winner} wins from {format_size(last.high, self._size_text)} on{coarse}"
            f"{self._work}{self._but(above)}; at {self._at(extreme)} {loser} is "
            f"{extreme.times} faster{self._label}."
        )

    def _undecided(self) -> str:
        text = (
            f"it is too close to call whether the CPU or {self._name} is faster{self._work}: "
            f"{_reason(self._ratios)}{self._label}."
        )
        return " ".join(filter(None, [text, next_steps(self._ratios)]))

    def _where(self) -> str:
        """Return the sizes with a winner."""
        if not self._crossover.ties:
            return "every size measured"
        sizes = [ratio.size for ratio in self._ratios if ratio.sign]
        return _sizes(sizes, self._size_text)

    def _but(self, ratios: Iterable[Comparison]) -> str:
        """Return the sizes without a winner as the rest of a sentence."""
        texts = list(_ties_texts(list(ratios), self._size_text))
        return f"; {'; '.join(texts)}" if texts else ""

    def _at(self, ratio: Comparison) -> str:
        return format_size(ratio.size, self._size_text)


def _label(result: RunFinished) -> str:
    return f" (recording: {result.recording})" if result.recording else ""


def _alone(results: Sequence[RunFinished], titles: Mapping[str, str], *, is_wrong: bool) -> str:
    latest = results[-1]
    size = format_size(latest.size, latest.size_text)
    title = titles.get(latest.workload, latest.workload)
    text = (
        f"{latest.device_name}: {format_duration(latest.median_s)} per call ({title}, "
        f"{', '.join([size, latest.dtype, *_kernel_words(latest)])})."
    )
    if latest.recording:
        return f"{_RECORDED}{text.removesuffix('.')}{_label(latest)}."
    if is_wrong:
        return text
    other = "a GPU" if is_cpu(latest.device) else "the CPU"
    return f"{text} Select {other} as well to compare the two."
