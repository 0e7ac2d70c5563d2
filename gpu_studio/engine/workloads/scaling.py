"""Is sharing faster? Time a step with 1, 2, … sharers in turns, with the gain's uncertainty.

The rounds are compared one by one: drift (clocks, other programs) affects both steps of a round
alike, so the ratio of a round is more precise than the ratio of two medians. Threads that wait for
each other lose a whole time slice when another program takes a core from one of them. Processes
with one thread lose almost nothing. So one process with all cores looks several times too slow on a
busy PC, and the result says that the comparison is doubtful.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.statistics import median_interval, quantile
from gpu_studio.core.units import format_rate, format_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# The interval of nine ratios leaves out the lowest and the highest.
ROUNDS = 9
_WIDEST_INTERVAL = 0.5  # of the gain
_LONG_STEP_S = 0.05


class Gain(msgspec.Struct, frozen=True):
    """The ratio of samples per second to one sharer: the rounds' median and 95 % interval."""

    median: float
    low: float
    high: float


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """The times of a step of the same batch, by number of sharers.

    ``rounds_s`` has the seconds of a step by the number of sharers, one per round, in order;
    ``size`` is the batch. ``word`` names a sharer: ``card`` or ``process``.
    ``was_disturbed`` is whether other programs kept the CPU busy; None if that was not observed.
    """

    rounds_s: dict[int, tuple[float, ...]]
    size: int
    word: str
    was_disturbed: bool | None = None

    @property
    def curves(self) -> dict[str, tuple[float, ...]]:
        """The samples per second over the number of sharers, from the median step."""
        return {
            "sharers": tuple(float(sharers) for sharers in self.rounds_s),
            "samples a second": tuple(self._rate(sharers) for sharers in self.rounds_s),
        }

    @property
    def sharers(self) -> int:
        return max(self.rounds_s)

    @property
    def gain(self) -> Gain | None:
        """The gain of the largest number of sharers over one; None for one sharer."""
        if self.sharers == 1:
            return None
        rounds = zip(self.rounds_s[1], self.rounds_s[self.sharers], strict=True)
        ratios = sorted(alone_s / shared_s for alone_s, shared_s in rounds)
        return Gain(quantile(ratios, 0.5), *median_interval(ratios))

    def sentences(self) -> tuple[str, ...]:
        """Return the gain as sentences, and whether sharing is faster; empty for one sharer."""
        gain = self.gain
        if gain is None:
            return ()
        interval = f"{format_ratio(gain.low)} to {format_ratio(gain.high)}"
        gained = (
            f"{self.sharers} {self._plural} train on "
            f"{format_rate(self._rate(self.sharers), 'samples/s')}, one {self.word} "
            f"{format_rate(self._rate(1), 'samples/s')}: {format_ratio(gain.median)} as many "
            f"(95\u202f% interval {interval})."
        )
        if gain.low > 1.0:
            return (gained,)
        if gain.high < 1.0:
            return (
                gained,
                "Sharing is slower here: combining the results takes longer than sharing saves. A "
                f"batch larger than {self.size} gives each {self.word} more work per step.",
            )
        return (gained, "Too close to call: the times vary by more than that.")

    def doubts(self) -> dict[str, str]:
        gain = self.gain
        if gain is None:
            return {}
        found = []
        if self.was_disturbed:
            found.append("other programs kept the CPU busy while sharing was compared")
        if gain.low > self.sharers:
            found.append(
                f"{self.sharers} {self._plural} cannot be more than {self.sharers} times as fast, "
                f"so the run with one {self.word} was slowed down"
            )
        elif gain.high - gain.low > _WIDEST_INTERVAL * gain.median:
            found.append("the gain from sharing changed from round to round")
        return {"unsure gain": "; ".join(found)} if found else {}

    def _rate(self, sharers: int) -> float:
        return self.size / quantile(sorted(self.rounds_s[sharers]), 0.5)

    @property
    def _plural(self) -> str:
        return f"{self.word}es" if self.word.endswith("s") else f"{self.word}s"


def rounds_of(steps_s: Mapping[int, Callable[[], float]]) -> dict[int, tuple[float, ...]]:
    """Return the seconds of a step by the number of sharers, one per round.

    The order is reversed in every other round. A short step is taken twice, and the second one
    counts: the first one starts another number of threads.

    Args:
        steps_s: takes one step and returns its seconds, by the number of sharers.
    """
    rounds_s: dict[int, list[float]] = {sharers: [] for sharers in steps_s}
    for number in range(ROUNDS):
        for sharers in sorted(steps_s, reverse=number % 2 == 1):
            step_s = steps_s[sharers]()
            if step_s < _LONG_STEP_S:
                step_s = steps_s[sharers]()
            rounds_s[sharers].append(step_s)
    return {sharers: tuple(taken_s) for sharers, taken_s in rounds_s.items()}
