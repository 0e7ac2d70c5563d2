"""A verdict in sentences, written only from the numbers in the table."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.ceilings import is_this_normal
from gpu_studio.core.benchmark.comparison import Claim, next_steps
from gpu_studio.core.benchmark.crossover import CrossoverKind
from gpu_studio.core.benchmark.option_words import option_words
from gpu_studio.core.benchmark.sizes import sizes_text
from gpu_studio.core.device_name import is_cpu, name_at, pc_of
from gpu_studio.core.devices.devices import without_maker
from gpu_studio.core.units import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpu_studio.core.benchmark.comparison import Comparison
    from gpu_studio.core.benchmark.crossover import Crossing
    from gpu_studio.core.benchmark.verdict import BenchmarkVerdict, CardComparison
    from gpu_studio.core.messages.run_messages import RunFinished

# If the two sizes of a crossing are no further apart, only the upper one is named.
_NEAR = 1.1
_ACROSS = " (two PCs, so not in turns)"


def verdict_text(
    verdict: BenchmarkVerdict | None,
    *,
    in_brief: bool = False,
    titles: Mapping[str, str] = MappingProxyType({}),
    below_headline: bool = False,
    can_compare: bool = False,
) -> str:
    """Return a verdict in some sentences; empty without one.

    Wrong results come first, and a device with a wrong result never wins.

    Args:
        verdict: from `verdict_of`.
        in_brief: only the first comparison, and any warning about wrong results.
        titles: what to call a workload, by its name; the terminal calls it by its name.
        below_headline: whether a headline says above it that results are wrong, and at which sizes.
        can_compare: whether this PC has another device, which the user can select.
    """
    if verdict is None:
        return ""
    sentences = _warnings(verdict, below_headline=below_headline)
    if not verdict.comparisons:
        return " ".join([*sentences, _alone(verdict, titles, can_compare=can_compare)])
    first, *others = verdict.comparisons
    # The work and the recording are common to all: only the first sentence names them.
    opening = "In the recording " if verdict.latest.recording else _where(first)
    work = f" ({_work_words(verdict, titles)})"
    answer = _Answer(first, work=work, label=_label(verdict.latest)).text()
    sentences.append(_capitalized(f"{opening}{answer}"))
    if not in_brief:
        sentences += [_capitalized(_Answer(one).text()) for one in others]
    return " ".join(sentences)


def crossover_sentences(verdict: BenchmarkVerdict | None, *, in_brief: bool = False) -> list[str]:
    """Return where each card overtakes the CPU, with the uncertainty unless in brief.

    Each card in the latest kind of work has one sentence for computing only and one with
    copies; empty if only one device was measured.
    """
    sentences: list[str] = []
    for one in verdict.comparisons if verdict is not None else ():
        mode = "With copies" if one.with_transfers else "Computing only"
        if one.result.recording and not sentences:
            mode = f"In the recording, {mode[0].lower()}{mode[1:]}"
        sentences.append(f"{mode}, {_places(one, in_brief=in_brief)}")
    return sentences


def _places(comparison: CardComparison, *, in_brief: bool) -> str:
    crossover = comparison.crossover
    card, size_text = _short(comparison.result), comparison.result.size_text
    first, last = (format_size(crossover.ratios[index].size, size_text) for index in (0, -1))
    span = f"at {first}" if len(crossover.ratios) == 1 else f"from {first} to {last}"
    but = "".join(f", {text}" for text in _ties_texts(crossover.ratios, size_text))
    match crossover.kind:
        case CrossoverKind.ALWAYS:
            return f"{card} is faster {span}{but}: the curves do not cross."
        case CrossoverKind.NEVER:
            return f"{card} is slower {span}{but}: the curves do not cross."
        case CrossoverKind.CROSSES:
            crossings = crossover.crossings[: 1 if in_brief else None]
            cpu = _cpu_words(comparison.reference)
            places = [_place(one, cpu, size_text, in_brief=in_brief) for one in crossings]
            if in_brief:
                return f"{card} {places[0]}"
            but = "".join(f", {text}" for text in _ties_texts(_beside(comparison), size_text))
            return f"{card} {' and '.join(places)}{but}."
        case CrossoverKind.EQUAL:
            return f"{card} and {_cpu_words(comparison.reference)} are equally fast {span}."
    return f"it is too close to call {span}: {_reason(crossover.ratios)}."


def _beside(comparison: CardComparison) -> list[Comparison]:
    """Return the ratios outside of every crossing; a crossing's own range tells its ties."""
    return [
        ratio
        for ratio in comparison.crossover.ratios
        if not any(
            place.low <= ratio.size <= place.high for place in comparison.crossover.crossings
        )
    ]


def _place(crossing: Crossing, cpu: str, size_text: str, *, in_brief: bool) -> str:
    verb = f"overtakes {cpu}" if crossing.device_wins_above else f"falls behind {cpu}"
    low, high = format_size(crossing.low, size_text), format_size(crossing.high, size_text)
    place = f"{verb} at about {format_size(round(crossing.size), size_text)}"
    return place if in_brief else f"{place} (measured: between {low} and {high})"


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


def _warnings(verdict: BenchmarkVerdict, *, below_headline: bool) -> list[str]:
    """Return the warnings to show first: speed means nothing if the results are wrong."""
    named = {_short(one.result): _sizes(one.sizes, one.result.size_text) for one in verdict.wrong}
    if below_headline and len(set(named.values())) == 1:
        return [f"Don't trust {' and '.join(named)} here."]
    return [f"Don't trust {name} here: wrong results at {sizes}." for name, sizes in named.items()]


def _where(comparison: CardComparison) -> str:
    """Return the PC of a comparison as the beginning of a sentence; empty for two PCs."""
    if _is_across(comparison):
        return ""
    pc = pc_of(comparison.result.device)
    return f"On {pc} " if pc else "On this PC "


def _is_across(comparison: CardComparison) -> bool:
    return pc_of(comparison.result.device) != pc_of(comparison.reference)


def _short(result: RunFinished) -> str:
    if is_cpu(result.device):
        return _cpu_words(result.device)
    return f"the {without_maker(result.device_name)}{_of_pc(result.device)}"


def _cpu_words(address: str) -> str:
    return f"the CPU{_of_pc(address)}"


def _of_pc(address: str) -> str:
    return f" of {pc_of(address)}" if pc_of(address) else ""


def _work_words(verdict: BenchmarkVerdict, titles: Mapping[str, str]) -> str:
    """Return the words that identify the work; options only if they differ."""
    result = verdict.latest
    chosen = option_words(verdict.options)
    cold = ["cold cache"] if result.cache == "cold" else []
    lasting = ["sustained"] if result.sustained else []
    title = titles.get(result.workload, result.workload)
    return ", ".join([title, result.dtype, *chosen, *cold, *lasting, *_kernel_words(result)])


def _kernel_words(result: RunFinished) -> list[str]:
    return ["custom CUDA kernel"] if result.has_own_kernel else []


class _Answer:
    """One comparison as the end of a sentence.

    Args:
        comparison: of a card with the CPU.
        work: the kind of work in parentheses, after a space; empty if it was named before.
        label: the recording in parentheses, after a space; empty if there is none.
    """

    def __init__(self, comparison: CardComparison, *, work: str = "", label: str = "") -> None:
        self._crossover = comparison.crossover
        self._ratios = comparison.crossover.ratios
        self._with = "with the copies " if comparison.with_transfers else ""
        self._name = _short(comparison.result)
        self._size_text = comparison.result.size_text
        self._work = work
        self._label = label + _ACROSS * _is_across(comparison)
        self._cpu = _cpu_words(comparison.reference)
        # Only decided sizes count for the best; if there are none, neither is used.
        decided = [ratio for ratio in self._ratios if ratio.sign] or self._ratios
        self._best = max(decided, key=lambda ratio: ratio.ratio)
        self._worst = min(decided, key=lambda ratio: ratio.ratio)

    def text(self) -> str:
        """Return the answer with its period."""
        return f"{self._with}{self._claim()}"

    def _claim(self) -> str:
        match self._crossover.kind:
            case CrossoverKind.ALWAYS:
                return (
                    f"{self._name} wins at {self._where()}{self._work}: up to {self._best.times} "
                    f"faster, at {self._at(self._best)}{self._but(self._ratios)}{self._label}."
                )
            case CrossoverKind.NEVER:
                return (
                    f"{self._cpu} wins at {self._where()}{self._work}: at {self._at(self._worst)} "
                    f"it is {self._worst.times} faster than {self._name}{self._but(self._ratios)}"
                    f"{self._label}."
                )
            case CrossoverKind.CROSSES:
                return self._crossing()
            case CrossoverKind.EQUAL:
                return f"{self._cpu} and {self._name} are equally fast{self._work}{self._label}."
        return self._undecided()

    def _crossing(self) -> str:
        crossings = self._crossover.crossings
        if len(crossings) > 1 and not crossings[-1].device_wins_above:
            return (
                f"it depends on the size{self._work}: {self._name} is {self._best.times} "
                f"faster at {self._at(self._best)}, {self._cpu} {self._worst.times} at "
                f"{self._at(self._worst)}{self._label}."
            )
        last = crossings[-1]
        coarse = ", of the sizes measured" if last.high > _NEAR * last.low else ""
        winner, loser, extreme = self._cpu, self._name, self._best
        if last.device_wins_above:
            winner, loser, extreme = self._name, self._cpu, self._worst
        above = [ratio for ratio in self._ratios if ratio.size > last.high]
        return (
            f"{winner} wins from {format_size(last.high, self._size_text)} on{coarse}"
            f"{self._work}{self._but(above)}; at {self._at(extreme)} {loser} is "
            f"{extreme.times} faster{self._label}."
        )

    def _undecided(self) -> str:
        if all(ratio.is_kept_busy for ratio in self._ratios):
            text = f"there is no verdict{self._work}: other programs keep it busy{self._label}."
            return " ".join([text, next_steps(self._ratios), "Then run it again."])
        text = (
            f"it is too close to call whether {self._cpu} or {self._name} is faster{self._work}: "
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


def _alone(verdict: BenchmarkVerdict, titles: Mapping[str, str], *, can_compare: bool) -> str:
    """Return the latest result, if there is nothing to compare it with, and how normal it is."""
    latest = verdict.latest
    size = format_size(latest.size, latest.size_text)
    title = titles.get(latest.workload, latest.workload)
    text = (
        f"{name_at(pc_of(latest.device), latest.device_name)}: "
        f"{format_duration(latest.median_s)} per call ({title}, "
        f"{', '.join([size, latest.dtype, *_kernel_words(latest)])})"
    )
    if latest.recording:
        return f"In the recording {text}{_label(latest)}."
    if verdict.wrong:
        return f"{text}."
    sentences = [f"{text}.", is_this_normal(latest)]
    if can_compare:
        other = "a GPU" if is_cpu(latest.device) else "the CPU"
        sentences.append(f"Select {other} as well to compare the two.")
    return " ".join(filter(None, sentences))


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]
