"""The results at one size, side by side: who may be called faster, and how far to trust it.

`claim.claim_of` decides the winner, here as in the verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.claim import Outcome
from gpu_studio.core.benchmark.crossover import claims_by_size
from gpu_studio.core.benchmark.sizes import sizes_text
from gpu_studio.core.benchmark.trust import relative_iqr, stamp_of
from gpu_studio.core.benchmark.verdict import same_kind
from gpu_studio.core.device_name import DeviceName, is_cpu
from gpu_studio.core.units import format_percent, format_rate, format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpu_studio.core.benchmark.claim import Claim
    from gpu_studio.core.messages.run_messages import RunFinished


class Standing(msgspec.Struct, frozen=True):
    """Every device's latest result at one size of the same kind of work.

    Attributes:
        results: the CPU first, then each card without and with transfers.
        claim: on the card in question against the CPU; None if only one of them was measured.
        card: the result that ``claim`` is on; None without one.
        wrong: the results of this kind of work, at any size, that are wrong.
    """

    results: tuple[RunFinished, ...]
    claim: Claim | None = None
    card: RunFinished | None = None
    wrong: tuple[RunFinished, ...] = ()

    @property
    def size_text(self) -> str:
        """The size in the workload's format: ``512 × 512``."""
        return format_size(self.results[0].size, self.results[0].size_text)

    @property
    def has_ratio(self) -> bool:
        """Whether `ratio_text` says how many times faster a device is."""
        return not self.wrong and self.claim is not None and self.claim.sign != 0

    @property
    def ratio_text(self) -> str:
        """The claim in a few words, such as ``3.1 × faster``; empty if there is no comparison.

        Wrong results have no ratio. If the CPU wins, the text names it.
        """
        if self.wrong:
            return "Wrong results"
        if self.claim is None:
            return ""
        if self.claim.outcome is Outcome.SLOWER:
            return f"CPU {self.claim.times} faster"
        return _capitalized(self.claim.words)

    @property
    def rate_text(self) -> str:
        """The work per second of a right result that stands alone: ``152 GFLOP/s``; else empty."""
        if len(self.results) != 1 or self.wrong:
            return ""
        return format_rate(self.results[0].throughput, self.results[0].throughput_unit)

    @property
    def wrong_text(self) -> str:
        """The sizes with wrong results: ``At 512 × 512``; empty if all are right."""
        if not self.wrong:
            return ""
        texts = {one.size: format_size(one.size, one.size_text) for one in self.wrong}
        return f"At {sizes_text([texts[size] for size in sorted(texts)])}"

    @property
    def doubt(self) -> str:
        """The first reason not to trust the results, in a word or two; empty without one."""
        words = (word for result in self.results for word in stamp_of(result).words)
        return _capitalized(next(words, ""))

    @property
    def checked_text(self) -> str:
        """The words for results without a doubt: ``Verified · spread 2 %``."""
        spreads = [relative_iqr(result) for result in self.results if result.samples > 1]
        spread = f" · spread {format_percent(max(spreads))}" if spreads else ""
        return f"Verified{spread}"


def standing_of(
    results: Sequence[RunFinished], chosen: RunFinished | None = None
) -> Standing | None:
    """Return the results beside a chosen one, or at the largest size that can be compared.

    Args:
        results: all finished runs, in their order.
        chosen: decides the kind of work, the size, and the card in question.

    Without a chosen result, the kind of work is the latest, and the card is the one with the best
    claim. None if there are no results.
    """
    if not results:
        return None
    latest = chosen if chosen is not None else results[-1]
    alike = [result for result in results if same_kind(result, latest)]
    size = latest.size if chosen is not None else _size_to_show(alike, latest)
    shown = {(result.device, result.transfers): result for result in alike if result.size == size}
    ordered = tuple(shown[key] for key in sorted(shown, key=_place))
    compared = [
        (claims[size], card)
        for card in ordered
        if not is_cpu(card.device) and _is_in_question(card, chosen)
        if size in (claims := claims_by_size(alike, card.device, with_transfers=card.transfers))
    ]
    wrong = tuple(result for result in alike if result.verified is False)
    if not compared:
        return Standing(ordered, wrong=wrong)
    claim, card = max(compared, key=_rank)
    return Standing(ordered, claim, card, wrong)


def _is_in_question(card: RunFinished, chosen: RunFinished | None) -> bool:
    """Return whether a choice allows this card: every card is compared with a chosen CPU."""
    if chosen is None or is_cpu(chosen.device):
        return True
    return (card.device, card.transfers) == (chosen.device, chosen.transfers)


def _rank(compared: tuple[Claim, RunFinished]) -> tuple[bool, int, float]:
    claim, card = compared
    return not card.transfers, claim.sign, claim.ratio


def _size_to_show(alike: Iterable[RunFinished], latest: RunFinished) -> int:
    """Return the largest size that the CPU and a card share; the latest size without one."""
    of_cpu = {result.size for result in alike if is_cpu(result.device)}
    of_cards = {result.size for result in alike if not is_cpu(result.device)}
    return max(of_cpu & of_cards, default=latest.size)


def _place(key: tuple[str, bool]) -> tuple[bool, str, int, bool]:
    device, transfers = key
    name = DeviceName.parse(device)
    return not name.is_cpu, name.pc, name.index or 0, transfers


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]
