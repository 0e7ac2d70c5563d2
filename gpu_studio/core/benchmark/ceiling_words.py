"""Is this normal? What a share of a ceiling says, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.ceilings import CALLS_PER_S, Limit, limit_of
from gpu_studio.core.benchmark.low_share import likely_causes
from gpu_studio.core.units import format_percent

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.core.pc.devices import Device

NORMAL_FROM = 0.5  # of a ceiling that nothing reaches whole
ABOVE_FROM = 1.05
_LEAST_SHOWN = 0.001


def is_this_normal(result: RunFinished, device: Device | None = None) -> str:
    """Return how near a result came to its device's ceiling and, if not, the likely cause.

    Empty where its ceiling is not known.

    Args:
        result: with its ``share_of_ceiling``.
        device: the card it ran on, for what only its facts can tell.
    """
    share = result.share_of_ceiling
    if share is None:
        return ""
    if stays_in_cache(result):
        return (
            f"Faster than this {_noun(result)}'s {result.ceiling}: the operands stay in a cache. "
            "A larger size shows the memory itself."
        )
    text = f"{_percent(share)} of this {_noun(result)}'s {result.ceiling}"
    if share > ABOVE_FROM:
        return f"{text}: {_above(result)}."
    if share >= NORMAL_FROM:
        return f"{text}: normal."
    if _is_asking_alone(result):
        return f"{text}: as it should be. There is next to no work in it: what is timed is asking."
    cause = next(likely_causes(result, device), "")
    return f"{text}: low. {cause or 'No cause can be seen in what was measured.'}"


def stays_in_cache(result: RunFinished) -> bool:
    """Return whether a result is faster than its device's memory, which only a cache can be."""
    share = result.share_of_ceiling
    return share is not None and share > ABOVE_FROM and limit_of(result.ceiling) is Limit.MEMORY


def share_text(result: RunFinished) -> str:
    """Return a result's share for a table: ``74 %``, or ``cached``; empty where none is known.

    How often a cache beats the memory depends on what is in it and says nothing about the device.
    """
    if result.share_of_ceiling is None:
        return ""
    return "cached" if stays_in_cache(result) else _percent(result.share_of_ceiling)


def _percent(share: float) -> str:
    """Return a share; one that would be rounded to nothing is told to be something."""
    return (
        f"< {format_percent(_LEAST_SHOWN)}" if 0 < share < _LEAST_SHOWN else format_percent(share)
    )


def is_worth_a_line(result: RunFinished) -> bool:
    """Return whether a share needs its likely cause told, being neither normal nor a cache's."""
    share = result.share_of_ceiling
    is_normal = share is None or NORMAL_FROM <= share <= ABOVE_FROM
    return not (is_normal or stays_in_cache(result) or _is_asking_alone(result))


def _is_asking_alone(result: RunFinished) -> bool:
    """Return whether calls are all that is counted: no larger size would come nearer a ceiling."""
    return result.throughput_unit == CALLS_PER_S


def _above(result: RunFinished) -> str:
    if result.device == "cpu":
        return "more than was measured as its peak, so that measurement was disturbed"
    return "more than it can do by its own facts, so a clock is told too low or work was left out"


def _noun(result: RunFinished) -> str:
    return "CPU" if result.device == "cpu" else "card"
