"""The trust stamp of a result: can you trust this number, and if not, why not?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.benchmark.sustained import BOOST_HELD_S
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.statistics import FEWEST_ROUNDS
from gpu_studio.core.units import counted, format_duration, format_percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpu_studio.core.messages.run_messages import RunFinished

_FEW = "few samples"
_FEWEST_SAMPLES = 10
_WIDEST_IQR = 0.10  # torch.utils.benchmark warns at the same spread


class Doubt(NamedTuple):
    """A reason not to trust a number; ``kind`` is for `TIMING_REMEDIES`, ``word`` for a cell."""

    kind: str
    word: str
    sentence: str


class TrustStamp(msgspec.Struct, frozen=True):
    """``doubts`` are the reasons not to trust a number, ``facts`` describe its measurement.

    ``words`` has the doubts in a word or two each, in the same order, for a table cell.
    """

    doubts: tuple[str, ...]
    facts: tuple[str, ...]
    words: tuple[str, ...] = ()

    @property
    def sign(self) -> str:
        """The stamp in short: ``✔ verified`` or ``▲ few samples``."""
        return f"▲ {', '.join(self.words)}" if self.words else "✔ verified"


def stamp_of(result: RunFinished) -> TrustStamp:
    """Return the stamp of a finished run."""
    doubts = list(_doubts(result))
    return TrustStamp(
        doubts=tuple(doubt.sentence for doubt in doubts),
        facts=tuple(_facts(result)),
        words=tuple(doubt.word for doubt in doubts),
    )


MORE_TIME = "give the runs more time"
TIMING_REMEDIES = {
    _FEW: MORE_TIME,
    "busy CPU": "close other programs",
    "shared card": "close other programs",
    "throttled": "let the card cool down",
    "spread": "close other programs",
    "not steady": MORE_TIME,
}
"""The kinds of doubts about a time itself, and the remedy for each."""
BUSY = frozenset({"busy CPU", "shared card"})
"""The kinds that name other programs."""
MET_BY_BOTH = BUSY | {"spread", _FEW}
"""The kinds that the interval of rounds in turns has in it already."""


def timing_doubts(result: RunFinished) -> tuple[Doubt, ...]:
    """Return the reasons why a result's time may be far off.

    Few samples count where they have no 95 % interval. A wrong result, or a recording, says
    nothing about the time.
    """
    return tuple(
        doubt
        for doubt in _doubts(result)
        if doubt.kind in TIMING_REMEDIES and (doubt.kind != _FEW or _has_no_interval(result))
    )


def relative_iqr(result: RunFinished) -> float:
    """Return the IQR as a share of the median; 0 if the median is 0."""
    return result.iqr_s / result.median_s if result.median_s else 0.0


def _doubts(result: RunFinished) -> Iterable[Doubt]:
    if result.verified is False:
        yield _doubt("wrong result", f"the result is wrong: {result.verification}")
    elif result.verified is None:
        reason = result.verification or "no reference"
        yield _doubt("not checked", f"the result was not checked: {reason}")
    if result.samples < _FEWEST_SAMPLES:
        noun = "sample" if result.samples == 1 else "samples"
        what = f"only {result.samples} {noun}"
        if result.samples > 1 and _has_no_interval(result):
            what += ", so the interval is their whole range"
        yield _doubt(_FEW, f"{what}: give it more time")
    spread = relative_iqr(result)
    if spread > _WIDEST_IQR:
        shown = format_percent(spread)
        text = f"times varied by {shown}"
        yield Doubt("spread", f"spread {shown}", text)
    if result.conditions.throttled:
        yield _doubt("throttled", "the card slowed itself down during the run")
    if result.conditions.other_processes:
        yield _doubt(*_shared(result))
    yield from (_doubt(*item) for item in result.doubts.items())
    if result.recording:
        yield _doubt("recording", f"it is a recording: {result.recording}")


def _has_no_interval(result: RunFinished) -> bool:
    """Return whether the interval of a result is only the whole range of its samples."""
    count = len(result.rounds_s) or result.samples
    return count < FEWEST_ROUNDS


def _doubt(kind: str, sentence: str) -> Doubt:
    return Doubt(kind, kind, sentence)


def _shared(result: RunFinished) -> tuple[str, str]:
    """Return the word and the sentence for a device that other programs used, too."""
    if is_cpu(result.device):
        return "busy CPU", "other programs kept the CPU busy"
    load = result.conditions.other_load
    if load is None:
        return "shared card", "another program used the card"
    who = load.program or "another program"
    share = format_percent(load.percent / 100)
    return "shared card", f"{who} kept the card {share} busy before the run"


def _load_facts(result: RunFinished) -> Iterator[str]:
    """Yield how long the device had been under load before its first sample, and its effect."""
    if result.conditions.loaded_s is None:
        return
    kind = "sustained: " if result.sustained else ""
    yield f"{kind}loaded for {format_duration(result.conditions.loaded_s)} before the first sample"
    if not is_cpu(result.device) and result.conditions.loaded_s < BOOST_HELD_S:
        yield f"a card may keep a higher clock for its first {BOOST_HELD_S:.0f}\u202fs"


def computed_in_words(result: RunFinished) -> str:
    """Return the type of the arithmetic in words: ``computed in TF32``; empty if it is unknown."""
    kind = result.conditions.computed_in
    return f"computed in {'TF32' if kind == 'tf32' else kind}" if kind else ""


def _facts(result: RunFinished) -> list[str]:
    # If the check failed, a doubt describes it.
    facts = [result.verification] if result.verified else []
    facts += [
        f"{result.cache} cache",
        "with copies" if result.transfers else "without copies",
    ]
    if result.conditions.cpu_threads is not None:
        facts.append(counted(result.conditions.cpu_threads, "CPU thread"))
    computed = computed_in_words(result)
    if computed:
        facts.append(computed)
    if result.conditions.throttled is None and not is_cpu(result.device):
        facts.append("throttling unknown")
    if result.conditions.power_capped:
        facts.append("at its power limit, which is normal under load")
    facts += _load_facts(result)
    return facts
