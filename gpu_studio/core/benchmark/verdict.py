"""What finished runs say: who is faster and by how much, from which size on, and what is doubtful.

`claim.claim_of` decides at every size; the sentences have only numbers that the table has.
"""

from __future__ import annotations

import itertools
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.ceilings import is_this_normal
from gpu_studio.core.benchmark.claim import CANNOT_BE_TOLD, Outcome, claim_of, fixes_sentence
from gpu_studio.core.benchmark.crossover import claims_by_size, crossings_of, reference_of
from gpu_studio.core.benchmark.options import option_words
from gpu_studio.core.benchmark.sizes import sizes_text
from gpu_studio.core.benchmark.trust import timing_doubts
from gpu_studio.core.device_name import DeviceName, is_cpu, name_at, pc_of
from gpu_studio.core.devices.devices import without_maker
from gpu_studio.core.texts import listed
from gpu_studio.core.units import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpu_studio.core.benchmark.claim import Claim
    from gpu_studio.core.messages.run_messages import RunFinished


class CardComparison(msgspec.Struct, frozen=True):
    """A card compared with a CPU (``reference``, an address), by ascending size.

    ``result`` is the card's latest; ``with_transfers``: the copies to and from the card count.
    """

    result: RunFinished
    reference: str
    claims: dict[int, Claim]
    with_transfers: bool


class BenchmarkVerdict(msgspec.Struct, frozen=True):
    """What the runs of one kind of work say.

    ``comparisons`` are each card's without and with copies; a device with ``wrong`` results has
    none. ``options`` are those that differ between the results of the workload. ``is_doubted``:
    it relies on wrong results or doubtful times.
    """

    latest: RunFinished
    wrong: tuple[RunFinished, ...]
    comparisons: tuple[CardComparison, ...]
    options: dict[str, str]
    is_doubted: bool


def verdict_of(results: Sequence[RunFinished]) -> BenchmarkVerdict | None:
    """Return the verdict on the latest kind of work; None without a result.

    Args:
        results: in the order of the runs.
    """
    if not results:
        return None
    latest = results[-1]
    alike = [result for result in results if same_kind(result, latest)]
    wrong = tuple(result for result in alike if result.verified is False)
    comparisons = tuple(_comparisons(alike))
    distrusted = {result.device for result in wrong}
    trusted = (one for one in comparisons if not distrusted & {one.result.device, one.reference})
    claims = [claim for one in comparisons for claim in one.claims.values()]
    doubts = [claim.doubts for claim in claims] if claims else [timing_doubts(latest)]
    others = [one.options for one in results if one.workload == latest.workload]
    return BenchmarkVerdict(
        latest=latest,
        wrong=wrong,
        comparisons=tuple(trusted),
        options={
            name: value
            for name, value in latest.options.items()
            if any(one.get(name) != value for one in others)
        },
        is_doubted=bool(wrong) or any(doubts),
    )


def _comparisons(results: Sequence[RunFinished]) -> Iterator[CardComparison]:
    for device in dict.fromkeys(one.device for one in results if not is_cpu(one.device)):
        latest = next(result for result in reversed(results) if result.device == device)
        reference = reference_of(device, (one.device for one in results))
        for with_transfers in (False, True):
            claims = claims_by_size(
                results, device, with_transfers=with_transfers, reference=reference
            )
            if claims:
                yield CardComparison(latest, reference, claims, with_transfers)


def speed_up(result: RunFinished, results: Sequence[RunFinished]) -> Claim | None:
    """Return the claim on a result against the CPU at the same work; None for a CPU's own.

    The latest run of the CPU of its own PC counts, or else of another one. Its operands are in
    place, so it can be compared with a card's runs with or without copies.
    """
    if is_cpu(result.device):
        return None
    cpus = {
        other.device: other
        for other in results
        if is_cpu(other.device) and other.size == result.size and same_kind(other, result)
    }
    other = cpus.get(reference_of(result.device, cpus))
    return claim_of(other, result) if other is not None else None


def same_kind(result: RunFinished, other: RunFinished) -> bool:
    """Return whether two results belong on one curve: the same work except for size and device.

    Recorded results never share a curve with this PC's.
    """
    return _kind_of(result) == _kind_of(other)


def _kind_of(result: RunFinished) -> tuple[object, ...]:
    return (
        result.workload, result.dtype, sorted(result.options.items()), result.cache,
        result.sustained, result.race, result.recording,
    )  # fmt: skip


class SizeResults(msgspec.Struct, frozen=True):
    """Every device's latest result at one size: the CPU first, each card without and with copies.

    ``wrong`` are the wrong results at any size. ``claim`` is on the ``card`` in question against
    the CPU; both are None if only one of them was measured.
    """

    results: tuple[RunFinished, ...]
    wrong: tuple[RunFinished, ...] = ()
    claim: Claim | None = None
    card: RunFinished | None = None


def results_at_size(
    results: Sequence[RunFinished], chosen: RunFinished | None = None
) -> SizeResults | None:
    """Return the results beside a chosen one, or at the largest size that can be compared.

    Args:
        results: all finished runs, in their order; without any, the answer is None.
        chosen: decides the kind of work, the size and the card in question. Without it, they are
            the latest, and the card with the best claim.
    """
    if not results:
        return None
    latest = chosen if chosen is not None else results[-1]
    alike = [result for result in results if same_kind(result, latest)]
    sizes = [
        {one.size for one in alike if is_cpu(one.device) is on_cpu} for on_cpu in (True, False)
    ]
    size = latest.size if chosen is not None else max(sizes[0] & sizes[1], default=latest.size)
    shown = {(result.device, result.transfers): result for result in alike if result.size == size}
    ordered = tuple(shown[key] for key in sorted(shown, key=_place))
    wrong = tuple(result for result in alike if result.verified is False)
    cards = [card for card in ordered if not is_cpu(card.device)]
    if chosen is not None and not is_cpu(chosen.device):
        cards = [card for card in cards if card is shown.get((chosen.device, chosen.transfers))]
    claims = (
        (claims_by_size(alike, card.device, with_transfers=card.transfers).get(size), card)
        for card in cards
    )
    compared = [(claim, card) for claim, card in claims if claim is not None]
    if not compared:
        return SizeResults(ordered, wrong)
    best = max(compared, key=lambda one: (not one[1].transfers, one[0].sign, one[0].ratio))
    return SizeResults(ordered, wrong, *best)


def _place(key: tuple[str, bool]) -> tuple[bool, str, int, bool]:
    name = DeviceName.parse(key[0])
    return not name.is_cpu, name.pc, name.index or 0, key[1]


# ── in sentences ─────────────────────────────────────────────────────────────────────────────────


def verdict_text(
    verdict: BenchmarkVerdict | None,
    *,
    titles: Mapping[str, str] = MappingProxyType({}),
    below_headline: bool = False,
    can_compare: bool = False,
) -> str:
    """Return a verdict in some sentences; empty without one.

    Wrong results come first, and a device with a wrong result never wins.

    Args:
        verdict: from `verdict_of`.
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
    sentences.append(_capitalized(f"{opening}{_answer(first, work)}{_label(verdict.latest)}."))
    sentences += [_capitalized(f"{_answer(one)}.") for one in others]
    unclear = [one for one in verdict.comparisons if _is_unclear(one)]
    fixes = fixes_sentence(claim for one in unclear for claim in one.claims.values())
    return " ".join(filter(None, [*sentences, fixes]))


def crossover_sentences(verdict: BenchmarkVerdict | None) -> list[str]:
    """Return where each card overtakes the CPU, with the uncertainty.

    Each card in the latest kind of work has one sentence for computing only and one with
    copies; empty if only one device was measured.
    """
    sentences: list[str] = []
    for one in verdict.comparisons if verdict is not None else ():
        mode = "With copies" if one.with_transfers else "Computing only"
        if one.result.recording and not sentences:
            mode = f"In the recording, {mode[0].lower()}{mode[1:]}"
        sentences.append(f"{mode}, {_places(one)}")
    return sentences


def _places(comparison: CardComparison) -> str:
    cpu, size_text = _cpu_words(comparison.reference), comparison.result.size_text
    places = []
    for one in crossings_of(comparison.claims):
        verb = "overtakes" if one.device_wins_above else "falls behind"
        ends = (one.low, one.size, one.high)
        low, at, high = (format_size(round(size), size_text) for size in ends)
        places.append(f"{verb} {cpu} at about {at} (measured: between {low} and {high})")
    curves = f"the curves of {_short(comparison.result)} and {cpu}"
    if _is_unclear(comparison):
        return f"it {CANNOT_BE_TOLD} whether {curves} cross: {_why(comparison.claims)}."
    if not places:
        return f"{curves} do not cross."
    return f"{_short(comparison.result)} {' and '.join(places)}."


def _answer(comparison: CardComparison, work: str = "") -> str:
    """Return who is faster, by how much and at which sizes, without a period.

    Neighboring sizes with the same verdict are one part, the largest sizes first. The largest size
    of all is a part by itself: its lead is what larger work will have.

    Args:
        comparison: of a card with the CPU.
        work: the kind of work in parentheses, after a space; empty if it was named before.
    """
    card, cpu = _short(comparison.result), _cpu_words(comparison.reference)
    mode = "with the copies " if comparison.with_transfers else ""
    across = " (two PCs, so not in turns)" if _is_across(comparison) else ""
    claims, size_text = comparison.claims, comparison.result.size_text
    if _is_unclear(comparison):
        which = f"whether {cpu} or {card} is faster"
        return f"{mode}it {CANNOT_BE_TOLD} {which}{work}: {_why(claims)}{across}"
    told = [size for size in reversed(claims) if claims[size].outcome is not Outcome.UNCLEAR]
    parts: list[str] = []
    largest = max(claims)

    def part_of(size: int) -> tuple[Outcome, bool]:
        return claims[size].outcome, size == largest and claims[size].sign != 0

    for _, group in itertools.groupby(told, part_of):
        sizes = sorted(group)
        words = _group_words([claims[size] for size in sizes], "" if parts else f" {cpu}")
        parts.append(f"{words} {_span(sizes, size_text)}")
    rest = {size: claim for size, claim in claims.items() if size not in told}
    but = f"; it {CANNOT_BE_TOLD} {_span([*rest], size_text)} ({_why(rest)})" if rest else ""
    return f"{mode}{card} is {listed(parts)}{work}{across}{but}"


def _group_words(claims: Sequence[Claim], cpu: str) -> str:
    """Return the same verdict at some sizes: ``up to 9.0 × slower than the CPU``."""
    best = max(claims, key=lambda claim: max(claim.ratio, 1 / claim.ratio))
    if not best.sign:
        return f"as fast as{cpu}" if cpu else best.words
    return f"{'up to ' if len(claims) > 1 else ''}{best.words}{f' than{cpu}' if cpu else ''}"


def _span(sizes: Sequence[int], size_text: str) -> str:
    texts = [format_size(size, size_text) for size in sizes]
    return f"from {texts[0]} to {texts[-1]}" if len(texts) > 1 else f"at {texts[0]}"


def _why(claims: Mapping[int, Claim]) -> str:
    return "; ".join(dict.fromkeys(claim.why for claim in claims.values()))


def _is_unclear(comparison: CardComparison) -> bool:
    return all(claim.outcome is Outcome.UNCLEAR for claim in comparison.claims.values())


def _warnings(verdict: BenchmarkVerdict, *, below_headline: bool) -> list[str]:
    """Return the warnings to show first: speed means nothing if the results are wrong."""
    sizes_of: dict[str, dict[int, str]] = {}
    for one in sorted(verdict.wrong, key=lambda result: result.size):
        sizes_of.setdefault(_short(one), {})[one.size] = format_size(one.size, one.size_text)
    named = {name: sizes_text([*sizes.values()]) for name, sizes in sizes_of.items()}
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
    return ", ".join([title, result.dtype, *chosen, *cold, *lasting])


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
        f"{size}, {latest.dtype})"
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
