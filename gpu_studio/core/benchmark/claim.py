"""Which of two results is faster, and is that certain? One value, one rule, one wording.

The rule: wrong results have no winner, and neither have overlapping intervals. Rounds in turns met
the same disturbances, so the interval of their ratio has them in it; it takes three pairs of rounds
at least. If times vary much or other programs were running, the whole interval must be beyond 5 %.
While other programs keep the PC busy, it takes six rounds and ten samples, and the winner must win
every round. A card that works for others as well is slower all the time, so the other side must win
by a factor of two. Results of two times may differ more than their intervals say, because each run
finds other places in memory: a winner counts only if it still wins by a quarter less, and never
against a time that other programs disturbed (identical products took up to 200 times as long). Any
other doubt about a time (a throttled card) may mean a factor of two in either direction. If both
times are doubtful, only one may be wrong by that factor, because a disturbance slows both down. Two
results count as equally fast only if the whole interval of their ratio lies within ± 5 %.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.trust import (
    BUSY,
    FEWEST_SAMPLES,
    MET_BY_BOTH,
    MORE_TIME,
    SCATTERED,
    TIMING_REMEDIES,
    Doubt,
    timing_doubts,
)
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.statistics import FEWEST_PAIRS, FEWEST_ROUNDS, ratio_interval
from gpu_studio.core.units import format_about, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpu_studio.core.messages.run_messages import RunFinished

# Moving work is not worth less than this, and two runs of the same work can differ as much.
SAME_WITHIN = 1.05
APART_BY = 1.25
"""How much two runs of the same work differ from run to run.

Elementwise work differs by up to 25 % between processes whose memory is steady.
"""
_DOUBTED_BY = 2.0
_ABOUT_TWO = 1.5  # from here on, a lead is 2 with one digit
CANNOT_BE_TOLD = "cannot be told"


class Outcome(Enum):
    """The verdict on a device compared with its reference, or why there is none.

    The value is the end of a sentence.
    """

    FASTER = "faster"
    SLOWER = "slower"
    EQUAL = "equal"
    WRONG = "wrong"
    BUSY = "other programs were running"
    FEW_ROUNDS = "they have too few rounds"
    OVERLAP = "their times overlap"
    DOUBTFUL = "the times are doubtful"
    OTHER_TIME = "runs of two times differ by as much: measure both again, together"
    SMALL = "they differ by less than 5 %"


_TOLD = {Outcome.FASTER: 1, Outcome.SLOWER: -1, Outcome.EQUAL: 0, Outcome.WRONG: 0}


class Claim(msgspec.Struct, frozen=True):
    """How many times faster a device is than its reference, and whether that may be said.

    Attributes:
        outcome: the verdict on the device. If it is `Outcome.BUSY`, another run may find a winner.
        ratio: time of the reference / time of the device.
        low, high: the 95 % interval of the ratio.
        doubts: why one of the times may be far off. With any, only the order of magnitude is said.
    """

    outcome: Outcome
    ratio: float
    low: float
    high: float
    doubts: tuple[Doubt, ...] = ()

    @property
    def sign(self) -> int:
        """1 if the device wins, -1 if the reference wins, 0 otherwise."""
        return _TOLD.get(self.outcome, 0)

    @property
    def is_unclear(self) -> bool:
        """Whether there is no verdict."""
        return self.outcome not in _TOLD

    @property
    def said_ratio(self) -> float | None:
        """The ratio; None if the verdict allows none."""
        return self.ratio if self.sign or self.outcome is Outcome.EQUAL else None

    @property
    def times(self) -> str:
        """How many times faster the winner is: ``4.0 ×``, or ``about 20 ×`` if doubtful."""
        lead = max(self.ratio, 1 / self.ratio)
        if self.doubts and lead < _ABOUT_TWO:
            return "less than 2\u202f×"
        return f"about {format_about(lead)}" if self.doubts else format_ratio(lead)

    @property
    def at_least(self) -> str:
        """How far the intervals are apart where no winner counts: ``at least 8 ×``; or empty."""
        apart = max(self.low, 1 / self.high)
        if not self.is_unclear or apart < _DOUBTED_BY:
            return ""
        step = 10 ** max(0, math.floor(math.log10(apart)) - 1)
        return f"at least {math.floor(apart / step + 1e-9) * step:,}\u202f×"

    @property
    def words(self) -> str:
        """The claim in a few words: ``4.0 × faster``, ``equally fast``, ``cannot be told``."""
        if self.sign:
            return f"{self.times} {self.outcome.value}"
        if self.is_unclear:
            return f"{CANNOT_BE_TOLD}, {self.at_least} apart" if self.at_least else CANNOT_BE_TOLD
        return "equally fast" if self.outcome is Outcome.EQUAL else "wrong results"

    @property
    def why(self) -> str:
        """Why the verdict is unclear, as the end of a sentence; empty if it is not."""
        if not self.is_unclear:
            return ""
        words = ", ".join(doubt.word for doubt in self.doubts)
        listed = f" ({words})" if self.outcome is Outcome.DOUBTFUL else ""
        apart = f", though measured {self.at_least} apart" if self.at_least else ""
        return f"{self.outcome.value}{listed}{apart}"

    @property
    def fixes(self) -> tuple[str, ...]:
        """What would remove the doubts, each in the imperative."""
        fixes = [MORE_TIME] if self.outcome is Outcome.FEW_ROUNDS else []
        fixes += [TIMING_REMEDIES[doubt.kind] for doubt in self.doubts]
        return tuple(dict.fromkeys(fixes))


def claim_of(
    reference: RunFinished, device: RunFinished, *, ratio: float | None = None
) -> Claim | None:
    """Return the claim on two results of the same work.

    Args:
        reference: the result to compare with.
        device: the result that the claim is on.
        ratio: how many times faster the device is, if it is not the ratio of the medians. The
            interval then holds both.

    Returns:
        None if one of the two has no time, or a time that is only for show.
    """
    if not all(one.median_s > 0 and one.ci95_s[0] > 0 for one in (reference, device)):
        return None
    of_medians = reference.median_s / device.median_s
    ratio = ratio or of_medians
    low, high = (a / b for a, b in zip(reference.ci95_s, reversed(device.ci95_s), strict=True))
    pairs: tuple[tuple[float, float], ...] = ()
    if reference.turns and reference.turns == device.turns:
        pairs = tuple(zip(reference.rounds_s, device.rounds_s, strict=False))
        if len(pairs) >= FEWEST_PAIRS:
            ours, theirs = zip(*pairs, strict=True)
            low, high = ratio_interval(ours, theirs, of_medians)
    both = (*timing_doubts(reference), *timing_doubts(device))
    doubts = tuple({doubt.word: doubt for doubt in both}.values())
    measured = Claim(Outcome.SMALL, ratio, min(low, ratio), max(high, ratio), doubts)
    rounds = [one / other for one, other in pairs]
    outcome = _outcome(measured, reference, device, rounds)
    return msgspec.structs.replace(measured, outcome=outcome)


def _is_shared(result: RunFinished) -> bool:
    """Return whether a card works for other programs as well."""
    return bool(result.conditions.other_processes) and not is_cpu(result.device)


def _outcome(
    measured: Claim, reference: RunFinished, device: RunFinished, rounds: Sequence[float]
) -> Outcome:
    """Return the verdict on what was measured: the first that applies.

    Args:
        measured: its outcome is not looked at.
        reference: the result to compare with.
        device: the result that the claim is on.
        rounds: the ratio of each pair of rounds in turns; empty if the two are of two times.
    """
    kinds = {doubt.kind for doubt in measured.doubts}
    own = kinds - (MET_BY_BOTH if len(rounds) >= FEWEST_PAIRS else frozenset())
    in_turns = SAME_WITHIN if kinds & SCATTERED else 1.0
    margin = _DOUBTED_BY if own else in_turns if rounds else APART_BY
    is_one_device = reference.device == device.device
    is_sampled = min(reference.samples, device.samples) >= FEWEST_SAMPLES

    def wins(sign: int, bound: float, lead: float) -> bool:
        loser, winner = (reference, device) if sign > 0 else (device, reference)
        if not rounds:
            is_fair = not loser.conditions.other_processes
        elif kinds & BUSY:
            is_fair = is_sampled and len(rounds) >= FEWEST_ROUNDS
            is_fair = is_fair and all(sign * math.log(one) > 0 for one in rounds)
        else:
            is_fair = len(rounds) >= FEWEST_PAIRS
        is_burdened = not is_one_device and _is_shared(loser) and not _is_shared(winner)
        needed = _DOUBTED_BY if is_burdened else margin
        return is_fair and bound > needed and lead >= SAME_WITHIN

    ratio, low, high = measured.ratio, measured.low, measured.high
    verdicts = (
        (Outcome.WRONG, False in (reference.verified, device.verified)),
        (Outcome.FASTER, wins(1, low, ratio)),
        (Outcome.SLOWER, wins(-1, 1 / high, 1 / ratio)),
        (Outcome.BUSY, kinds & BUSY),
        (Outcome.FEW_ROUNDS, 0 < len(rounds) < FEWEST_PAIRS),
        (Outcome.EQUAL, not kinds and low >= 1 / SAME_WITHIN and high <= SAME_WITHIN),
        (Outcome.OVERLAP, low <= 1 <= high),
        (Outcome.DOUBTFUL, kinds),
        (Outcome.OTHER_TIME, not rounds and max(ratio, 1 / ratio) >= SAME_WITHIN),
        (Outcome.SMALL, True),
    )
    return next(outcome for outcome, applies in verdicts if applies)


def fixes_sentence(claims: Iterable[Claim]) -> str:
    """Return what would decide unclear claims, as a sentence; empty if nothing is known to."""
    fixes = dict.fromkeys(fix for claim in claims for fix in claim.fixes)
    text = " and ".join(fixes)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
