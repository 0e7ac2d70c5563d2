"""What finished runs say: who is faster, by how much, and from which size on.

`claim.claim_of` decides at every size. A crossing lies between two sizes with different winners.
The sentences have only numbers that the table has.
"""

from __future__ import annotations

import itertools
import math
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.benchmark.ceilings import is_this_normal
from gpu_studio.core.benchmark.claim import CANNOT_BE_TOLD, Claim, Outcome, claim_of, fixes_sentence
from gpu_studio.core.benchmark.options import mode_words
from gpu_studio.core.benchmark.sizes import sizes_text
from gpu_studio.core.device_name import CPU, DeviceName, is_cpu, name_at, pc_of
from gpu_studio.core.devices.devices import without_maker
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpu_studio.core.messages.run_messages import RunFinished

_NO_TITLES: Mapping[str, str] = MappingProxyType({})


def same_kind(result: RunFinished, other: RunFinished) -> bool:
    """Return whether two results belong on one curve: the same work except for size and device.

    Recorded results never share a curve with this PC's.
    """
    return (result.kind, result.recording) == (other.kind, other.recording)


def reference_of(device: str, devices: Iterable[str]) -> str:
    """Return the CPU that a card is compared with: its own PC's, or else the first one.

    Args:
        device: the card.
        devices: all devices that were measured, or will be.
    """
    cpus = [one for one in devices if is_cpu(one)]
    own = (one for one in cpus if pc_of(one) == pc_of(device))
    return next(own, cpus[0] if cpus else CPU)


def claims_by_size(
    results: Sequence[RunFinished], device: str, *, with_transfers: bool = False
) -> dict[int, Claim]:
    """Return the claims on a card against its CPU by ascending size, for sizes measured on both.

    Args:
        results: of one kind of work; the last result of a size counts. One in turns is compared
            with the one that it took turns with.
        device: the card.
        with_transfers: use the card's runs with transfers, or those without. The CPU has its
            operands in place, so all its runs count.
    """
    histories = claim_histories(results, device, with_transfers=with_transfers)
    return {size: history[-1] for size, history in histories.items()}


def claim_histories(
    results: Sequence[RunFinished], device: str, *, with_transfers: bool = False
) -> dict[int, list[Claim]]:
    """Return all claims of each size, oldest first, by ascending size; see `claims_by_size`."""
    reference = reference_of(device, (result.device for result in results))
    in_turns: dict[tuple[int, str], RunFinished] = {}
    latest: dict[int, RunFinished] = {}
    for one in results:
        if one.device == reference and not one.transfers:
            in_turns[one.size, one.turns] = latest[one.size] = one
    histories: dict[int, list[Claim]] = {}
    for one in results:
        is_ours = one.device == device and one.transfers == with_transfers
        if is_ours and one.size in latest:
            claim = claim_of(in_turns.get((one.size, one.turns), latest[one.size]), one)
            histories.setdefault(one.size, []).extend([claim] if claim is not None else [])
    return {size: histories[size] for size in sorted(histories) if histories[size]}


def speed_up(result: RunFinished, results: Sequence[RunFinished]) -> Claim | None:
    """Return the claim on a result against the CPU at the same work; None for a CPU's own."""
    if is_cpu(result.device):
        return None
    alike = [one for one in results if is_cpu(one.device) and same_kind(one, result)]
    claims = claims_by_size([*alike, result], result.device, with_transfers=result.transfers)
    return claims.get(result.size)


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
    cards = ordered
    if chosen is not None and not is_cpu(chosen.device):
        cards = tuple(one for one in ordered if one is shown.get((chosen.device, chosen.transfers)))
    compared = [(claim, card) for card in cards if (claim := speed_up(card, alike)) is not None]
    if not compared:
        return SizeResults(ordered, wrong)
    best = max(compared, key=lambda one: (not one[1].transfers, one[0].sign, one[0].ratio))
    return SizeResults(ordered, wrong, *best)


def _place(key: tuple[str, bool]) -> tuple[bool, str, int, bool]:
    name = DeviceName.parse(key[0])
    return not name.is_cpu, name.pc, name.index or 0, key[1]


# ── from which size on ───────────────────────────────────────────────────────────────────────────


class Crossing(NamedTuple):
    """A point at which the faster device changes, between two measured sizes.

    ``size`` is where the line between their ratios on logarithmic axes is one.
    """

    size: float
    low: int
    high: int
    device_wins_above: bool


def crossings_of(claims: Mapping[int, Claim]) -> list[Crossing]:
    """Return where a device overtakes the reference or falls behind it, by ascending size.

    Args:
        claims: see `claims_by_size`.
    """
    decided = [size for size, claim in claims.items() if claim.sign]
    crossings = []
    for below, above in itertools.pairwise(decided):
        if claims[below].sign != claims[above].sign:
            first, last = math.log(claims[below].ratio), math.log(claims[above].ratio)
            size = below * (above / below) ** (first / (first - last))
            crossings.append(Crossing(size, below, above, last > 0))
    return crossings


# ── in sentences ─────────────────────────────────────────────────────────────────────────────────


class CardClaims(NamedTuple):
    """A card, by its latest result, against a CPU, by its address, without or with copies."""

    card: RunFinished
    cpu: str
    claims: dict[int, Claim]
    with_transfers: bool


def compared_cards(results: Sequence[RunFinished]) -> list[CardClaims]:
    """Return the claims on each card in the latest kind of work, without and with copies.

    A device with wrong results has none.
    """
    alike = [result for result in results if same_kind(result, results[-1])]
    wrong = {result.device for result in alike if result.verified is False}
    compared = []
    for device, latest in {one.device: one for one in alike if not is_cpu(one.device)}.items():
        cpu = reference_of(device, (one.device for one in alike))
        for with_transfers in (False, True):
            claims = claims_by_size(alike, device, with_transfers=with_transfers)
            if claims and not wrong & {device, cpu}:
                compared.append(CardClaims(latest, cpu, claims, with_transfers))
    return compared


def verdict_of(results: Sequence[RunFinished], titles: Mapping[str, str] = _NO_TITLES) -> Notice:
    """Return what the latest kind of work says, amber if it relies on wrong or doubtful results.

    Wrong results come first, and a device with a wrong result never wins.

    Args:
        results: in the order of the runs.
        titles: what to call a workload, by its name; the terminal calls it by its name.
    """
    if not results:
        return Notice()
    latest, compared = results[-1], compared_cards(results)
    claims = [claim for one in compared for claim in one.claims.values()]
    sentences = [*_warnings(result for result in results if same_kind(result, latest))]
    is_doubted = bool(sentences) or any(claim.doubts for claim in claims)
    if compared:
        # The work is common to all: only the first sentence names it.
        first, *others = compared
        sentences += [_sentence(first, _kind_words(latest, titles)), *map(_sentence, others)]
        sentences.append(fixes_sentence(one for one in claims if one.is_unclear))
    else:
        sentences += _alone(latest, titles, is_wrong=bool(sentences))
    words = " ".join(filter(None, sentences))
    return Notice(words, Tone.AMBER if is_doubted else Tone.PLAIN)


def _warnings(results: Iterable[RunFinished]) -> Iterator[str]:
    """Yield the warnings to show first: speed means nothing if the results are wrong."""
    sizes_of: dict[str, dict[int, str]] = {}
    for one in sorted(results, key=lambda result: result.size):
        if one.verified is False:
            sizes = sizes_of.setdefault(_short(one), {})
            sizes[one.size] = format_size(one.size, one.size_text)
    for name, sizes in sizes_of.items():
        yield f"Don't trust {name} here: wrong results at {sizes_text([*sizes.values()])}."


def _sentence(compared: CardClaims, work: str = "") -> str:
    """Return who is faster, by how much and at which sizes.

    Args:
        compared: a card with the CPU.
        work: the kind of work; empty if it was named before.
    """
    card, cpu = _short(compared.card), _cpu_words(compared.cpu)
    is_across = pc_of(compared.card.device) != pc_of(compared.cpu)
    notes = ", ".join(filter(None, (work, "two PCs, so not in turns" if is_across else "")))
    mode = " with copies" if compared.with_transfers else ""
    head = f"T{card[1:]}{mode} against {cpu}{f' ({notes})' if notes else ''}"
    said = sizes_words(compared.claims, compared.card.size_text)
    return f"{head}: {said}.{_places(compared)}"


def sizes_words(claims: Mapping[int, Claim], size_text: str) -> str:
    """Return claims by ascending size in words: ``4.0 × faster at 4096; equally fast at 64``.

    Neighboring sizes with the same outcome are one part, the largest sizes first. The largest size
    of all is a part by itself: its lead is what larger work will have.
    """

    def part_of(size: int) -> tuple[Outcome | None, bool]:
        outcome = None if claims[size].is_unclear else claims[size].outcome
        return outcome, size == max(claims) and claims[size].sign != 0

    parts = []
    for (outcome, _), group in itertools.groupby(sorted(claims, reverse=True), part_of):
        sizes = sorted(group)
        texts = [format_size(size, size_text) for size in (sizes[0], sizes[-1])]
        span = f"at {texts[0]}" if len(sizes) == 1 else f"from {' to '.join(texts)}"
        own = [claims[size] for size in sizes]
        if outcome is None:
            why = dict.fromkeys(claim.why for claim in own)
            parts.append(f"{CANNOT_BE_TOLD} {span}, because {'; '.join(why)}")
            continue
        best = max(own, key=lambda claim: max(claim.ratio, 1 / claim.ratio))
        up_to = "up to " if best.sign and len(sizes) > 1 else ""
        parts.append(f"{up_to}{best.words} {span}")
    return "; ".join(parts)


def _places(compared: CardClaims) -> str:
    """Return where the card overtakes the CPU or falls behind it, as a sentence; empty if never."""
    places = []
    for one in crossings_of(compared.claims):
        verb = "overtakes" if one.device_wins_above else "falls behind"
        ends = (one.low, one.size, one.high)
        low, at, high = (format_size(round(size), compared.card.size_text) for size in ends)
        cpu = _cpu_words(compared.cpu)
        places.append(f"{verb} {cpu} at about {at} (measured: between {low} and {high})")
    return f" It {' and '.join(places)}." if places else ""


def _kind_words(result: RunFinished, titles: Mapping[str, str]) -> str:
    """Return the words that identify the work at all sizes: ``matmul, float32, cold cache``."""
    title = titles.get(result.workload, result.workload)
    recording = f"recording: {result.recording}" if result.recording else ""
    mode = mode_words(result, with_copies=False)
    return ", ".join(filter(None, (title, result.dtype, mode, recording)))


def _short(result: RunFinished) -> str:
    pc = pc_of(result.device)
    if is_cpu(result.device):
        return _cpu_words(result.device)
    return f"the {without_maker(result.device_name)}{f' of {pc}' if pc else ''}"


def _cpu_words(address: str) -> str:
    return f"the CPU of {pc_of(address)}" if pc_of(address) else "the CPU"


def _alone(latest: RunFinished, titles: Mapping[str, str], *, is_wrong: bool) -> Iterator[str]:
    """Yield the latest result, if there is nothing to compare it with, and how normal it is."""
    size = format_size(latest.size, latest.size_text)
    name = name_at(pc_of(latest.device), latest.device_name)
    yield (
        f"{name}: {format_duration(latest.median_s)} per call ({size}, "
        f"{_kind_words(latest, titles)})."
    )
    if not is_wrong and latest.recording is None:
        yield is_this_normal(latest)
