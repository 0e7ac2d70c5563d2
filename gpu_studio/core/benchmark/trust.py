"""How far to trust a result: the worst doubt first, and how many more there are.

Panel, chip, stage, picture, page and terminal say this, so a result has one face everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.benchmark.sustained import BOOST_HELD_S
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.statistics import FEWEST_ROUNDS
from gpu_studio.core.units import counted, format_duration, format_percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpu_studio.core.messages.run_messages import RunFinished

FEWEST_SAMPLES = 10
"""Fewer samples are few."""
_WIDEST_IQR = 0.10  # torch.utils.benchmark warns at the same spread
MORE_TIME = "give the runs more time"
_CLOSE = "close other programs"
_WRONG, _FEW, _SPREAD, _OTHER = "wrong result", "few samples", "spread", ""
_REMEDIES = {
    _WRONG: "",
    "busy CPU": _CLOSE,
    "shared card": _CLOSE,
    "throttled": "let the card cool down",
    _SPREAD: _CLOSE,
    _FEW: MORE_TIME,
    "not steady": MORE_TIME,
    "not checked": "",
    _OTHER: "",
    "recording": "",
}
_WORST_FIRST = tuple(_REMEDIES)
TIMING_REMEDIES = {kind: remedy for kind, remedy in _REMEDIES.items() if remedy}
"""The kinds of doubts about a time itself, and the remedy for each."""
BUSY = frozenset({"busy CPU", "shared card"})
"""The kinds that name other programs."""
SCATTERED = BUSY | {_SPREAD}
"""The kinds that make single times vary."""
MET_BY_BOTH = SCATTERED | {_FEW}
"""The kinds that the interval of rounds in turns has in it already."""


class Doubt(NamedTuple):
    """A reason not to trust a number.

    ``kind`` is for `TIMING_REMEDIES`, ``word`` for a cell, ``weight`` orders doubts of one kind.
    """

    kind: str
    word: str
    sentence: str
    weight: float = 0.0

    @property
    def rank(self) -> tuple[int, float]:
        """Its place among others: the worst comes first."""
        kind = self.kind if self.kind in _REMEDIES else _OTHER
        return _WORST_FIRST.index(kind), -self.weight


def doubts_of(result: RunFinished) -> list[Doubt]:
    """Return the reasons not to trust a result, the worst first."""
    return sorted(_found(result), key=lambda doubt: doubt.rank)


def trust_sign(result: RunFinished) -> str:
    """Return how far to trust a result: ``✔ checked, spread 1.2 %``, ``▲ busy CPU · 2 more``."""
    if words := [doubt.word for doubt in doubts_of(result)]:
        return f"▲ {_worst(words)}"
    spread = f", spread {format_percent(spread_of(result))}" if result.samples > 1 else ""
    return f"✔ checked{spread}"


def trust_of(results: Iterable[tuple[str, RunFinished]]) -> Notice:
    """Return how far to trust results in a few words, with every reason as the detail.

    Args:
        results: each with the name of its device.
    """
    named = list(results)
    doubts = [(doubt, f"{name}: {doubt.sentence}.") for name, one in named for doubt in _found(one)]
    if not doubts:
        facts = (f"{name}: {'; '.join(facts_of(one))}." for name, one in named)
        lines = "\n".join(dict.fromkeys(facts))
        return Notice("Results checked", Tone.GOOD, lines) if named else Notice()
    doubts.sort(key=lambda one: one[0].rank)
    shown = _worst([*dict.fromkeys(doubt.word for doubt, _ in doubts)])
    tone = Tone.FAILURE if doubts[0][0].kind == _WRONG else Tone.AMBER
    lines = "\n".join(dict.fromkeys(line for _, line in doubts))
    return Notice(f"{shown[:1].upper()}{shown[1:]}", tone, lines)


def _worst(words: Sequence[str]) -> str:
    """Return the first of the words, and how many more there are."""
    return f"{words[0]} · {len(words) - 1} more" if len(words) > 1 else words[0]


def timing_doubts(result: RunFinished) -> tuple[Doubt, ...]:
    """Return the reasons why a result's time may be far off.

    Few samples count where they have no 95 % interval. A wrong result, or a recording, says
    nothing about the time.
    """
    return tuple(
        doubt
        for doubt in doubts_of(result)
        if doubt.kind in TIMING_REMEDIES and (doubt.kind != _FEW or _has_no_interval(result))
    )


def computed_in_words(result: RunFinished) -> str:
    """Return the type of the arithmetic in words: ``computed in TF32``; empty if it is unknown."""
    kind = result.conditions.computed_in
    return f"computed in {'TF32' if kind == 'tf32' else kind}" if kind else ""


def _found(result: RunFinished) -> Iterator[Doubt]:
    if result.verified is False:
        yield _doubt(_WRONG, f"the result is wrong: {result.verification}")
    elif result.verified is None:
        reason = result.verification or "no reference"
        yield _doubt("not checked", f"the result was not checked: {reason}")
    if result.samples < FEWEST_SAMPLES:
        what = f"only {counted(result.samples, 'sample')}"
        if result.samples > 1 and _has_no_interval(result):
            what += ", so the interval is their whole range"
        yield _doubt(_FEW, f"{what}: give it more time")
    spread = spread_of(result)
    if spread > _WIDEST_IQR:
        shown = format_percent(spread)
        yield Doubt(_SPREAD, f"spread {shown}", f"times varied by {shown}", spread)
    if result.conditions.throttled:
        yield _doubt("throttled", "the card slowed itself down during the run")
    if result.conditions.other_processes:
        yield _shared(result)
    yield from (_doubt(*item) for item in result.doubts.items())
    if result.recording:
        yield _doubt("recording", f"it is a recording: {result.recording}")


def _has_no_interval(result: RunFinished) -> bool:
    """Return whether the interval of a result is only the whole range of its samples."""
    return (len(result.rounds_s) or result.samples) < FEWEST_ROUNDS


def _doubt(kind: str, sentence: str) -> Doubt:
    return Doubt(kind, kind, sentence)


def _shared(result: RunFinished) -> Doubt:
    """Return the doubt about a device that other programs used, too."""
    if is_cpu(result.device):
        return _doubt("busy CPU", "other programs kept the CPU busy")
    load = result.conditions.other_load
    if load is None:
        return _doubt("shared card", "another program used the card")
    who, share = load.program or "another program", format_percent(load.percent / 100)
    return _doubt("shared card", f"{who} kept the card {share} busy before the run")


def facts_of(result: RunFinished) -> Iterator[str]:
    """Yield what describes the measurement of a result."""
    conditions = result.conditions
    on_cpu = is_cpu(result.device)
    if result.verified:  # if the check failed, a doubt describes it
        yield result.verification
    yield f"{result.cache} cache"
    yield "with copies" if result.transfers else "without copies"
    if conditions.cpu_threads is not None:
        yield counted(conditions.cpu_threads, "CPU thread")
    if conditions.computed_in:
        yield computed_in_words(result)
    if conditions.throttled is None and not on_cpu:
        yield "throttling unknown"
    if conditions.power_capped:
        yield "at its power limit, which is normal under load"
    if conditions.loaded_s is not None:
        loaded = format_duration(conditions.loaded_s)
        kind = "sustained: " if result.sustained else ""
        yield f"{kind}loaded for {loaded} before the first sample"
        if not on_cpu and conditions.loaded_s < BOOST_HELD_S:
            yield f"a card may keep a higher clock for its first {BOOST_HELD_S:.0f}\u202fs"


def spread_of(result: RunFinished) -> float:
    """Return the IQR as a share of the median; 0 if the median is 0."""
    return result.iqr_s / result.median_s if result.median_s else 0.0
